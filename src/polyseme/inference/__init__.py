"""True cross-tabulations recovered from releases, with intervals."""
