"""Grouping methods applied to a table, in memory or by workers."""
