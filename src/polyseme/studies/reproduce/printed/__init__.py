"""The worked examples and small tables that the papers print, recomputed."""
