"""Reading, shuffling and writing tables."""
