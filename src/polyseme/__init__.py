"""Publish records as sets of distant candidates; recover the true cross-tabulations."""

__version__ = "0.1.0"
