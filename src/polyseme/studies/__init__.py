"""Generated data and experiments."""
