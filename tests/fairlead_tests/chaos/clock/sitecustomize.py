"""Python starts with this where a test has the wall clock of a node's processes in its hand."""

import os
import time
from collections.abc import Callable
from pathlib import Path

FILE = Path(os.environ["CHAOS_CLOCK"])
"""How many seconds the clock is ahead of the machine's."""
NS = 1_000_000_000


def shift(real_ns: Callable[[], int]) -> None:
    """Have Python's clock go by the file; whatever asks C for the time is told the machine's."""

    def time_ns() -> int:
        return real_ns() + int(FILE.read_text()) * NS

    def now() -> float:
        return time_ns() / NS

    time.time_ns, time.time = time_ns, now


shift(time.time_ns)
