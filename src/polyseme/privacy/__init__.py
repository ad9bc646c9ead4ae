"""What a data holder can promise, how decoys are calibrated, and what a set reveals."""
