"""What several tests use: doubles, drivers of real processes, drawn worlds, readers of results."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
"""The folder of all tests: a process that imports this package has it on its path."""
