"""Attacks: one adversary a file, each with the same signature."""

from polyseme.attacks.registry import ADVERSARIES, IN_CLASSES, Adversary, attack
from polyseme.attacks.scene import Absent, Promised, Scene, Shown, Within
from polyseme.results.findings import Finding

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
