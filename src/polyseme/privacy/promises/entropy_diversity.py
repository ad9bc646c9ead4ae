"""`entropy-diversity: {l, adapt}`: the entropy in every equivalence class is at least ln l.

l need not be whole. The members of a set are equally represented in its expansion, so the entropy of one record is the
logarithm of the number of its candidates, and that of a class is no less (Theorem 3 of the sensitive quasi-identifier
paper).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from polyseme.kernel.parameters import Parameter
from polyseme.privacy.promises.diversity import ADAPT, AdaptablePromise

__all__ = ["EntropyDiversity"]


@dataclass(frozen=True)
class EntropyDiversity(AdaptablePromise):
    """An effective number of candidates of at least l.

    >>> EntropyDiversity(2.3).least_size(14)
    3
    """

    name: ClassVar[str] = "entropy-diversity"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("l", low=1, example=3), ADAPT)
