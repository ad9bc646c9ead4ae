"""From a policy and a table to a release: preparation, review, warnings, publication."""
