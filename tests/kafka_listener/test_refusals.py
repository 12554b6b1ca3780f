"""What is no request that is served here closes the connection, is counted, and nothing else."""
# pyright: basic

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.actors.classic.bytes.consumer import Subscription, encode_subscription
from fairlead.runtime.kafka import connection, server
from fairlead.runtime.kafka.client import stream, timeout
from fairlead.runtime.kafka.counts import Counts
from fairlead.runtime.kafka.security.access import ListenerAccess
from fairlead.runtime.kafka.server import Limits
from fairlead.runtime.kafka.wire import bounds
from fairlead.runtime.kafka.wire.bounds import Budget
from fairlead.runtime.kafka.wire.frames import HEAD
from fairlead.runtime.kafka.wire.served import (
    CONSUMER_GROUP_HEARTBEAT,
    JOIN_GROUP,
    SYNC_GROUP,
)
from fairlead_tests.conformance.frames import Frame, build, message_class, write_frame
from fairlead_tests.kafka_listener.behind import LIST_OFFSETS, behind
from fairlead_tests.kafka_listener.served import ENOUGH, Served, listening
from fairlead_tests.kafka_listener.spoken import ask, asking, told

INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID, INVALID_REQUEST = 23, 25, 42
BEAT = bytes.fromhex("000c000400000001ffff00026100000001026200" + "00")
"""A Heartbeat of member b in group a."""
HOSTILE = {
    "size -1": ("ffffffff", "length"),
    "size 2 GiB": ("7fffffff7878787878787878", "length"),
    "size 0": ("00000000", "length"),
    "two bytes": ("00000002000c", "length"),
    "an HTTP request": (b"GET / HTTP/1.1\r\n\r\n".hex(), "length"),
    "an unknown call": ("0000000a270f000000000001ffff", "unknown call"),
    "a call below zero": ("0000000affff000000000001ffff", "unknown call"),
    "a version to come": ("0000000b000b000a00000001ffff00", "unknown call"),
    "StreamsGroupHeartbeat": ("0000000b0058000000000001ffff00", "unknown call"),
    "a string of 2 GiB": ("00000010000c000400000001ffff00ffffffff7f", "malformed"),
    "cut short": ("0000000d000c000400000001ffff000261", "malformed"),
    "trailing bytes": (
        "00000019000c000400000001ffff00026100000001026200007461696c",
        "trailing bytes",
    ),
    "no UTF-8": ("00000016000c000400000001ffff0003c3280000000102620000", "malformed"),
    "a great array": ("00000013000d000500000001ffff000261ffffffff0700", "malformed"),
    "an array of 35 bits": ("00000013000d000500000001ffff000261ffffffff7f00", "malformed"),
    "a client id beyond the frame": ("0000000b000c00040000000101f400", "malformed"),
    "an endless varint": ("00000010000c000400000001ffffffffffffffff", "malformed"),
    "a null group id": ("00000014000c000400000001ffff00000000000102620000", "malformed"),
}


def serving(
    folder: Path, play: Callable[[Served], Awaitable[Any]], limits: Limits = ENOUGH
) -> None:
    """Play against a listener that has no broker behind it."""

    async def run() -> None:
        async with listening(folder, limits=limits) as served:
            await play(served)

    asyncio.run(run())


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_close_the_connection_and_harm_nobody_else(tmp_path: Path, name: str) -> None:
    sent, reason = HOSTILE[name]

    async def play(served: Served) -> None:
        other, hostile = await served.dial(), await served.dial()
        hostile.writer.write(bytes.fromhex(sent))
        assert await hostile.receive() == b""
        assert served.counts.reasons == [reason]
        assert await other.asks(BEAT)

    serving(tmp_path, play)


def test_null_where_an_array_must_be_is_refused(tmp_path: Path) -> None:
    leave = bytes.fromhex("000d000500000001ffff00" + "0261" + "00" + "00")

    async def play(served: Served) -> None:
        client = await served.dial()
        assert await client.asks(leave) == b""
        assert served.counts.reasons == ["malformed"]

    serving(tmp_path, play)


@pytest.mark.parametrize("names", [(None, "range"), ("consumer", None)])
def test_who_asks_for_an_assignment_says_of_which_protocol_before_all_else(
    tmp_path: Path, names: tuple[str | None, str | None]
) -> None:
    async def play(served: Served) -> None:
        client = await served.dial()
        fields = {"GroupId": "a", "GenerationId": 1, "MemberId": "b", "Assignments": []}
        said = dict(zip(("ProtocolType", "ProtocolName"), names, strict=True))
        answers = [
            await ask(client, SYNC_GROUP, 5, **fields, **said),
            await ask(client, SYNC_GROUP, 4, **fields),  # which has no such fields
        ]
        errors = [each["ErrorCode"] for each in answers]
        assert errors == [INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID]

    serving(tmp_path, play)


