"""What a mechanism does to privacy and to estimates, before any record is touched."""

from polyseme.privacy.analysis.summary import (
    Facts,
    Setting,
    Spectrum,
    facts,
    frontier,
    nearest_settings,
    spectrum,
    thresholds,
    worst_of,
)

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
