"""The experiments of the conference paper that came before the journal paper."""
