"""Regression on the sets of a release: formulas, corrected scores and working distributions."""
