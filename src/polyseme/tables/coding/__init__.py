"""Values as codes of a domain."""
