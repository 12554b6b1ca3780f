"""Shared test support: doubles, drivers of real processes, random groups, readers of results."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
"""The folder of all tests: a process that imports this package has it on its path."""
