"""Checks of configs: what a config must not hold, and what it leads to."""
