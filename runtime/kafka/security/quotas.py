"""Quotas of each principal: requests and bytes per second, as KIP-219 applies them.

A principal that has used more than its share is told so in the response (`throttle_time_ms`), and
its connection is read again only after that time. What one second allows may come at once. All
connections of a principal share its quota.
"""
# pyright: basic

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

MOST_PRINCIPALS: Final = 10_000
"""How many principals are remembered; the longest silent ones are dropped."""
LONGEST_SECONDS: Final = 30.0
"""The longest pause of a connection; what is over its quota then still counts."""

Clock = Callable[[], float]


@dataclass(slots=True)
class _Usage:
    """The use of a principal that its quota has not allowed yet, as of a time."""

    requests: float
    size: float
    at: float


class ClientQuotas:
    """The use of all principals."""

    def __init__(self, requests: int, size: int, clock: Clock = time.monotonic) -> None:
        """Allow each principal so many requests and bytes per second; 0: any number."""
        self._requests, self._size, self._clock = requests, size, clock
        self._usage: OrderedDict[str, _Usage] = OrderedDict()

    def use(self, principal: str, requests: int, size: int) -> float:
        """Count requests and bytes; return for how many seconds the principal has to pause."""
        now = self._clock()
        usage = self._usage.setdefault(principal, _Usage(0.0, 0.0, now))
        self._usage.move_to_end(principal)
        if len(self._usage) > MOST_PRINCIPALS:
            self._usage.popitem(last=False)
        seconds, usage.at = now - usage.at, now
        usage.requests = max(0.0, usage.requests - seconds * self._requests) + requests
        usage.size = max(0.0, usage.size - seconds * self._size) + size
        pauses = _pause(usage.requests, self._requests), _pause(usage.size, self._size)
        return min(LONGEST_SECONDS, max(pauses))


def _pause(used: float, rate: int) -> float:
    """Return how long it takes until use is within a rate, after what one second allows."""
    return max(0.0, used / rate - 1.0) if rate else 0.0


def with_throttle(message: Any, seconds: float) -> Any:
    """Return a response that tells its client the pause, if its version can."""
    milliseconds = int(seconds * 1_000)
    if hasattr(message, "throttle_time"):
        longest = max(message.throttle_time, timedelta(milliseconds=milliseconds))
        return replace(message, throttle_time=longest)
    if hasattr(message, "throttle_time_ms"):
        return replace(message, throttle_time_ms=max(message.throttle_time_ms, milliseconds))
    return message
