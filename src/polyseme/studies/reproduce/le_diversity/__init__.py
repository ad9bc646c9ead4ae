"""The experiments of the paper on (l, e)-diversity."""
