"""Experiments of ours, about what the papers leave out."""
