"""The experiments of the journal paper on (l, d)-semantic diversity."""
