"""Attacks: one adversary a file, each with a finding."""

from polyseme.attacks.base import Finding
from polyseme.attacks.battery import ATTACKS, attack_sets

__all__ = ["ATTACKS", "Finding", "attack_sets"]
