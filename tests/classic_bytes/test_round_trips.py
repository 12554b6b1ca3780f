"""What is written is read as it was, and as others read and write it."""
# pyright: basic

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError

from fairlead.actors.assignors.classic.protocol import EAGER, MODES, ReceivedAssignment
from fairlead.actors.classic.bytes import connect, consumer
from fairlead.actors.classic.bytes.primitives import (
    LONGEST_ASSIGNMENT,
    LONGEST_METADATA,
    UnreadableError,
    UnwritableError,
)
from fairlead.events.model import Resource
from fairlead_tests.classic_bytes.drawn import (
    consumer_assignments,
    edited,
    offers,
    subscriptions,
    worker_assignments,
    worker_metadata,
)


def grouped(resources: Sequence[Resource]) -> Sequence[Resource]:
    """All of one name side by side, names by first mention."""
    order = list(dict.fromkeys(each.connector for each in resources))
    return tuple(sorted(resources, key=lambda each: order.index(each.connector)))


def as_written(assignment: ReceivedAssignment) -> ReceivedAssignment:
    """The assignment with its resources in the order in which Connect writes them."""

    def in_order(resources: Sequence[Resource]) -> Sequence[Resource]:
        connectors = dict.fromkeys(each for each in resources if not each.is_task)
        return grouped((*connectors, *(each for each in resources if each.is_task)))

    return replace(
        assignment,
        assigned=in_order(assignment.assigned),
        revoked=in_order(assignment.revoked),
    )


@given(worker_assignments)
def test_an_assignment_of_connect_is_read_as_it_was_written(told: ReceivedAssignment) -> None:
    data = connect.encode_assignment(told)
    assert connect.decode_assignment(data, told.version) == as_written(told)


@given(offers)
def test_metadata_of_a_worker_is_read_as_it_was_written(
    told: tuple[connect.WorkerMetadata, int],
) -> None:
    metadata, version = told
    allocation = metadata.allocation
    if version == EAGER:
        allocation = None
    elif allocation is not None:
        allocation = as_written(replace(allocation, version=version))
    found = connect.decode_metadata(connect.encode_metadata(metadata, version), version)
    assert found == replace(metadata, allocation=allocation)


@given(worker_metadata, st.sampled_from([*MODES]))
def test_a_worker_offers_the_same_state_in_every_version(
    metadata: connect.WorkerMetadata, mode: str
) -> None:
    offered = [
        connect.decode_metadata(data, 1) for _, data in connect.encode_offers(mode, metadata)
    ]
    assert {(each.url, each.config_offset) for each in offered} == {
        (metadata.url, metadata.config_offset)
    }


OF_LEADER = ReceivedAssignment(config_offset=8, leader="L", leader_url="http://l/")
HEAD = connect.encode_assignment(replace(OF_LEADER, version=EAGER))[:-4]
"""An assignment up to what is assigned."""

NULL, NONE = b"\xff\xff\xff\xff", bytes(4)


@pytest.mark.parametrize(
    "tail", [b"", NULL, NONE, NONE + NULL, NONE + b"\x80\x00\x00\x00", NULL + NONE + NONE]
)
def test_lists_and_the_delay_may_be_missing_at_the_end_and_lists_may_be_null(tail: bytes) -> None:
    assert connect.decode_assignment(b"\x00\x01" + HEAD[2:] + tail, 1) == OF_LEADER


@pytest.mark.parametrize("tail", [b"", NULL])
def test_in_version_0_a_list_is_there(tail: bytes) -> None:
    with pytest.raises(UnreadableError):
        connect.decode_assignment(HEAD + tail, EAGER)


@pytest.mark.parametrize("tail", [NONE + b"\x00", NONE * 2 + b"\x00\x00\x00"])
def test_a_field_is_whole_or_missing(tail: bytes) -> None:
    with pytest.raises(UnreadableError):
        connect.decode_assignment(HEAD + tail, 1)


def kio_class(name: str, version: int) -> Any:
    """The class that others have made of Kafka's own schema, for this version."""
    module = import_module(f"kio.schema.consumer_protocol_{name}.v{version}.data")
    return getattr(module, f"ConsumerProtocol{name.title()}")


def kio_read(name: str, version: int, data: bytes) -> tuple[Any, int]:
    """What others make of the bytes, and how many they read."""
    found, size = entity_reader(kio_class(name, version))(data, 2)
    return found, 2 + size


def kio_write(message: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(message))(out, message)
    version: int = message.__version__
    return version.to_bytes(2) + out.getvalue()


def flat(topics: Any) -> Sequence[Resource]:
    """The partitions of all topics; TypeError where a list is null."""
    return tuple(Resource(each.topic, number) for each in topics for number in each.partitions)


def ours(theirs: Any) -> consumer.Subscription | consumer.PartitionAssignment:
    """The value that we have for a message of others."""
    version = theirs.__version__
    if hasattr(theirs, "assigned_partitions"):
        partitions = flat(theirs.assigned_partitions)
        return consumer.PartitionAssignment(partitions, theirs.user_data, version)
    return consumer.Subscription(
        tuple(theirs.topics),
        theirs.user_data,
        flat(getattr(theirs, "owned_partitions", ())),
        getattr(theirs, "generation_id", -1),
        getattr(theirs, "rack_id", None),
        version,
    )


