"""Limits of requests per second, and pauses after failed logins; both in bounded memory."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

MOST_KEPT: Final = 10_000
"""How many principals, addresses and names are kept at most; the oldest are dropped."""
FREE_FAILURES: Final = 5
"""How many logins of an address may fail before it has to pause."""
FREE_FAILURES_OF_NAME: Final = 50
"""How many logins with a name may fail, from anywhere, before each further one is slowed."""
LONGEST_NAME: Final = 128
"""How many characters of a name count; no user has a longer one, but a caller may send one."""
LONGEST_PAUSE: Final = 30.0
NAME_PAUSE: Final = 1.0
FORGOTTEN_SECONDS: Final = 900.0
"""After how long without a failure an address, or a name, is as good as new."""

Clock = Callable[[], float]


def network_of(address: str) -> str:
    """Return what stands for a caller's address: of IPv6 the network of 64 bits, which one has."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return parsed.exploded[:19] if isinstance(parsed, IPv6Address) else address


@dataclass(slots=True)
class _Bucket:
    """The rest of a second's requests, as of a time."""

    left: float
    at: float


class RequestRate:
    """Limits the requests of each principal, or address, by a token bucket of one second."""

    def __init__(self, per_second: int, clock: Clock = time.monotonic) -> None:
        """Allow so many requests per second; 0 is no limit."""
        self._rate, self._clock = per_second, clock
        self._buckets: OrderedDict[Hashable, _Bucket] = OrderedDict()

    def wait_seconds(self, who: Hashable) -> float:
        """Count a request; return 0, or after how long it may be sent again: it does not count."""
        if not self._rate:
            return 0.0
        now = self._clock()
        bucket = self._buckets.setdefault(who, _Bucket(float(self._rate), now))
        self._buckets.move_to_end(who)
        if len(self._buckets) > MOST_KEPT:
            self._buckets.popitem(last=False)
        bucket.left = min(float(self._rate), bucket.left + (now - bucket.at) * self._rate)
        bucket.at = now
        if bucket.left < 1:
            return (1 - bucket.left) / self._rate
        bucket.left -= 1
        return 0.0


@dataclass(slots=True)
class _Failures:
    """How often logins failed, and when the last one did."""

    count: int
    at: float


class FailedLogins:
    """Counts failed logins, and says how long the next one has to wait."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._by_address: OrderedDict[str, _Failures] = OrderedDict()
        self._by_name: OrderedDict[str, _Failures] = OrderedDict()

    def note(self, address: str, name: str) -> None:
        """Count a wrong password of a name, which came from an address."""
        self._count(self._by_address, network_of(address))
        self._count(self._by_name, name[:LONGEST_NAME])

    def address_waits(self, address: str) -> float:
        """Return for how many more seconds no login of an address is looked at."""
        failures = self._recent(self._by_address, network_of(address))
        if failures is None or failures.count <= FREE_FAILURES:
            return 0.0
        pause = min(LONGEST_PAUSE, 2.0 ** (failures.count - FREE_FAILURES - 1))
        return max(0.0, failures.at + pause - self._clock())

    def name_waits(self, name: str) -> float:
        """Return by how many seconds a login with a name is slowed, wherever it comes from."""
        failures = self._recent(self._by_name, name[:LONGEST_NAME])
        is_slowed = failures is not None and failures.count > FREE_FAILURES_OF_NAME
        return NAME_PAUSE if is_slowed else 0.0

    def _count(self, kept: OrderedDict[str, _Failures], key: str) -> None:
        failures = self._recent(kept, key) or _Failures(0, 0.0)
        kept[key] = _Failures(min(failures.count + 1, 1_000), self._clock())
        kept.move_to_end(key)
        if len(kept) > MOST_KEPT:
            kept.popitem(last=False)

    def _recent(self, kept: OrderedDict[str, _Failures], key: str) -> _Failures | None:
        failures = kept.get(key)
        if failures is None or self._clock() - failures.at > FORGOTTEN_SECONDS:
            return None
        return failures
