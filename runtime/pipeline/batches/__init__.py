"""What becomes of one batch: read, transformed and staged, with its bad rows set aside."""
