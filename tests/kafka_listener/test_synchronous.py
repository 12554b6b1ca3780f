"""A heartbeat that comes again is answered without a task, and as any other request in all else."""
# pyright: basic

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.actors.messages.errors import Error
from fairlead.runtime.kafka.groups import Groups
from fairlead.runtime.kafka.wire.served import CONSUMER_GROUP_HEARTBEAT, HEARTBEAT
from fairlead_tests.kafka_listener.served import Served, listening
from fairlead_tests.kafka_listener.spoken import asking, told

FIELDS = {"GroupId": "a", "GenerationId": 1, "MemberId": "b"}
BEAT = asking(HEARTBEAT, 4, FIELDS)
"""Of a member that no group has."""
UNKNOWN_MEMBER_ID, NOT_COORDINATOR = 25, 16
AT_NUMBER = 4
"""Where a request has its number."""


@pytest.fixture
def by_tasks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the calls that a task asks for."""
    asked: list[Any] = []
    ask = Groups.ask

    async def counted(self: Groups, calls: Any, wait: Any, *, lists: bool) -> Any:
        asked.extend(calls)
        return await ask(self, calls, wait, lists=lists)

    monkeypatch.setattr(Groups, "ask", counted)
    return asked


def serving(folder: Path, play: Callable[[Served], Awaitable[Any]]) -> None:
    """Play against a listener that has no broker behind it."""

    async def run() -> None:
        async with listening(folder) as served:
            await play(served)

    asyncio.run(run())


def numbered(number: int, beat: bytes = BEAT) -> bytes:
    return beat[:AT_NUMBER] + number.to_bytes(4) + beat[AT_NUMBER + 4 :]


def error_of(answer: bytes) -> int:
    return int(told(HEARTBEAT, 4, answer)["ErrorCode"])


def test_the_same_heartbeat_is_asked_by_no_task_and_has_the_number_of_its_own(
    tmp_path: Path, by_tasks: list[Any]
) -> None:
    async def play(served: Served) -> None:
        client = await served.dial()
        for number in range(3):
            answer = await client.asks(numbered(number))
            assert answer[:4] == number.to_bytes(4)
        assert (len(by_tasks), served.shard.calls) == (1, 3)

    serving(tmp_path, play)


def test_another_member_on_the_same_connection_is_read_anew(
    tmp_path: Path, by_tasks: list[Any]
) -> None:
    other = asking(HEARTBEAT, 4, FIELDS | {"MemberId": "c"})

    async def play(served: Served) -> None:
        client = await served.dial()
        for beat in (BEAT, other, BEAT):
            assert error_of(await client.asks(beat)) == UNKNOWN_MEMBER_ID
        assert [each.member_id for each in by_tasks] == ["b", "c", "b"]

    serving(tmp_path, play)


def test_a_heartbeat_that_names_topics_is_always_a_tasks(
    tmp_path: Path, by_tasks: list[Any]
) -> None:
    said = {"GroupId": "a", "MemberId": "b", "MemberEpoch": 1, "RebalanceTimeoutMs": -1}
    said |= {"SubscribedTopicNames": ["t"], "TopicPartitions": None}
    beat = asking(CONSUMER_GROUP_HEARTBEAT, 1, said)

    async def play(served: Served) -> None:
        client = await served.dial()
        for _ in range(3):
            assert await client.asks(beat)
        assert len(by_tasks) == 3

    serving(tmp_path, play)


def test_requests_that_come_together_or_in_parts_are_answered_in_their_order(
    tmp_path: Path,
) -> None:
    async def play(served: Served) -> None:
        client = await served.dial()
        await client.asks(BEAT)
        frames = [len(BEAT).to_bytes(4) + numbered(each) for each in range(20)]
        sent = b"".join(frames)
        for cut in (len(frames[0]), len(frames[0]) + 3, 5, len(sent)):
            client.writer.write(sent[:cut])
            sent = sent[cut:]
            await asyncio.sleep(0.005)
        answers = [await client.receive() for _ in frames]
        assert [int.from_bytes(each[:4]) for each in answers] == [*range(20)]

    serving(tmp_path, play)


def test_where_its_call_is_lost_the_client_is_to_ask_again(tmp_path: Path) -> None:
    async def play(served: Served) -> None:
        client = await served.dial()
        await client.asks(BEAT)
        served.shard.lose_next(Error.NOT_COORDINATOR)
        assert error_of(await client.asks(BEAT)) == NOT_COORDINATOR
        assert error_of(await client.asks(BEAT)) == UNKNOWN_MEMBER_ID

    serving(tmp_path, play)


def test_an_answer_that_cannot_be_written_ends_its_own_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(served: Served) -> None:
        client, other = await served.dial(), await served.dial()
        for each in (client, other):
            await each.asks(BEAT)
        with monkeypatch.context() as patched:
            patched.setattr("fairlead.runtime.kafka.synchronous.write_response", None)
            assert await client.asks(BEAT) == b""
        assert await other.asks(BEAT)

    serving(tmp_path, play)
