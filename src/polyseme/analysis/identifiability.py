"""Can the true values be distinguished? Rank and condition of `Q`; designs know their own: `designs/spectrum.py`."""

from __future__ import annotations

import numpy as np

from polyseme.designs.spectrum import Spectrum
from polyseme.mechanism import Mechanism

__all__ = ["Spectrum", "spectrum"]


def spectrum(mechanism: Mechanism) -> Spectrum:
    """Rank and condition of the inclusion matrix of a mechanism."""
    if mechanism.p == 0.0:
        everything = tuple(range(mechanism.size))
        return Spectrum(mechanism.size == 1, np.inf, (everything,) if mechanism.size > 1 else ())
    return mechanism.design.spectrum(mechanism.p)
