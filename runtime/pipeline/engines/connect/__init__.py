"""Spark Connect: the engine of a worker whose jobs a server runs."""
