"""Conversations of real clients with a real broker: their bytes are read, and written as they were.

Every client writes in its own way: Connect, Java's consumer, librdkafka, aiokafka, kafka-python.
"""
# pyright: basic

from contextlib import suppress

from fairlead.actors.assignors.classic.protocol import VERSIONS
from fairlead.actors.classic.bytes import connect, consumer
from fairlead.actors.classic.bytes.primitives import UnreadableError
from fairlead_tests.conformance.cases import Case
from fairlead_tests.conformance.conversations import Carried, read_carried, read_frames
from fairlead_tests.conformance.frames import (
    Frame,
    build,
    message_class,
    read_frame,
    spell,
    write_frame,
)


def write_again(told: Carried) -> bytes:
    """Return the bytes of what was read by the protocol's reader."""
    version = VERSIONS.get(told.protocol)
    if version is None:
        return write_subscription(told) if told.is_metadata else write_assignment(told)
    if told.is_metadata:
        return connect.encode_metadata(connect.decode_metadata(told.data, version), version)
    return connect.encode_assignment(connect.decode_assignment(told.data, version))


def write_subscription(told: Carried) -> bytes:
    return consumer.encode_subscription(consumer.decode_subscription(told.data))


def write_assignment(told: Carried) -> bytes:
    return consumer.encode_assignment(consumer.decode_assignment(told.data))


def test_what_members_tell_each_other_is_read_and_written_as_it_was(conversation: Case) -> None:
    for told in read_carried(conversation):
        assert write_again(told) == told.data, told


def test_what_a_broker_did_not_pass_on_is_read_or_refused(conversation: Case) -> None:
    for told in read_carried(conversation, are_accepted=False):
        with suppress(UnreadableError):
            write_again(told)


LEFT_OUT = {"ZkMigrationReady"}
"""Fields with a tag that the recordings leave out where they have their default."""


def test_every_frame_is_read_and_written_as_it_was(conversation: Case) -> None:
    for told in read_frames(conversation):
        kind = message_class(told["direction"], told["api_key"], told["version"])
        frame = read_frame(bytes.fromhex(told["hex"]), kind)
        assert write_frame(frame).hex() == told["hex"]
        found = spell(frame.message)
        assert {name: found[name] for name in told["fields"]} == told["fields"]
        assert found.keys() - told["fields"].keys() <= LEFT_OUT


def test_every_frame_can_be_written_from_its_fields(conversation: Case) -> None:
    for told in read_frames(conversation):
        kind = message_class(told["direction"], told["api_key"], told["version"])
        header = read_frame(bytes.fromhex(told["hex"]), kind).header
        assert write_frame(Frame(header, build(kind, told["fields"]))).hex() == told["hex"]