@pytest.mark.parametrize("epoch", [-1, 1])
def test_only_a_consumer_that_joins_may_leave_its_id_to_the_group(
    tmp_path: Path, epoch: int
) -> None:
    fields = {"GroupId": "a", "MemberId": "", "MemberEpoch": epoch, "TopicPartitions": None}

    async def play(served: Served) -> None:
        client = await served.dial()
        answer = await ask(client, CONSUMER_GROUP_HEARTBEAT, 0, **fields)
        assert answer["ErrorCode"] == INVALID_REQUEST

    serving(tmp_path, play)


def test_a_consumer_of_many_topics_joins_by_the_classic_protocol(tmp_path: Path) -> None:
    names = [f"warehouse.inventory.changes-{number:04}" for number in range(3_000)]
    metadata = "hex:" + encode_subscription(Subscription(names)).hex()
    fields: dict[str, Any] = {"GroupId": "a", "MemberId": "", "ProtocolType": "consumer"}
    fields |= {"SessionTimeoutMs": 10_000, "RebalanceTimeoutMs": 10_000}
    fields["Protocols"] = [
        {"Name": name, "Metadata": metadata} for name in ("range", "cooperative-sticky")
    ]

    async def play(served: Served) -> None:
        client = await served.dial()
        answer = await ask(client, JOIN_GROUP, 3, **fields)
        assert (answer["ErrorCode"], answer["GenerationId"]) == (0, 1)
        assert [each["Metadata"] for each in answer["Members"]] == [metadata]

    serving(tmp_path, play)


def test_what_is_decoded_here_has_at_most_a_mebibyte(tmp_path: Path) -> None:
    async def play(served: Served) -> None:
        client = await served.dial()
        client.writer.write((bounds.LONGEST_DECODED + 1).to_bytes(4) + BEAT)
        assert await client.receive() == b""
        assert served.counts.reasons == ["too long to decode"]

    serving(tmp_path, play)


def test_metadata_that_nobody_can_read_is_refused_and_wedges_no_group(tmp_path: Path) -> None:
    def joining(metadata: bytes, member_id: str = "") -> bytes:
        kind = message_class("request", 11, 3)
        header = kind.__header_schema__(
            request_api_key=11, request_api_version=3, correlation_id=1, client_id="c"
        )
        told = {
            "GroupId": "g",
            "SessionTimeoutMs": 6_000,
            "RebalanceTimeoutMs": 6_000,
            "MemberId": member_id,
            "ProtocolType": "consumer",
            "Protocols": [{"Name": "range", "Metadata": f"hex:{metadata.hex()}"}],
        }
        return write_frame(Frame(header, build(kind, told)))

    async def play(served: Served) -> None:
        bad, good = await served.dial(), await served.dial()
        answer = await bad.asks(joining(b"\0\1garbage"))
        assert int.from_bytes(answer[8:10]) == 23, "INCONSISTENT_GROUP_PROTOCOL"
        answer = await good.asks(joining(bytes.fromhex("00010000000100027434ffffffff00000000")))
        assert int.from_bytes(answer[8:10]) == 0

    serving(tmp_path, play)


@pytest.mark.parametrize("sent", [b"\0", b"\0\0\0\x20", b"\0\0\0\x20\0\x0c\0\4\0\0\0\1\0"])
def test_a_request_that_does_not_come_to_its_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connection, "FRAME_SECONDS", 0.05)
    monkeypatch.setattr(server, "SWEEP_SECONDS", 0.01)

    async def play(served: Served) -> None:
        slow, other = await served.dial(), await served.dial()
        slow.writer.write(sent)
        assert await slow.receive() == b""
        assert served.counts.reasons == ["half-sent"]
        assert await other.asks(BEAT), "who has sent nothing yet may wait"

    serving(tmp_path, play)


def test_a_connection_that_says_nothing_is_closed_after_a_while_and_is_no_offence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeout, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(server, "SWEEP_SECONDS", 0.01)

    async def play(served: Served) -> None:
        idle = await served.dial()
        assert await idle.receive() == b""
        assert served.counts.reasons == []

    serving(tmp_path, play)


@pytest.mark.parametrize("limits", [Limits(2, 9), Limits(9, 2)], ids=["in all", "of one address"])
def test_who_comes_when_there_are_enough_is_sent_away(tmp_path: Path, limits: Limits) -> None:
    async def play(served: Served) -> None:
        first, second = await served.dial(), await served.dial()
        assert await first.asks(BEAT)
        assert await second.asks(BEAT)
        third = await served.dial()
        assert await third.asks(BEAT) == b""
        assert served.counts.reasons == ["too many connections"]
        first.writer.close()
        await first.writer.wait_closed()
        while not await (await served.dial()).asks(BEAT):
            pass
        assert await second.asks(BEAT)

    serving(tmp_path, play, limits)


