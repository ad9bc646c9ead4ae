"""Publish records as sets of distant candidates; recover the true cross-tabulations."""
