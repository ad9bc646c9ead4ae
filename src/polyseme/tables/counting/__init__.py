"""Counting records of tables of any size."""
