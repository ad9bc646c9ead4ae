"""Attacks: one adversary a file, each with the same signature."""

from polyseme.attacks.registry import ADVERSARIES, Adversary, attack
from polyseme.attacks.scene import Promised, Scene, Shown
from polyseme.results.findings import Finding

__all__ = ["ADVERSARIES", "Adversary", "Finding", "Promised", "Scene", "Shown", "attack"]
