"""The line to the owner of a group: messages and answers between two nodes, over TLS.

The owner is a real node, and where it has to misbehave a socket in its place.
"""
# pyright: basic

import asyncio
import select
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fairlead.actors.messages.classic import ClassicHeartbeat, JoinGroup, JoinGroupReply
from fairlead.actors.messages.commands import (
    CommandReply,
    DescribeTraffic,
    RequestedCommand,
    Traffic,
)
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import CommitOffsets, CommitReply, Heartbeat, HeartbeatReply
from fairlead.actors.messages.orders import PutConnector
from fairlead.actors.transport.ports import HostPort
from fairlead.events.model import ClassicProtocol
from fairlead.runtime.cluster.kafka_security import KafkaSecurity
from fairlead.runtime.kafka.client.stream import Stream
from fairlead.runtime.kafka.wire import connect_messages as wire
from fairlead.runtime.kafka.wire.calls.carried import CarriedRequest, write_message
from fairlead.runtime.kafka.wire.frames import Head, read_head, write_response
from fairlead.runtime.kafka.wire.served import CONNECT_ASK
from fairlead.runtime.node.door import connection as one
from fairlead.runtime.node.door.connection import Lane, LineAnswer, OwnerConnection
from fairlead.runtime.node.door.delivery import LogEnds
from fairlead.runtime.node.door.line import LineSecurity, OwnerLine
from fairlead_tests.kafka.certificates import Authority
from fairlead_tests.kafka_listener.node import ListenerNode, listener_node

NOWHERE = "127.0.0.1:9"
HELD_MS = 15_000
"""So long the group holds a heartbeat without news."""
SECONDS = 60.0


@dataclass
class Owner:
    """A node with a TLS listener, and the authority of its nodes' certificates."""

    node: ListenerNode
    authority: Authority
    folder: Path

    @property
    def address(self) -> HostPort:
        return HostPort("127.0.0.1", self.node.port)

    def security(self, own: Path, nodes: tuple[str, ...] = ("User:CN=owner",)) -> LineSecurity:
        tls = {
            "kafka.ssl.keystore.location": str(own),
            "kafka.ssl.truststore.location": str(self.authority.path),
        }
        return LineSecurity.open(KafkaSecurity(tls=tls, nodes=nodes))


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owner]:
    folder = tmp_path_factory.mktemp("owner")
    authority = Authority(folder)
    own = authority.sign("owner")
    with listener_node(
        folder / "data",
        NOWHERE,
        protocol="SSL",
        kafka_ssl_keystore_location=own,
        kafka_ssl_truststore_location=authority.path,
        members_principal="User:CN=n2;User:CN=owner",
        heartbeat_interval_ms=HELD_MS,
        session_timeout_ms=3 * HELD_MS,
    ) as node:
        yield Owner(node, authority, folder)


@dataclass
class Sender:
    """What senders on the other node do, by one line."""

    line: OwnerLine
    answers: list[LineAnswer] = field(default_factory=list)

    def hears(self) -> LineAnswer:
        """Return the next answer."""
        deadline = time.monotonic() + SECONDS
        while not self.answers:
            assert time.monotonic() < deadline, "nothing is answered"
            if select.select([self.line], [], [], 1.0)[0]:
                self.answers += self.line.answers()
        return self.answers.pop(0)

    def asks(self, message: CarriedRequest, sender: str = "worker") -> LineAnswer:
        self.line.send(message, sender)
        return self.hears()

    def asks_on(self, message: CarriedRequest) -> LineAnswer:
        """Ask again and again until there is an answer, as all senders do."""
        while (answer := self.asks(message)).reply is None:
            assert answer.why
            time.sleep(0.05)
        return answer


@pytest.fixture
def sender(owner: Owner) -> Iterator[Sender]:
    line = OwnerLine(owner.security(owner.authority.sign("n2")))
    line.move(owner.address)
    sender = Sender(line)
    assert isinstance(sender.asks_on(DescribeTraffic("connect")).reply, Traffic)
    yield sender
    line.close()


def put(config: str) -> RequestedCommand:
    return RequestedCommand(PutConnector("connect", "A", {"a": config}), "r1")


def joining(member_id: str) -> Heartbeat:
    return Heartbeat(
        "connect", member_id, 0, "i", 1, owned=(), rebalance_timeout_ms=60_000,
        server_assignor="uniform",
    )  # fmt: skip


