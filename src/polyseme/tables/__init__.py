"""Tables in Arrow record batches: read, coded, shuffled, written and counted at any size."""
