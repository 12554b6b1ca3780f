"""Conversations of real clients with a real broker: their bytes are read, and written as they were.

Every client writes in its own way: Connect, Java's consumer, librdkafka, aiokafka, kafka-python.
"""
# pyright: basic

from contextlib import suppress
from typing import Any

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


def read_again(told: Carried) -> bytes | None:
    """Return what `write_again` writes; None: it is refused."""
    with suppress(UnreadableError):
        return write_again(told)
    return None


def frames_of(conversation: Case) -> list[dict[str, Any]]:
    """Return the frames; a conversation without any is of bytes that end a connection."""
    found = [*read_frames(conversation)]
    ended = [each["then"] == "closed" for each in conversation.told["exchanges"] if "then" in each]
    assert found or any(ended)
    return found


def test_what_members_tell_each_other_is_read_and_written_as_it_was(conversation: Case) -> None:
    carried = [*read_carried(conversation)]
    assert [write_again(each) for each in carried] == [each.data for each in carried]


def test_what_a_broker_did_not_pass_on_is_read_or_refused(conversation: Case) -> None:
    carried = [*read_carried(conversation, are_accepted=False)]
    written = [(each, made) for each in carried if (made := read_again(each)) is not None]
    again = [read_again(each._replace(data=made)) for each, made in written]
    assert again == [made for _, made in written], "what is read stays as it is from then on"


LEFT_OUT = {"ZkMigrationReady"}
"""Fields with a tag that the recordings leave out where they have their default."""


def test_every_frame_is_read_and_written_as_it_was(conversation: Case) -> None:
    for told in frames_of(conversation):
        kind = message_class(told["direction"], told["api_key"], told["version"])
        frame = read_frame(bytes.fromhex(told["hex"]), kind)
        assert write_frame(frame).hex() == told["hex"]
        found = spell(frame.message)
        assert {name: found[name] for name in told["fields"]} == told["fields"]
        assert found.keys() - told["fields"].keys() <= LEFT_OUT


def test_every_frame_can_be_written_from_its_fields(conversation: Case) -> None:
    for told in frames_of(conversation):
        kind = message_class(told["direction"], told["api_key"], told["version"])
        header = read_frame(bytes.fromhex(told["hex"]), kind).header
        assert write_frame(Frame(header, build(kind, told["fields"]))).hex() == told["hex"]