class Member:
    """A worker on the other node."""

    def __init__(self, sender: Sender, name: str) -> None:
        self.sender, self.name, self.sequence, self.epoch = sender, name, 1, -1
        first = self.says(joining(name))
        self.epoch = first.coordinator_epoch
        if first.error is Error.NOT_COORDINATOR:
            first = self.says(joining(name))
        assert first.error is Error.NONE
        self.member_epoch = first.member_epoch

    def says(self, beat: Heartbeat) -> HeartbeatReply:
        reply = self.sender.asks(self._numbered(beat), self.name).reply
        assert isinstance(reply, HeartbeatReply)
        return reply

    def waits(self) -> None:
        """Send a heartbeat without news."""
        beat = Heartbeat("connect", self.name, self.member_epoch, "i", owned=())
        self.sender.line.send(self._numbered(beat), self.name)

    def leaves(self) -> None:
        self.sender.line.send(self._numbered(Heartbeat("connect", self.name, -1, "i")), self.name)

    def _numbered(self, beat: Heartbeat) -> Heartbeat:
        self.sequence += 1
        return replace(beat, sequence=self.sequence, coordinator_epoch=self.epoch)


def test_a_held_heartbeat_keeps_nothing_else_waiting(sender: Sender) -> None:
    member = Member(sender, "m1")
    member.waits()
    both = [sender.asks(put("1"), "people"), sender.hears()]  # on two connections
    put_answer, news = sorted(both, key=lambda each: each.sender != "people")
    assert isinstance(put_answer.reply, CommandReply)
    assert put_answer.ends.have(LogEnds(put_answer.reply.log_offset, 0))
    assert isinstance(news.reply, HeartbeatReply)
    assert news.sender == "m1"
    member.member_epoch = news.reply.member_epoch
    member.waits()
    commit = sender.asks(CommitOffsets("connect", "m1", (), (), 7), "m1")
    assert (commit.sender, commit.reply) == ("m1", CommitReply((), 7))
    member.leaves()
    assert {type(sender.hears().reply) for _ in range(2)} == {HeartbeatReply}


def test_the_next_heartbeat_ends_the_hold_of_the_one_before(sender: Sender) -> None:
    member = Member(sender, "m2")
    member.waits()
    member.waits()
    answer = sender.hears()
    assert isinstance(answer.reply, HeartbeatReply)
    assert answer.reply.sequence == member.sequence - 1
    member.leaves()
    assert {type(sender.hears().reply) for _ in range(2)} == {HeartbeatReply}


def test_what_was_sent_to_an_owner_that_is_none_any_more_is_given_up(
    sender: Sender, owner: Owner
) -> None:
    member = Member(sender, "m3")
    member.waits()
    sender.line.move(None)
    assert sender.hears() == LineAnswer("m3", None, why="another node owns the group now")
    assert sender.asks(put("2")) == LineAnswer(
        "worker", None, why="the node that owns the group is not known yet", is_sent=False
    )
    sender.line.move(HostPort("127.0.0.1", 9))
    dead = sender.asks(put("2"))
    assert "Connect call failed" in dead.why
    assert not dead.is_sent
    sender.line.move(owner.address)
    assert isinstance(sender.asks_on(put("2")).reply, CommandReply)
    member.leaves()
    assert isinstance(sender.hears().reply, HeartbeatReply)


def test_the_line_goes_on_with_another_process_of_the_group(sender: Sender, owner: Owner) -> None:
    member = Member(sender, "m4")
    member.waits()
    owner.node.kill("fairlead: group")
    lost = sender.hears()
    assert (lost.sender, lost.reply) == ("m4", None)
    answer = sender.asks_on(put("3"))
    assert isinstance(answer.reply, CommandReply)
    assert answer.ends.have(LogEnds(answer.reply.log_offset, 0))
    member = Member(sender, "m4")
    member.leaves()
    assert isinstance(sender.hears().reply, HeartbeatReply)


def test_a_line_that_is_closed_gives_up_what_is_under_way(owner: Owner) -> None:
    line = OwnerLine(owner.security(owner.authority.sign("n2")))
    line.move(owner.address)
    Member(Sender(line), "m5").waits()
    why = "this node turns to no other one any more"
    assert line.close() == [LineAnswer("m5", None, why=why)]


def test_a_node_without_the_name_of_one_is_told_so(owner: Owner) -> None:
    line = OwnerLine(owner.security(owner.authority.sign("ann")))
    line.move(owner.address)
    refused = Sender(line).asks(put("4"))
    line.close()
    assert refused == LineAnswer(
        "worker", None, why="members.principal does not have 'User:CN=ann'"
    )


def test_nothing_is_sent_to_an_owner_without_the_name_of_a_node(owner: Owner) -> None:
    line = OwnerLine(owner.security(owner.authority.sign("n2"), nodes=("User:CN=n2",)))
    line.move(owner.address)
    refused = Sender(line).asks(put("5"))
    line.close()
    assert refused == LineAnswer(
        "worker",
        None,
        why=f"127.0.0.1:{owner.node.port} is no node of this cluster: members.principal has no"
        " User:CN=owner",
        is_sent=False,
    )


