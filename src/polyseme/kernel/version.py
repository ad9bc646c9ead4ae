"""The version of the package, in a place that every room may import."""

__version__ = "0.1.0"
