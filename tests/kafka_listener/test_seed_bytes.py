"""The bytes of the proposals' own schemas, written by hand from their fields and nothing else.

`ConnectorsAndTasks` is one structure of connectors, and of tasks by connector. A client that knows
no tagged field of ours speaks like this.
"""

import asyncio
import struct
from pathlib import Path
from typing import NamedTuple

from fairlead.runtime.kafka.wire.served import CONNECT_HEARTBEAT, CONNECT_INSTALL, CONNECT_PREPARE
from fairlead_tests.kafka_listener.served import Client, listening

NOTHING = b"\x01\x01\x00"
A_ALONE, B_ALONE = b"\x02\x02A\x01\x00", b"\x02\x02B\x01\x00"
COMPUTE_ASSIGNMENT = 20_000


def text(value: str | None) -> bytes:
    return b"\0" if value is None else bytes([len(value) + 1]) + value.encode()


def heartbeat(member_id: str, epoch: int, *, joins: bool = False) -> bytes:
    """GroupId, MemberId, MemberEpoch, InstanceId, RebalanceTimeoutMs, ServerAssignor, assignors."""
    assignor = text("mine") + struct.pack(">hhbh", 0, 3, 0, 2) + b"\x04say" + b"\0"
    assignors = b"\x02" + assignor if joins else b"\0"
    owned = b"\x01" + NOTHING if joins else b"\xff"
    timeout = struct.pack(">i", 60_000 if joins else -1)
    who = text("connect") + text(member_id) + struct.pack(">i", epoch)
    return who + text(None) + timeout + text(None) + assignors + owned + b"\0"


def prepare(member_id: str, epoch: int) -> bytes:
    return text("connect") + text(member_id) + struct.pack(">i", epoch) + b"\0"


def install(member_id: str, epoch: int, group_epoch: int, **shares: tuple[bytes, int]) -> bytes:
    """GroupId, MemberId, MemberEpoch, GroupEpoch, Error, Members."""
    head = text("connect") + text(member_id) + struct.pack(">iib", epoch, group_epoch, 0)
    members = b"".join(
        text(each)
        + share
        + struct.pack(">i", version)
        + bytes([len(each) + 5])
        + b"for-"
        + each.encode()
        + b"\0"
        for each, (share, version) in shares.items()
    )
    return head + bytes([len(shares) + 1]) + members + b"\0"


class Fields:
    """The fields of an answer, in their order."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, form: str) -> int:
        size = struct.calcsize(">" + form)
        self.at += size
        return int(struct.unpack(">" + form, self.data[self.at - size : self.at])[0])

    def text(self) -> str | None:
        size = self.take("B")
        self.at += max(0, size - 1)
        return self.data[self.at - size + 1 : self.at].decode() if size else None

    def bytes(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def skip_tags(self) -> None:
        for _ in range(self.take("B")):
            self.take("B")
            self.bytes(self.take("B"))


class Answer(NamedTuple):
    """The answer to a heartbeat, with what it assigns."""

    error: int
    epoch: int
    assigned: tuple[int, bytes, int, str | None] | None
    """Error, connectors and tasks, version, metadata."""


class SeedClient:
    """A client that knows the proposals' schemas alone."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def ask(self, api: int, body: bytes) -> Fields:
        head = struct.pack(">hhih", api, 0, 7, 1) + b"c" + b"\0"
        answer = await self._client.asks(head + body)
        assert answer, "the connection was closed"
        fields = Fields(answer)
        assert fields.take("i") == 7
        fields.skip_tags()
        return fields

    async def beat(
        self, member_id: str, epoch: int, share: bytes, *, joins: bool = False
    ) -> Answer:
        """Send a heartbeat; `share` is what is expected, if anything is assigned."""
        fields = await self.ask(CONNECT_HEARTBEAT, heartbeat(member_id, epoch, joins=joins))
        assert fields.take("i") == 0, "ThrottleTimeMs"
        error, _ = fields.take("h"), fields.text()
        at_epoch, interval_ms = fields.take("i"), fields.take("i")
        assert error not in {0, COMPUTE_ASSIGNMENT} or interval_ms > 0
        if fields.take("b") < 0:
            return Answer(error, at_epoch, None)
        said = fields.take("b"), fields.bytes(len(share)), fields.take("h"), fields.text()
        fields.skip_tags()
        fields.skip_tags()
        assert fields.at == len(fields.data)
        return Answer(error, at_epoch, said)


def test_a_client_of_the_proposals_joins_computes_and_is_told_what_is_said_to_it_alone(
    tmp_path: Path,
) -> None:
    async def play() -> None:
        async with listening(tmp_path) as served:
            served.workers.configure("A")
            served.workers.configure("B")
            one = SeedClient(await served.dial())
            joined = await one.beat("m1", 0, NOTHING, joins=True)
            assert (joined.error, joined.epoch) == (COMPUTE_ASSIGNMENT, 0)
            await SeedClient(await served.dial()).beat("m2", 0, NOTHING, joins=True)
            told = await one.ask(CONNECT_PREPARE, prepare("m1", 0))
            assert (told.take("i"), told.take("h"), told.text()) == (0, 0, None)
            group_epoch = told.take("i")
            assert (group_epoch, told.text(), told.take("B")) == (2, "mine", 3)
            for member_id in ("m1", "m2"):
                assert (told.text(), told.take("i"), told.text()) == (member_id, 0, None)
                assert (told.take("h"), told.take("b"), told.text()) == (2, 0, "say")
                told.skip_tags()
                assert told.bytes(len(NOTHING)) == NOTHING
                told.skip_tags()
            shares = {"m1": (A_ALONE, 2), "m2": (B_ALONE, 3)}
            done = await one.ask(CONNECT_INSTALL, install("m1", 0, group_epoch, **shares))
            assert (done.take("i"), done.take("h"), done.text()) == (0, 0, None)
            first = await one.beat("m1", 0, A_ALONE, joins=True)
            assert first == Answer(0, 2, (0, A_ALONE, 2, "for-m1"))
            two = SeedClient(await served.dial())
            second = await two.beat("m2", 0, B_ALONE, joins=True)
            assert second == Answer(0, 2, (0, B_ALONE, 3, "for-m2"))
            group = served.workers.group
            current = [group.members[each].current.data for each in ("m1", "m2")]
            assert current == [(2, b"for-m1"), (3, b"for-m2")]

    asyncio.run(play())


def test_a_failed_computation_is_told_with_its_number(tmp_path: Path) -> None:
    async def play() -> None:
        async with listening(tmp_path) as served:
            served.workers.configure("A")
            one = SeedClient(await served.dial())
            await one.beat("m1", 0, NOTHING, joins=True)
            await one.ask(CONNECT_PREPARE, prepare("m1", 0))
            failed = text("connect") + text("m1") + struct.pack(">iib", 0, 1, 9) + b"\x01\0"
            assert (await one.ask(CONNECT_INSTALL, failed)).take("i") == 0
            again = await one.beat("m1", 0, NOTHING, joins=True)
            assert again.assigned == (9, NOTHING, 0, "")

    asyncio.run(play())
