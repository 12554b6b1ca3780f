"""Rows of files: the language of values, what is read with which type, bad rows."""
