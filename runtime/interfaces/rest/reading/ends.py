"""The ends of the partitions that groups of Kafka clients read, as the brokers tell them.

They are asked for only while somebody looks: each partition at most every two seconds. One thread
asks, so that a broker that hangs holds up no other request; after a failure the brokers are left
alone for a while.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any, Final, NamedTuple

MOST_PARTITIONS: Final = 10_000
"""So many partitions are asked for at once."""
FRESH_SECONDS: Final = 2.0
KEPT_SECONDS: Final = 60.0
"""For how long an end counts that cannot be asked for again."""
ANSWER_SECONDS: Final = 3.0
"""The timeout of the brokers' answers."""
PAUSE_SECONDS: Final = 5.0
"""The pause after a failure."""
TOO_MANY: Final = f"the brokers are asked for {MOST_PARTITIONS:,} partitions at a time, and no more"
NO_LISTENER: Final = "this node has no brokers to ask: kafka.listeners is not set"

Partition = tuple[str, int]
"""A topic and the number of a partition."""
Read = Callable[[Collection[Partition]], Mapping[Partition, int]]
"""Asks the brokers; raises `EndsUnknown`, which says why they do not answer."""


class EndsUnknown(Exception):  # noqa: N818  # says what happened
    """No broker answers; the message says why."""


class Ends(NamedTuple):
    """The ends of partitions, as far as they are known."""

    offsets: Mapping[Partition, int]
    message: str
    """Why some are not known; empty: they have none."""


class EndOffsets:
    """The ends that were asked for last; thread-safe."""

    def __init__(self, read: Read | None = None, clock: Callable[[], float] = monotonic) -> None:
        """`read` asks the brokers; None: there are none. `clock` tells seconds."""
        self._read, self._clock = read, clock
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ends")
        self._known: dict[Partition, tuple[float, int | None]] = {}
        """When each partition was asked for, and its end; None: it has none."""
        self._silent_until = 0.0
        """When brokers that did not answer are asked again."""
        self._message = ""
        """Why they did not; empty: they did."""

    async def read(self, partitions: Collection[Partition]) -> Ends:
        """Return the ends of partitions, which are all different.

        Those of more than `MOST_PARTITIONS` are not known.
        """
        if self._read is None:
            return Ends({}, NO_LISTENER)
        wanted = sorted(partitions)[:MOST_PARTITIONS]
        look = self._thread.submit(self._look, self._read, wanted)
        ends = await asyncio.wrap_future(look)
        return (
            ends
            if ends.message or len(wanted) == len(partitions)
            else ends._replace(message=TOO_MANY)
        )

    def _look(self, read: Read, wanted: Collection[Partition]) -> Ends:
        now = self._clock()
        for each in [key for key, (at, _) in self._known.items() if now - at > KEPT_SECONDS]:
            del self._known[each]
        due = [each for each in wanted if not self._is_fresh(each, now)]
        if due and now >= self._silent_until:
            self._ask(read, due)
        known = ((each, self._known[each][1]) for each in wanted if each in self._known)
        return Ends({each: end for each, end in known if end is not None}, self._message)

    def _is_fresh(self, partition: Partition, now: float) -> bool:
        return partition in self._known and now - self._known[partition][0] < FRESH_SECONDS

    def _ask(self, read: Read, due: Collection[Partition]) -> None:
        try:
            ends = read(due)
        except EndsUnknown as error:
            self._message = f"the brokers do not say how far partitions were written: {error}"
            self._silent_until = self._clock() + PAUSE_SECONDS
            return
        self._message, now = "", self._clock()
        self._known |= {each: (now, ends.get(each)) for each in due}


def ask_brokers(kafka: Mapping[str, Any]) -> Read:
    """Return what asks the brokers of a node; `kafka` as `RestBrief` has it."""

    def read(partitions: Collection[Partition]) -> Mapping[Partition, int]:
        # Only nodes with a listener have the extra that this needs.
        from ....kafka.broker.ends import BrokersSilent, read_ends  # noqa: PLC0415

        try:
            return read_ends(kafka["brokers"], kafka["upstream"], partitions, ANSWER_SECONDS)
        except BrokersSilent as silent:
            raise EndsUnknown(str(silent)) from None

    return read
