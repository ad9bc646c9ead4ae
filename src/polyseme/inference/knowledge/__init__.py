"""What a table or a release teaches about one record."""
