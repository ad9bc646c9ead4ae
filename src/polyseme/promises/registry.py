"""All promises by the policy's names. A new one is its file and its line here."""

from __future__ import annotations

from collections.abc import Mapping

from polyseme.promises.base import Promise
from polyseme.promises.closeness import Closeness
from polyseme.promises.diversity import Diversity
from polyseme.promises.entropy_diversity import EntropyDiversity
from polyseme.promises.ldp import Ldp
from polyseme.promises.learner import Learner
from polyseme.promises.semantic_diversity import SemanticDiversity

__all__ = ["PROMISES"]

_ALL: tuple[type[Promise], ...] = (
    Diversity,
    EntropyDiversity,
    SemanticDiversity,
    Closeness,
    Ldp,
    Learner,
)

PROMISES: Mapping[str, type[Promise]] = {promise.name: promise for promise in _ALL}
"""Every promise by the policy's word for it. Where two of them ask for the same, the first one is named."""
