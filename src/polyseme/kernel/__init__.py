"""What every other package builds on and what knows nothing of data, policies or releases.

Small files: one reader of YAML and JSON, one of CSV, the folder of a policy, files that appear only when whole.
"""
