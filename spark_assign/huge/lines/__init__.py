"""Groups whose problem is a line too long to be a row."""
