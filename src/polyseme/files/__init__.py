"""Small files: one reader of YAML and JSON, one of CSV, the folder of a policy, files that appear only when whole."""