def test_nothing_is_sent_to_an_owner_of_another_authority(owner: Owner, tmp_path: Path) -> None:
    other = replace(owner, authority=Authority(tmp_path, "other"))
    line = OwnerLine(other.security(owner.authority.sign("n2")))
    line.move(owner.address)
    refused = Sender(line).asks(put("6"))
    line.close()
    assert "certificate verify failed" in refused.why


def test_certificates_are_read_again_and_living_connections_go_on(
    owner: Owner, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = Path(shutil.move(owner.authority.sign("n2"), tmp_path / "own.pem"))
    line = OwnerLine(owner.security(own))
    line.move(owner.address)
    sender = Sender(line)
    assert isinstance(sender.asks_on(put("7")).reply, CommandReply)
    shutil.move(owner.authority.sign("ann"), own)
    assert isinstance(sender.asks(put("7")).reply, CommandReply), "it is the same connection"
    assert "does not have 'User:CN=ann'" in sender.asks(put("7"), "another").why
    own.write_bytes(b"half")
    assert "does not have 'User:CN=ann'" in sender.asks(put("7"), "a third").why
    assert [each for each in caplog.messages if "what it said before stays in force" in each]
    shutil.move(owner.authority.sign("n2"), own)
    assert isinstance(sender.asks(put("7"), "a fourth").reply, CommandReply)
    assert isinstance(sender.asks(put("7")).reply, CommandReply), "it is still the same"
    line.close()


def test_the_owners_certificate_is_read_again_as_well(
    owner: Owner, sender: Sender, tmp_path: Path
) -> None:
    own = owner.folder / "owner.pem"
    before = own.read_bytes()
    own.write_bytes(b"half")
    assert isinstance(sender.asks(put("9"), "another").reply, CommandReply)
    text = "what it said before stays in force"
    assert text in (owner.folder / "data" / "logs" / "kafka.log").read_text()
    owner.authority.sign("owner")
    assert own.read_bytes() not in {before, b"half"}
    assert isinstance(sender.asks(put("9"), "a third").reply, CommandReply)
    foreign = Authority(tmp_path, "other").sign("owner")
    own.write_bytes(foreign.read_bytes())
    assert "certificate verify failed" in sender.asks(put("9"), "a fourth").why
    for each in ("worker", "another", "a third"):
        assert isinstance(sender.asks(put("9"), each).reply, CommandReply), "it goes on"
    own.write_bytes(before)


def test_what_cannot_be_sent_is_refused_alone(sender: Sender) -> None:
    message = CommitOffsets("connect", "m", (), (), 1 << 70)
    assert "cannot be sent to the owner" in sender.asks(message).why
    long = RequestedCommand(PutConnector("connect", "A", {"a": "x" * (8 << 20)}), "r1")
    assert "at most 8388608 are taken" in sender.asks(long).why
    assert isinstance(sender.asks(put("8")).reply, CommandReply)


# -- an owner that misbehaves


@dataclass
class Silent:
    """A socket in the place of the owner: it answers nothing by itself."""

    port: int = 0
    frames: list[bytes] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    answers: list[LineAnswer] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        while size := await reader.read(4):
            self.frames.append(await reader.readexactly(int.from_bytes(size)))

    async def dial(self) -> Stream:
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(Stream, "127.0.0.1", self.port))[1]

    def connection(self, lane: Lane) -> OwnerConnection:
        return OwnerConnection(lane, self.dial, self.answers.append)

    async def until(self, frames: int = 0, answers: int = 0) -> None:
        async with asyncio.timeout(SECONDS):
            while len(self.frames) < frames or len(self.answers) < answers:
                await asyncio.sleep(0.001)

    def refuses(self, frame: bytes, code: int) -> None:
        """Answer a message with an error."""
        response = wire.ConnectGroupAskResponse(error_code=code, error_message="no process")
        self.writers[-1].write(write_response(read_head(frame), response))

    def tells(self, frame: bytes, reply: Any) -> None:
        """Answer a message."""
        kind, body = write_message(reply)
        response = wire.ConnectGroupAskResponse(error_code=0, kind=kind, body=body, control_end=5)
        self.writers[-1].write(write_response(read_head(frame), response))


def against(play: Any) -> Silent:
    silent = Silent()

    async def run() -> None:
        async with await asyncio.start_server(silent.serve, "127.0.0.1", 0) as server:
            silent.port = server.sockets[0].getsockname()[1]
            await play(silent)
            for each in silent.writers:
                each.transport.abort()

    asyncio.run(run())
    return silent


BEAT = Heartbeat("connect", "m", 1, "i", 1)
JOIN = JoinGroup("connect", "m", "connect", (ClassicProtocol("a", b""),), 1, 1, number=1)
COMMIT = CommitOffsets("connect", "m", (), (), 1)
LATE = f"the owner has not answered for {one.ANSWER_SECONDS:g} s"


