"""One batch: its rows are read, transformed and staged, and its bad rows become dead letters."""
