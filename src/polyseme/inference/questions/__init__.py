"""What an analyst can ask, and how sets are counted for it."""
