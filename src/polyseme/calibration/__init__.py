"""Calibration: from what was promised for an attribute to the parameters of its mechanism."""

from polyseme.calibration.accuracy import expected_l2
from polyseme.calibration.choice import Choice, choose, choose_within, mechanism_for

__all__ = [
    "Choice",
    "choose",
    "choose_within",
    "expected_l2",
    "mechanism_for",
]
