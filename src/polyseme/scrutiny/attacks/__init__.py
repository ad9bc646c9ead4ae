"""Attacks: one attacker a file, each with the same signature.

They work on published sets, or on values that are published with their class or group; `class_limits.py` has the bounds
for the latter.
"""
