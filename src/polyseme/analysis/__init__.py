"""What a mechanism does to privacy and to estimates, before any record is touched."""

from polyseme.analysis.frontier import Setting, frontier, nearest_settings, thresholds
from polyseme.analysis.identifiability import Spectrum, spectrum
from polyseme.analysis.summary import Facts, facts, worst_of

__all__ = [
    "Facts",
    "Setting",
    "Spectrum",
    "facts",
    "frontier",
    "nearest_settings",
    "spectrum",
    "thresholds",
    "worst_of",
]
