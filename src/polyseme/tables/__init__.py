"""The data plane: reading, coding, shuffling, writing and counting tables, in Arrow record batches.

Values as codes of a domain.

Counting records of tables of any size.
"""
