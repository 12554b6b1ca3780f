# pyright: basic
"""Reads the dead letters in a topic, the newest first, a window of offsets at a time.

A topic can only be read forwards. So the last offsets of each partition are read as one window, of
which the newest records are returned; the next window ends where these begin. A window whose
records are too large is read again in half.
"""

import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from heapq import merge
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition

from ....batches.naming import describe_position
from ....spi.errors import CursorRefused, LettersRefused, SinkAway
from ....spi.offsets import SeekEnd
from ....spi.rows import ERROR_STAGES, RECORD_PLACE, DeadLetter, LetterPage, LetterQuery
from ..call_timeout import end_in_background
from ..cluster import (
    LATE,
    OUT_OF_RANGE,
    PARTITION_END,
    KafkaCluster,
    LastError,
    TopicPlace,
    make_client,
)
from ..connection import SERVERS, Settings
from ..source.reader import DEFAULTS, OWN_SETTINGS, headers_of

if TYPE_CHECKING:
    from confluent_kafka import Message

_MOST_BYTES: Final = 4 << 20
"""How large the records of a window may be, unless it has one record of each partition."""
_MOST_WINDOWS: Final = 16
"""How many windows are read for one page."""
_SILENCE_S: Final = 6.0
"""How long no record may come before the brokers are away."""
_WAIT_S: Final = 0.2
_CHUNK: Final = 50
"""How many records are consumed between two looks at their size."""
_FETCHED: Final[Settings] = {
    "fetch.max.bytes": _MOST_BYTES,
    "queued.max.messages.kbytes": _MOST_BYTES >> 10,
    "fetch.wait.max.ms": 50,  # the next window waits for the fetch of the one before
    "group.id": "fairlead",  # librdkafka needs a group's name, but joins none
}
_HEADER: Final = "__connect.errors."
_STAGES: Final = {name: stage for stage, name in ERROR_STAGES.items()}
_BESIDE: Final = ("file", "row")
"""Names of a position beside those of a record."""

_Offsets = dict[TopicPlace, int]


class _Record(NamedTuple):
    """A record of the topic, as a letter."""

    place: TopicPlace
    offset: int
    connector: str
    """The connector that has written it; empty: it has no headers."""
    letter: DeadLetter