def test_an_answer_that_is_late_ends_its_connection_but_a_held_heartbeat_may_wait() -> None:
    async def play(silent: Silent) -> None:
        others, beats = silent.connection(Lane.OTHERS), silent.connection(Lane.HEARTBEATS)
        for each, message in ((others, COMMIT), (beats, BEAT)):
            each.send(message, "m")
            each.close_if_late(time.monotonic() + one.ANSWER_SECONDS - 1)
        await silent.until(frames=2)
        now = time.monotonic() + one.ANSWER_SECONDS + 1
        beats.close_if_late(now)
        others.close_if_late(now)
        assert silent.answers == [LineAnswer("m", None, why=LATE)]
        beats.send(BEAT, "m")
        beats.close_if_late(time.monotonic() + one.ANSWER_SECONDS + 1)
        assert silent.answers == [LineAnswer("m", None, why=LATE)] * 3

    against(play)


def test_a_round_that_is_asked_for_again_does_not_wait_behind_itself() -> None:
    async def play(silent: Silent) -> None:
        rounds = silent.connection(Lane.ROUNDS)
        rounds.send(JOIN, "m")
        await silent.until(frames=1)
        rounds.close_if_late(time.monotonic() + 1_000)
        assert silent.answers == []
        rounds.send(replace(JOIN, number=2), "m")
        await silent.until(frames=2)
        reply = JoinGroupReply(Error.NONE, "m", number=2)
        silent.tells(silent.frames[1], reply)
        await silent.until(answers=2)
        assert silent.answers == [
            LineAnswer("m", None, why="its sender asks again"),
            LineAnswer("m", reply, LogEnds(5, -1)),
        ]
        assert len(silent.writers) == 2
        rounds.close("")

    against(play)


def test_messages_are_answered_in_their_order_on_one_connection() -> None:
    async def play(silent: Silent) -> None:
        others = silent.connection(Lane.OTHERS)
        for number in range(3):
            others.send(replace(COMMIT, number=number), "m")
        await silent.until(frames=3)
        for number, frame in enumerate(silent.frames):
            silent.tells(frame, CommitReply((), number))
        await silent.until(answers=3)
        others.close("")

    silent = against(play)
    assert [each.reply for each in silent.answers] == [CommitReply((), n) for n in range(3)]
    assert len(silent.writers) == 1


def test_an_error_says_whether_the_group_may_have_the_message() -> None:
    async def play(silent: Silent) -> None:
        others = silent.connection(Lane.OTHERS)
        for _ in range(2):
            others.send(COMMIT, "m")
        await silent.until(frames=2)
        for frame, code in zip(silent.frames, (14, 15), strict=True):
            silent.refuses(frame, code)
        await silent.until(answers=2)
        others.close("")

    unsent = LineAnswer("m", None, why="no process", is_sent=False)
    assert against(play).answers == [unsent, unsent._replace(is_sent=True)]


GARBAGE = {
    "an answer to another message": write_response(
        Head(CONNECT_ASK, 0, 99), wire.ConnectGroupAskResponse(error_code=0)
    ),
    "an answer of no kind": write_response(
        Head(CONNECT_ASK, 0, 1), wire.ConnectGroupAskResponse(error_code=0, kind="none")
    ),
    "an answer that is cut off": b"\0\0\0\x06\0\0\0\x01\0\0",
    "no answer": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "an answer without end": b"\x7f\xff\xff\xff",
}


@pytest.mark.parametrize("name", GARBAGE)
def test_an_owner_that_makes_no_sense_is_left(name: str) -> None:
    async def play(silent: Silent) -> None:
        others = silent.connection(Lane.OTHERS)
        others.send(COMMIT, "m")
        await silent.until(frames=1)
        silent.writers[0].write(GARBAGE[name])
        await silent.until(answers=1)
        others.send(COMMIT, "m")
        await silent.until(frames=2)
        silent.tells(silent.frames[1], CommitReply((), 1))
        await silent.until(answers=2)
        others.close("")

    silent = against(play)
    assert [bool(each.why) for each in silent.answers] == [True, False]
    assert silent.answers[1] == LineAnswer("m", CommitReply((), 1), LogEnds(5, -1))


def test_an_owner_that_hangs_up_is_dialled_again_for_the_next_message() -> None:
    async def play(silent: Silent) -> None:
        beats = silent.connection(Lane.HEARTBEATS)
        beats.send(BEAT, "m")
        await silent.until(frames=1)
        silent.writers[0].transport.abort()
        await silent.until(answers=1)
        assert silent.answers[0].reply is None
        beats.send(ClassicHeartbeat("connect", "m", 1), "m")
        await silent.until(frames=2)
        assert not beats.is_unused(time.monotonic() + 1_000), "a message waits"
        beats.close("")
        assert beats.is_unused(time.monotonic() + 1_000)

    against(play)
