"""The assignors that are named without installing anything."""
