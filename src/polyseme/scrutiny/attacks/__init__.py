"""Attacks: one attacker a file, each with the same signature.

They work on published sets, or on values that are published with their class or group; `class_limits.py` has the bounds
for the latter.
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
