"""Patches Python's wall clock in the processes of a node under test (a `sitecustomize`)."""

import os
import time
from collections.abc import Callable
from pathlib import Path

FILE = Path(os.environ["CHAOS_CLOCK"])
"""The file with the offset of the clock in seconds."""
NS = 1_000_000_000


def shift(real_ns: Callable[[], int]) -> None:
    """Add the offset in the file to Python's clock; C code still gets the machine's time."""

    def time_ns() -> int:
        return real_ns() + int(FILE.read_text()) * NS

    def now() -> float:
        return time_ns() / NS

    time.time_ns, time.time = time_ns, now


shift(time.time_ns)
