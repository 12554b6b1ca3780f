"""Whatever bytes a client sends: a value, or the one named error, and memory within a bound."""
# pyright: basic

import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead.actors.classic.bytes import connect, consumer
from fairlead.actors.classic.bytes.primitives import (
    LONGEST_ASSIGNMENT,
    LONGEST_METADATA,
    UnreadableError,
)
from fairlead_tests.classic_bytes.drawn import (
    READERS,
    edited,
    worker_metadata,
    written,
)

MOST_TIMES, MOST_BESIDE = 40, 20_000
"""So many times the bytes, and so many bytes beside, is all that reading may take."""
RUNS = 3


def read(data: bytes, reader: str) -> Any:
    """Return what is read, or the named error; check what memory that took.

    What other threads of the process allocate meanwhile is counted as well: one of a few runs is
    enough.
    """
    for _ in range(RUNS):
        found, peak = read_once(data, reader)
        if peak < MOST_TIMES * len(data) + MOST_BESIDE:
            return found
    raise AssertionError(f"to read {len(data)} bytes took {peak}")


def read_once(data: bytes, reader: str) -> tuple[Any, int]:
    """Return what is read, or the named error, and how many bytes were allocated at most."""
    tracemalloc.start()
    try:
        found: Any = READERS[reader](data)
    except UnreadableError as refused:
        found = refused
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return found, peak


@pytest.mark.parametrize("reader", READERS)
@given(data=st.binary(max_size=300) | edited(written, most=4))
@example(data=b"")
def test_bytes_of_anybody_are_a_value_or_the_named_error(reader: str, data: bytes) -> None:
    assert read(data, reader) is not None


@pytest.mark.parametrize("reader", READERS)
@given(data=written)
def test_bytes_cut_anywhere_are_a_value_or_the_named_error(reader: str, data: bytes) -> None:
    for end in range(len(data)):
        assert read(data[:end], reader) is not None


LONGEST = {
    "metadata": LONGEST_METADATA,
    "eager-metadata": LONGEST_METADATA,
    "subscription": LONGEST_METADATA,
    "assignment": LONGEST_ASSIGNMENT,
    "eager-assignment": LONGEST_ASSIGNMENT,
    "consumer-assignment": LONGEST_ASSIGNMENT,
}


@pytest.mark.parametrize("reader", READERS)
def test_bytes_above_the_bound_are_not_even_looked_at(reader: str) -> None:
    refused = read(bytes(LONGEST[reader] + 1), reader)
    assert isinstance(refused, UnreadableError)
    assert str(LONGEST[reader]) in str(refused)


COUNTS = {
    "topics": (consumer.decode_subscription, "0000"),
    "owned": (consumer.decode_subscription, "0001 00000000 ffffffff"),
    "partitions": (consumer.decode_assignment, "0003 00000001 0001 74"),
    "assigned": (READERS["assignment"], "0001 0000 0000 0000 0000000000000000"),
    "revoked": (READERS["assignment"], "0001 0000 0000 0000 0000000000000000 00000000"),
}


@pytest.mark.parametrize("place", COUNTS)
def test_a_count_is_held_against_the_bytes_that_are_left(place: str) -> None:
    reader, head = COUNTS[place]
    with pytest.raises(UnreadableError, match="2147483647 elements in 9 bytes"):
        reader(bytes.fromhex(head + "7fffffff") + bytes(9))


@pytest.mark.parametrize("length", [-1, -2, -(2**15)])
def test_any_negative_length_is_null_and_refused_where_null_may_not_be(length: int) -> None:
    string, data = struct.pack(">h", length), struct.pack(">i", length)
    subscription = bytes(6) + data
    assert consumer.decode_subscription(subscription).user_data is None
    newest = b"\x00\x03" + subscription[2:] + bytes(8) + string
    assert consumer.decode_subscription(newest) == consumer.Subscription((), generation=0)
    metadata = connect.decode_metadata(b"\x00\x01" + bytes(10) + data, 1)
    assert metadata == connect.WorkerMetadata("", 0)
    with pytest.raises(UnreadableError, match="null"):
        connect.decode_metadata(bytes(2) + string + bytes(8), 0)
    with pytest.raises(UnreadableError, match="null"):
        consumer.decode_assignment(bytes(2) + data + b"\xff" * 4)


def test_what_takes_the_most_memory_stays_within_the_bound() -> None:
    count = (LONGEST_ASSIGNMENT - 19) // 4
    numbers = struct.pack(f">{count}i", *range(1_000, 1_000 + count))
    one_topic = struct.pack(">hih1si", 3, 1, 1, b"t", count) + numbers + b"\xff" * 4
    assert len(read(one_topic, "consumer-assignment").partitions) == count
    count = (LONGEST_METADATA - 10) // 3
    topics = struct.pack(">hi", 0, count) + b"\x00\x01\xff" * count + b"\xff" * 4
    assert read(topics, "subscription").topics == ("\ufffd",) * count


@given(metadata=worker_metadata)
def test_a_reader_of_version_0_takes_newer_metadata(metadata: connect.WorkerMetadata) -> None:
    newer = connect.encode_metadata(metadata, 2)
    found = connect.decode_metadata(newer, 0)
    assert found == connect.WorkerMetadata(metadata.url, metadata.config_offset)
