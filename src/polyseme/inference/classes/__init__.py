"""Estimators for values that are published with their class or group."""