def test_a_client_that_does_not_read_holds_little_and_not_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "FRAME_SECONDS", 0.2)
    monkeypatch.setattr(server, "SWEEP_SECONDS", 0.05)

    async def run() -> None:
        async with behind() as broker, listening(tmp_path, broker.port) as served:
            broker.answers[LIST_OFFSETS, 1] = bytes(32 << 20)
            client = await served.dial()
            client.reader._transport.pause_reading()  # type: ignore[attr-defined]
            await client.send(bytes.fromhex("0002000100000001ffff"))
            held = 0
            while not served.counts.reasons:
                found = served.listener._connections
                sizes = [each._stream.transport.get_write_buffer_size() for each in found]
                held = max([held, *sizes])
                await asyncio.sleep(0.01)
            assert served.counts.reasons == ["slow reader"]
            assert held <= 4 * bounds.PIECE

    asyncio.run(run())


def test_a_log_line_a_second_is_written_at_most(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    counts = Counts(tmp_path)
    for number in range(100):
        counts.count_refusal(bounds.FrameRefused("length", str(number)), "here")
    counts.close()
    assert len(caplog.messages) == 1


def test_who_wants_more_bytes_than_are_left_waits_for_them_in_turn() -> None:
    async def run() -> None:
        budget, order = Budget(10), list[str]()

        async def take(name: str, size: int) -> None:
            await budget.take(size)
            order.append(name)

        await take("first", 8)
        waiting = [asyncio.create_task(take(*each)) for each in (("great", 10), ("small", 1))]
        await asyncio.sleep(0)
        assert order == ["first"]
        budget.give_back(8)
        await asyncio.sleep(0)
        assert order == ["first", "great"]
        budget.give_back(10)
        await asyncio.gather(*waiting)
        gone = asyncio.create_task(take("gone", 10))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        budget.give_back(1)
        await take("last", 10)
        assert order == ["first", "great", "small", "last"]

    asyncio.run(run())


def joining(member_id: str = "", size: int = 1_000) -> bytes:
    told = {
        "GroupId": "g",
        "SessionTimeoutMs": 6_000,
        "RebalanceTimeoutMs": 6_000,
        "MemberId": member_id,
        "ProtocolType": "game",
        "Protocols": [{"Name": "chess", "Metadata": f"hex:{bytes(size).hex()}"}],
    }
    return asking(11, 3, told)


def test_members_that_wait_in_a_round_keep_nobody_from_being_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "BUDGET", 2_000)

    async def play(served: Served) -> None:
        first = await served.dial()
        joined = told(11, 3, await first.asks(joining()))
        waiting = [await served.dial() for _ in range(5)]
        for each in waiting:
            await each.send(joining())
        while served.shard.calls < 1 + len(waiting):
            await asyncio.sleep(0.01)
        assert told(11, 3, await first.asks(joining(joined["MemberId"])))["GenerationId"] == 2
        for each in waiting:
            assert told(11, 3, await each.receive())["GenerationId"] == 2

    serving(tmp_path, play)


def test_a_slow_client_does_not_keep_others_from_their_answers(tmp_path: Path) -> None:
    async def play(served: Served) -> None:
        for _ in range(50):
            (await served.dial()).writer.write(b"\0\0\0")
        client, began = await served.dial(), time.monotonic()
        for _ in range(50):
            assert await client.asks(BEAT)
        assert time.monotonic() - began < bounds.FRAME_SECONDS

    serving(tmp_path, play)


def test_large_requests_that_do_not_arrive_keep_nobody_from_being_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "RECEIVING", 4 * bounds.LONGEST_DECODED)
    monkeypatch.setattr(stream, "CONTENDED_SECONDS", 0.1)
    monkeypatch.setattr(server, "SWEEP_SECONDS", 0.05)
    cut = bounds.LONGEST_DECODED.to_bytes(4) + joining()[: HEAD.size]

    async def play(served: Served) -> None:
        strangers = [await served.dial() for _ in range(4)]
        for each in strangers:
            each.writer.write(cut)
        client, connections = await served.dial(), served.listener._connections
        while sum(bool(each._receiver._since) for each in connections) < len(strangers):
            await asyncio.sleep(0.01)
        assert await client.asks(BEAT)  # a small one needs no share
        joined = await client.asks(joining(size=2 * bounds.SMALL))
        assert told(JOIN_GROUP, 3, joined)["MemberId"]
        assert await strangers[0].receive() == b""
        assert set(served.counts.reasons) == {"half-sent"}

    serving(tmp_path, play)


def test_files_of_access_are_followed_after_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "SWEEP_SECONDS", 0)
    looks, is_read = iter((KeyError("a mistake"), None)), asyncio.Event()

    def refresh() -> bool:
        if (error := next(looks, None)) is not None:
            raise error
        is_read.set()
        return True

    async def play() -> None:
        access = ListenerAccess(refreshes=[refresh])
        async with listening(tmp_path, access=access) as served:
            following = asyncio.create_task(served.listener.follow_files())
            await asyncio.wait_for(is_read.wait(), 60)
            following.cancel()

    asyncio.run(play())
    assert caplog.messages == [
        "the files of who has access are as before; it is tried again",
    ]
