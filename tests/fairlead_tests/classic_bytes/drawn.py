"""Hypothesis strategies for values of the classic protocols, and valid or corrupted bytes."""
# pyright: basic

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from hypothesis import strategies as st

from fairlead.actors.assignors.classic.protocol import EAGER, ReceivedAssignment
from fairlead.actors.classic.bytes import connect, consumer
from fairlead.actors.classic.bytes.connect import WorkerMetadata
from fairlead.actors.classic.bytes.consumer import PartitionAssignment, Subscription
from fairlead.events.model import Resource

int16, int32, int64 = (st.integers(-(2**bits), 2**bits - 1) for bits in (15, 31, 63))
names = st.sampled_from(["", "a", "b", "ü"]) | st.text(st.characters(codec="utf-8"), max_size=9)
user_data = st.none() | st.binary(max_size=9)
resources = st.lists(st.builds(Resource, names, st.integers(-1, 3) | int32), max_size=6).map(tuple)

incremental = st.builds(
    ReceivedAssignment,
    resources,
    resources,
    int32,
    int64,
    int16,
    names,
    names,
    st.sampled_from([1, 2]),
)
worker_assignments = incremental | incremental.map(
    lambda each: replace(each, revoked=(), delay_ms=0, version=EAGER)
)
worker_metadata = st.builds(WorkerMetadata, names, int64, st.none() | incremental)
offers = st.tuples(worker_metadata, st.integers(0, 2))
"""A worker's metadata, and the version of its encoding."""

subscriptions = st.builds(
    Subscription,
    st.lists(names, max_size=4).map(tuple),
    user_data,
    resources,
    int32,
    st.none() | names,
    st.integers(0, 3),
)
consumer_assignments = st.builds(PartitionAssignment, resources, user_data, st.integers(0, 3))

written = st.one_of(
    worker_assignments.map(connect.encode_assignment),
    offers.map(lambda offer: connect.encode_metadata(*offer)),
    subscriptions.map(consumer.encode_subscription),
    consumer_assignments.map(consumer.encode_assignment),
)

HOSTILE = [
    bytes.fromhex(each)
    for each in ("7fffffff", "80000000", "ffffffff", "7fff", "8000", "ffff", "00", "c328", "eda080")
]
"""Edge cases: greatest, least, null, empty, and invalid UTF-8."""

edits = st.tuples(
    st.sampled_from(["put", "insert", "cut", "drop"]),
    st.integers(0, 300),
    st.sampled_from(HOSTILE) | st.binary(max_size=6),
)


def edit(data: bytes, told: list[tuple[str, int, bytes]]) -> bytes:
    """Return the bytes with each edit made, one after the other."""
    for kind, place, piece in told:
        at = place % (len(data) + 1)
        match kind:
            case "put":
                data = data[:at] + piece + data[at + len(piece) :]
            case "insert":
                data = data[:at] + piece + data[at:]
            case "cut":
                data = data[:at]
            case _:
                data = data[:at] + data[at + len(piece) :]
    return data


def edited(whole: st.SearchStrategy[bytes], most: int) -> st.SearchStrategy[bytes]:
    """Corrupted bytes: overwritten, inserted, truncated or removed in so many places."""
    return st.builds(edit, whole, st.lists(edits, min_size=1, max_size=most))


READERS: dict[str, Callable[[bytes], Any]] = {
    "eager-metadata": partial(connect.decode_metadata, version=0),
    "metadata": partial(connect.decode_metadata, version=1),
    "eager-assignment": partial(connect.decode_assignment, version=0),
    "assignment": partial(connect.decode_assignment, version=2),
    "subscription": consumer.decode_subscription,
    "consumer-assignment": consumer.decode_assignment,
}
"""The decoders of each type of bytes; Connect's depend on the version of the group."""
