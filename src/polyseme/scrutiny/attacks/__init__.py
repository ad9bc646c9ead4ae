"""Adversaries on values that are published with their class or group, one a file; `limits.py` says what bounds them.

Attacks: one adversary a file, each with the same signature.
"""

from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.registry import ADVERSARIES, IN_CLASSES, Adversary, attack
from polyseme.scrutiny.attacks.scene import Absent, Promised, Scene, Shown, Within

__all__ = [
    "ADVERSARIES",
    "IN_CLASSES",
    "Absent",
    "Adversary",
    "Finding",
    "Promised",
    "Scene",
    "Shown",
    "Within",
    "attack",
]
