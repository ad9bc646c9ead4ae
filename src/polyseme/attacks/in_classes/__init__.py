"""Adversaries on values that are published with their class or group, one a file; `limits.py` says what bounds them."""
