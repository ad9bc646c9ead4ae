"""What every other package builds on and what knows nothing of data, policies or releases."""
