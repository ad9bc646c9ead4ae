"""What a user asks for, one file a verb."""
