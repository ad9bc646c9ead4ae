"""Values as codes of a domain, and the one rule for how a value may be spelled."""
