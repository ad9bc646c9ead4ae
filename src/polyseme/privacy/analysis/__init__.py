"""What a mechanism does to privacy and to estimates, before any record is touched."""

from polyseme.privacy.analysis.precision import Spectrum, spectrum
from polyseme.privacy.analysis.summary import Facts, Setting, facts, frontier, nearest_settings, thresholds, worst_of

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
