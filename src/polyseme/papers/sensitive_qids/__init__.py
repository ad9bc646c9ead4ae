"""The experiments of the sensitive-QID paper, (l1, ..., lq)-diversity and closeness."""
