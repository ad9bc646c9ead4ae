"""The engine that runs on a Spark cluster."""
