"""Spark's readers: the options they get, and the texts they would take for other values."""
