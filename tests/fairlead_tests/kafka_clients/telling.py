"""The JSON lines that consumer processes print as events."""
# pyright: basic

import json
import select
import sys
import time
from collections.abc import Iterable
from typing import Any

POLL_SECONDS = 0.02
STARTED_SECONDS = 0.1


def tell(what: str, **told: Any) -> None:
    """Write one event, with the time by the clock that all processes have in common."""
    print(json.dumps({"what": what, "at": time.monotonic(), **told}), flush=True)


def tell_start() -> None:
    """Print that all is loaded, then wait a moment before the first request."""
    tell("started")
    time.sleep(STARTED_SECONDS)


def numbers(partitions: Iterable[Any]) -> list[int]:
    """Return the numbers of partitions."""
    return [each.partition for each in partitions]


def has_to_leave() -> bool:
    """Return whether the input has ended."""
    return bool(select.select([sys.stdin], [], [], 0)[0])