@given(subscriptions)
def test_a_subscription_is_what_kafkas_schema_says(told: consumer.Subscription) -> None:
    data = consumer.encode_subscription(told)
    theirs, size = kio_read("subscription", told.version, data)
    assert (size, kio_write(theirs)) == (len(data), data)
    found = consumer.decode_subscription(data)
    assert found == ours(theirs)
    newest = replace(found, owned=told.owned, generation=told.generation, rack=told.rack)
    assert newest == told
    if told.version == consumer.NEWEST:
        assert found == replace(told, owned=grouped(told.owned))


@given(consumer_assignments)
def test_an_assignment_of_consumers_is_what_kafkas_schema_says(
    told: consumer.PartitionAssignment,
) -> None:
    data = consumer.encode_assignment(told)
    theirs, size = kio_read("assignment", told.version, data)
    assert (size, kio_write(theirs)) == (len(data), data)
    found = consumer.decode_assignment(data)
    assert found == ours(theirs) == replace(told, partitions=grouped(told.partitions))


def check_as_others(name: str, read: Callable[[bytes], Any], data: bytes) -> None:
    """Check that what others can read of bytes is read in the same way."""
    version = int.from_bytes(data[:2], signed=True)
    try:
        theirs, _ = kio_read(name, min(max(version, 0), consumer.NEWEST), data)
    except (SerialError, ValueError):
        return  # they are the stricter ones: see test_any_bytes
    try:
        expected = ours(theirs) if version >= 0 else None
    except TypeError:
        expected = None  # they take null for any list
    if expected is not None:
        assert read(data) == expected
    else:
        with pytest.raises(UnreadableError):
            read(data)


@given(edited(subscriptions.map(consumer.encode_subscription), most=1))
def test_a_spoilt_subscription_that_others_can_read_is_read_in_the_same_way(data: bytes) -> None:
    check_as_others("subscription", consumer.decode_subscription, data)


@given(edited(consumer_assignments.map(consumer.encode_assignment), most=1))
def test_a_spoilt_assignment_that_others_can_read_is_read_in_the_same_way(data: bytes) -> None:
    check_as_others("assignment", consumer.decode_assignment, data)


def test_a_newer_version_is_read_as_the_newest_and_what_it_appends_is_ignored() -> None:
    told = consumer.Subscription(("t",), None, (Resource("t", 1),), 7, "north")
    data = consumer.encode_subscription(told)
    assert consumer.decode_subscription(b"\x00\x09" + data[2:] + b"more") == told


def test_a_client_that_says_version_1_and_names_no_owned_partitions_owns_nothing() -> None:
    data = consumer.encode_subscription(consumer.Subscription(("t",), b"", version=0))
    found = consumer.decode_subscription(b"\x00\x01" + data[2:])
    assert found == consumer.Subscription(("t",), b"", version=1)


WRONG = {
    "a version after the last": replace(OF_LEADER, version=3),
    "a version before the first": replace(OF_LEADER, version=-1),
    "no leader": replace(OF_LEADER, leader=None),
    "no leader's url": replace(OF_LEADER, leader_url=None),
    "a name that is too long": replace(OF_LEADER, leader="x" * 32_768),
    "a lone surrogate": replace(OF_LEADER, leader="\ud800"),
    "an error that is too large": replace(OF_LEADER, error=2**15),
    "a delay that is too long": replace(OF_LEADER, delay_ms=2**31),
    "an offset that is too large": replace(OF_LEADER, config_offset=2**63),
    "a task that is too large": replace(
        OF_LEADER, assigned=(Resource("a", 0), Resource("a", 2**31))
    ),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_an_assignment_that_has_no_bytes_is_refused(wrong: ReceivedAssignment) -> None:
    with pytest.raises(UnwritableError):
        connect.encode_assignment(wrong)


def test_an_assignment_of_too_many_tasks_is_refused() -> None:
    many = tuple(Resource("a", n) for n in range(LONGEST_ASSIGNMENT // 4))
    with pytest.raises(UnwritableError):
        connect.encode_assignment(replace(OF_LEADER, assigned=many))


def test_metadata_above_the_bound_is_not_written() -> None:
    many = tuple(Resource("a", task) for task in range(LONGEST_METADATA // 4))
    metadata = connect.WorkerMetadata("http://w/", 5, replace(OF_LEADER, assigned=many))
    assert len(connect.encode_metadata(metadata, 0)) < 100
    with pytest.raises(UnwritableError, match=str(LONGEST_METADATA)):
        connect.encode_metadata(metadata, 1)
    with pytest.raises(UnwritableError, match=str(LONGEST_METADATA)):
        consumer.encode_subscription(consumer.Subscription(("t" * 30_000,) * 9))


@pytest.mark.parametrize("version", [-1, 4])
def test_a_version_that_nobody_has_is_not_written(version: int) -> None:
    with pytest.raises(UnwritableError):
        consumer.encode_assignment(consumer.PartitionAssignment((), version=version))
