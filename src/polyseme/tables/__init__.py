"""The data plane: reading, coding, shuffling, writing and counting tables, in Arrow record batches."""
