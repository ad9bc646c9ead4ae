"""The workbench: a local page on which a data manager goes from a table to a release.

The state is the policy file. Every click is an edit of it, every number is one that a command prints, and a run is the
command itself as a process of its own. The page has no truth of its own.
"""