class LetterRecords:
    """The dead letters of one connector in a topic."""

    def __init__(self, settings: Settings, cluster: KafkaCluster, topic: str) -> None:
        """Read with a consumer of these settings; raises `ConfigInvalid`."""
        self._cluster = cluster
        self._topic = topic
        self._servers = settings.get(SERVERS)
        self._trouble = LastError()
        self._consumer: Consumer = make_client(
            Consumer, {**DEFAULTS, **settings}, self._trouble, **OWN_SETTINGS, **_FETCHED
        )

    def read(self, connector: str, query: LetterQuery) -> LetterPage:
        """Return a page; raises `CursorRefused`, `LettersRefused`, `SinkAway`, `ConfigInvalid`."""
        facts = self._cluster.facts([self._topic]).get(self._topic)
        if facts is None:
            raise LettersRefused(
                f"topic {self._topic} does not exist: the connector creates it when its first task "
                "starts"
            )
        places = [TopicPlace(self._topic, number) for number in range(facts.partitions)]
        first = dict(self._cluster.offsets(places, SeekEnd.EARLIEST))
        ends = dict(self._cluster.offsets(places, SeekEnd.LATEST))
        if query.cursor:
            before = _parse(self._topic, query.cursor)
            ends = {place: min(end, before.get(place, 0)) for place, end in ends.items()}
        # Each transaction has a mark among its records, and often a single letter.
        letters, width = list[DeadLetter](), 2 * query.limit
        for _ in range(_MOST_WINDOWS):
            ends = {place: end for place, end in ends.items() if end > first[place]}
            if not ends or len(letters) == query.limit:
                break
            begins = {place: max(first[place], end - width) for place, end in ends.items()}
            records = self._read_window(begins, ends, may_be_large=width == 1)
            if records is None:
                width //= 2
                continue
            newest, ends = _newest(records, begins, connector, query.limit - len(letters))
            letters += newest
        letters.sort(key=attrgetter("time_ms"), reverse=True)
        is_all = all(end <= first[place] for place, end in ends.items())
        return LetterPage(letters, None if is_all else _spell(ends), f"the topic {self._topic}")

    def close(self) -> None:
        """Close the consumer, without waiting for it."""
        end_in_background(self._consumer.close)

    def _read_window(
        self, begins: _Offsets, ends: _Offsets, *, may_be_large: bool
    ) -> Sequence[_Record] | None:
        """Return the records between these offsets; None: they are too large."""
        records, size = list[_Record](), 0
        for place, message in self._consume(begins, ends):
            records.append(_record(place, message))
            size += len(message)
            if size > _MOST_BYTES and not may_be_large:
                return None
        return records

    def _consume(self, begins: _Offsets, ends: _Offsets) -> "Iterator[tuple[TopicPlace, Message]]":
        """Yield the messages between these offsets; raises `SinkAway`, `ConfigInvalid`."""
        self._consumer.assign([TopicPartition(*place, at) for place, at in begins.items()])
        pending, silent_at = {*ends}, time.monotonic() + _SILENCE_S
        while pending:
            came = self._consumer.consume(_CHUNK, _WAIT_S)
            for each in came:
                place, offset = TopicPlace(each.topic() or "", each.partition() or 0), each.offset()
                if (error := each.error()) is not None:
                    pending -= {place} if self._is_at_end(place, error) else set()
                    continue
                if (offset or 0) < ends[place]:
                    yield place, each
                if (offset or 0) >= ends[place] - 1:
                    pending.discard(place)
            if came:
                silent_at = time.monotonic() + _SILENCE_S
            elif time.monotonic() > silent_at:
                raise self._trouble.reason(KafkaError(LATE), self._servers, SinkAway)

    def _is_at_end(self, place: TopicPlace, error: KafkaError) -> bool:
        """Return whether a partition has no record any more; raises `SinkAway`."""
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise SinkAway(f"topic {place.topic}: {error.str()}")
        if error.code() in OUT_OF_RANGE:
            raise SinkAway(f"records of {place} were removed while they were read: ask again")
        self._trouble(error)
        return bool(error.code() == PARTITION_END)


def _newest(
    records: Sequence[_Record], begins: _Offsets, connector: str, most: int
) -> tuple[list[DeadLetter], _Offsets]:
    """Return the newest letters of a window, and the offsets where the others end."""
    by_place = {place: [each for each in records if each.place == place] for place in begins}
    newest = merge(
        *(reversed(each) for each in by_place.values()),
        key=lambda record: -record.letter.time_ms,
    )
    letters, ends = list[DeadLetter](), dict(begins)
    for record in newest:
        is_own = record.connector in {"", connector}
        if is_own and len(letters) == most:
            for each in (record, *newest):
                ends[each.place] = max(ends[each.place], each.offset + 1)
            break
        letters += [record.letter] if is_own else []
    return letters, ends


def _record(place: TopicPlace, message: "Message") -> _Record:
    """Return a record as a letter."""
    pairs, _ = headers_of([message])
    headers = {
        name.removeprefix(_HEADER): _text(value or b"")
        for name, value in pairs[0] or ()
        if name.startswith(_HEADER)
    }
    position = {name: headers[name] for name in (*RECORD_PLACE, *_BESIDE) if headers.get(name)}
    stage, task, value = headers.get("stage", ""), headers.get("task.id", ""), message.value()
    letter = DeadLetter(
        message.timestamp()[1],
        headers.get("exception.message", ""),
        _STAGES.get(stage, stage),
        describe_position(position or {"record": f"{message.offset()} of {place}"}),
        None if value is None else _text(value),
        int(task) if task.isdecimal() else None,
    )
    return _Record(place, message.offset() or 0, headers.get("connector.name", ""), letter)


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


def _parse(topic: str, cursor: str) -> _Offsets:
    """Return the offsets in a cursor, by partition; raises `CursorRefused`."""
    try:
        pairs = [each.split(":") for each in urlsafe_b64decode(cursor).decode().split(",")]
        return {TopicPlace(topic, int(number)): int(end) for number, end in pairs}
    except ValueError:
        raise CursorRefused from None


def _spell(offsets: _Offsets) -> str:
    """Return offsets as a cursor."""
    text = ",".join(f"{place.partition}:{end}" for place, end in offsets.items())
    return urlsafe_b64encode(text.encode()).decode()
