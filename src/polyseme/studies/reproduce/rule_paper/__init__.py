"""The experiments of the paper on semantic rules."""
