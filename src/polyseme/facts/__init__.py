"""What a mechanism does to privacy and to estimates, before any record is touched."""

from polyseme.facts.frontier import Setting, frontier, nearest_settings, thresholds
from polyseme.facts.identifiability import Spectrum, spectrum
from polyseme.facts.summary import Facts, facts, worst_of

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
