"""What nodes send the owner of their group by ConnectGroupAsk: which messages, and from whom."""
# pyright: basic

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fairlead.actors.messages.classic import ClassicHeartbeat
from fairlead.actors.messages.commands import CommandReply, DescribeTraffic, RequestedCommand
from fairlead.actors.messages.computing import (
    LossView,
    MemberView,
    Needs,
    PrepareReply,
    Snapshot,
)
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import NodeReply
from fairlead.actors.messages.members import CommitOffsets, CommitReply, Heartbeat
from fairlead.actors.messages.orders import FROM_PEOPLE, AlterOffsets, EndMember, PutConnector
from fairlead.events.commits import Advance, Commit, CommitId, Cost, Lag, Manifest, Part
from fairlead.events.model import Resource, Token
from fairlead.runtime.cluster.kafka_security import KafkaSecurity
from fairlead.runtime.kafka.security.access import open_access
from fairlead.runtime.kafka.wire import connect_messages as wire
from fairlead.runtime.kafka.wire.bounds import FrameRefused
from fairlead.runtime.kafka.wire.calls import carried, node_frames
from fairlead.runtime.kafka.wire.calls.asks import NodeAsk, answer_ask
from fairlead.runtime.kafka.wire.frames import (
    Head,
    Request,
    read_response,
    write_request,
    write_response,
)
from fairlead.runtime.kafka.wire.served import CONNECT_ASK
from fairlead_tests.kafka.certificates import Authority
from fairlead_tests.kafka_listener.sasl import SECRET, write_users
from fairlead_tests.kafka_listener.served import OPEN, Client, Served, listening

HOST = "127.0.0.1"
HEAD = Head(CONNECT_ASK, 0, 7)
DENIED, NO_GROUP = 30, 24
PUT = RequestedCommand(PutConnector("connect", "A", {"a": "b"}, principal="ann"), "r1")


def framed(kind: str, body: bytes, group_id: str = "connect") -> bytes:
    told: dict[str, Any] = {"group_id": group_id, "member_id": "", "kind": kind, "body": body}
    return write_request(Request(HEAD, "node", wire.ConnectGroupAskRequest(**told)))


def sent(message: carried.CarriedRequest) -> bytes:
    return framed(*carried.write_message(message))


def answer(frame: bytes) -> Any:
    return read_response(HEAD, frame)


LARGE = {CommitOffsets, PrepareReply}
"""Of these any values would be megabytes."""
FEW = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow],
)

KINDS = [
    each
    for union in (carried.OfWorker | carried.OfNode | carried.OfRest, FROM_PEOPLE)
    for each in carried._kinds_in(union)
    if each not in {AlterOffsets, *LARGE}
]
REPLIES = [each for each in carried._kinds_in(carried.CarriedReply) if each not in LARGE]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@FEW
@given(data=st.data())
def test_each_message_is_the_same_on_the_other_side(kind: Any, data: st.DataObject) -> None:
    message = data.draw(st.from_type(kind))
    assume("nan" not in repr(message))
    if isinstance(message, FROM_PEOPLE):
        message = RequestedCommand(message, "r1")
    try:
        body = carried.write_message(message)
    except OverflowError:
        assume(False)  # the log has no such numbers either
        raise
    assert carried.read_request(*body) == message


def test_a_commit_with_all_that_it_may_have_is_the_same_on_the_other_side() -> None:
    token, note = Token(3, 1), {"a": 1, "b": None, "c": 0.5, "d": True}
    letters = Manifest("/r", "letters", 1, 10, 1)
    parts = (Part("a.csv", 10, 2), Part("b.csv", 11))
    manifest = Manifest("/r", "s", 2, 21, 2, parts, "claim", note, letters)
    advances = (Advance({"file": "a"}, None, {"bytes": 5}), Advance({"n": 1}, {"o": "x"}, None))
    commit = Commit(
        CommitId("A", 0, token, 7), advances, manifest, 3, Lag(1, 2, 3), 1, Cost(1, 2, 3, 4, 5, 6)
    )
    message = CommitOffsets("connect", "m", (commit,), (CommitId("A", 0, token, 6),), 9)
    assert carried.read_request(*carried.write_message(message)) == message


def test_a_snapshot_with_all_that_it_may_have_is_the_same_on_the_other_side() -> None:
    task, connector = Resource("A", 0), Resource("A")
    both = frozenset({task, connector})
    who = "m", 3, "i", "http://m", "rack", 1, 2, b"\xff", both, both
    member = MemberView(*who, 2, cordoned=True, draining=True, worker="w", topics=frozenset("t"))
    snapshot = Snapshot(
        5, 4, "uniform", b"\0", both, {"m": member}, (LossView("n", None, "u", both, 9),),
        {task: 10}, both, 11, {task: 2}, {task: ("w",)},
        {"A": Needs(frozenset({"tag"}), frozenset({"zone"}))}, frozenset({connector}), "id",
    )  # fmt: skip
    reply = PrepareReply(Error.NONE, "", snapshot)
    read = carried.read_reply(*carried.write_message(reply))
    assert read == reply
    assert isinstance(read, PrepareReply)
    assert read.snapshot is not None
    assert read.snapshot.snapshot_id == "id"


def test_offsets_are_the_same_on_the_other_side() -> None:
    offsets = [({"file": "a"}, {"bytes": 5}), ({"file": "b"}, None)]
    message = RequestedCommand(AlterOffsets("connect", "A", "altered", offsets), "r1")
    assert carried.read_request(*carried.write_message(message)) == message


@pytest.mark.parametrize("kind", REPLIES, ids=lambda kind: kind.__name__)
@FEW
@given(data=st.data())
def test_each_answer_is_the_same_on_the_other_side(kind: Any, data: st.DataObject) -> None:
    reply = data.draw(st.from_type(kind))
    assume("nan" not in repr(reply))
    try:
        body = carried.write_message(reply)
    except OverflowError:
        assume(False)
        raise
    assert carried.read_reply(*body) == reply


def test_a_command_of_people_keeps_the_id_of_its_request() -> None:
    kind, body = carried.write_message(PUT)
    assert (kind, msgpack.unpackb(body)["request"]) == ("PutConnector", "r1")


def as_nodes(
    folder: Path, play: Callable[[Served, Authority], Awaitable[Any]], **security: Any
) -> Served:
    """Play against a listener whose nodes are `n1` and `n2`."""
    authority = Authority(folder)
    tls = {
        "kafka.ssl.keystore.location": str(authority.sign("listener")),
        "kafka.ssl.truststore.location": str(authority.path),
        "kafka.ssl.client.auth": "required",
    }
    told: dict[str, Any] = {"tls": tls, "nodes": ("User:CN=n1", "User:CN=n2"), **security}
    kept: list[Served] = []

    async def run() -> None:
        access = open_access(KafkaSecurity(**told), SECRET)
        async with listening(folder, access=access) as served:
            kept.append(served)
            await play(served, authority)

    asyncio.run(run())
    return kept[0]


async def dial(served: Served, authority: Authority, name: str) -> Client:
    context = ssl.create_default_context(cafile=str(authority.path))
    context.load_cert_chain(authority.sign(name))
    client = Client(*await asyncio.open_connection(HOST, served.port, ssl=context))
    served.clients.append(client)
    return client


def test_a_node_is_answered_with_the_ends_that_the_answer_rests_on(tmp_path: Path) -> None:
    async def play(served: Served, authority: Authority) -> None:
        client = await dial(served, authority, "n2")
        told = answer(await client.asks(sent(PUT)))
        end = served.workers.group.end
        assert end > 0
        assert (told.error_code, told.control_end, told.offsets_end) == (0, end, 0)
        assert carried.read_reply(told.kind, told.body) == CommandReply(
            Error.NONE, log_offset=end, created=True
        )
        commit = CommitOffsets("connect", "m1", (), (), 3)
        told = answer(await client.asks(sent(commit)))
        assert carried.read_reply(told.kind, told.body) == CommitReply((), 3)
        assert served.workers.messages == [PUT, commit]

    as_nodes(tmp_path, play)


def test_a_node_may_be_a_node_beside_rules_for_clients(tmp_path: Path) -> None:
    (tmp_path / "acls").write_text("")

    async def play(served: Served, authority: Authority) -> None:
        client = await dial(served, authority, "n1")
        assert answer(await client.asks(sent(PUT))).error_code == 0

    as_nodes(tmp_path, play, acls=str(tmp_path / "acls"))


def test_a_node_has_no_quota(tmp_path: Path) -> None:
    async def play(served: Served, authority: Authority) -> None:
        client = await dial(served, authority, "n1")
        async with asyncio.timeout(30):
            for _ in range(40):  # at one a second others would wait for most of a minute
                assert answer(await client.asks(sent(PUT))).error_code == 0

    as_nodes(tmp_path, play, requests_per_second=1)


def test_another_client_is_refused_before_its_body_is_read(tmp_path: Path) -> None:
    async def play(served: Served, authority: Authority) -> None:
        client = await dial(served, authority, "ann")
        for frame in (sent(PUT), framed("PutConnector", b"\xc1"), framed("none", b"")):
            told = answer(await client.asks(frame))
            assert (told.error_code, told.error_message, told.kind, told.body) == (
                DENIED,
                "members.principal does not have 'User:CN=ann'",
                "",
                b"",
            )
        assert served.workers.messages == []
        assert served.counts.told == ["no right: 'User:CN=ann' may not speak for a node"] * 3

    as_nodes(tmp_path, play)


def test_without_certificates_nobody_is_a_node(tmp_path: Path) -> None:
    async def run() -> None:
        access = OPEN._replace(nodes=frozenset({"User:ANONYMOUS"}))
        async with listening(tmp_path, access=access) as served:
            told = answer(await (await served.dial()).asks(sent(PUT)))
            assert (told.error_code, told.error_message) == (
                DENIED,
                "only a client with a certificate, at an SSL listener, may be a node",
            )

    asyncio.run(run())


def test_a_password_makes_nobody_a_node(tmp_path: Path) -> None:
    users = tmp_path / "users"
    write_users(users, {"ann": "open sesame"})
    access = open_access(
        KafkaSecurity(sasl="here", mechanisms=("PLAIN",), users=str(users), nodes=("User:ann",)),
        SECRET,
    )
    assert access.flaw_in_node("User:ann", b"certificate") != ""


def test_a_node_of_another_group_is_told_so(tmp_path: Path) -> None:
    async def play(served: Served, authority: Authority) -> None:
        client = await dial(served, authority, "n1")
        frame = framed(*carried.write_message(DescribeTraffic("other")), group_id="other")
        assert answer(await client.asks(frame)).error_code == NO_GROUP
        assert served.workers.messages == []

    as_nodes(tmp_path, play)


BEAT = carried.write_message(Heartbeat("connect", "m", 0))[1]
HOSTILE = {
    "an unknown kind": ("OpenGroup", b"\x80", carried.UNKNOWN_KIND),
    "a kind that is a reply": ("CommandReply", b"\x80", carried.UNKNOWN_KIND),
    "nothing": ("Heartbeat", b"", carried.MALFORMED),
    "a message cut off": ("Heartbeat", BEAT[:-1], carried.MALFORMED),
    "bytes after the end": ("Heartbeat", BEAT + b"\0", carried.MALFORMED),
    "fields of another message": ("Heartbeat", carried.write_message(PUT)[1], carried.MALFORMED),
    "a map of four thousand million": ("Heartbeat", b"\xdf\xff\xff\xff\xff", carried.MALFORMED),
    "lists without end": ("CommitOffsets", b"\x81\xa7commits" + b"\x91" * 100_000, "malformed"),
    "a text of a thousand million": ("EndMember", b"\x81\xa9member_id\xdb\x40\0\0\0", "malformed"),
    "a pickle": ("Heartbeat", b"cos\nsystem\n(S'true'\ntR.", carried.MALFORMED),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_message_ends_its_connection_and_nothing_else(tmp_path: Path, name: str) -> None:
    kind, body, reason = HOSTILE[name]

    async def play(served: Served, authority: Authority) -> None:
        other = await dial(served, authority, "n2")
        client = await dial(served, authority, "n1")
        assert await client.asks(framed(kind, body)) == b""
        assert served.counts.reasons == [reason]
        assert served.workers.messages == []
        assert answer(await other.asks(sent(PUT))).error_code == 0

    as_nodes(tmp_path, play)


def test_a_message_of_a_node_may_be_longer_than_those_of_others(tmp_path: Path) -> None:
    def put(size: int) -> RequestedCommand:
        return RequestedCommand(PutConnector("connect", "A", {"a": "x" * size}), "r1")

    long, longer = put(2 << 20), put(9 << 20)

    async def play(served: Served, authority: Authority) -> None:
        client = await dial(served, authority, "ann")
        assert await client.asks(sent(long)) == b""
        client = await dial(served, authority, "n1")
        assert answer(await client.asks(sent(long))).error_code == 0
        assert await client.asks(sent(longer)) == b""
        assert served.counts.reasons == ["too long to decode"] * 2
        assert served.workers.messages == [long]

    as_nodes(tmp_path, play)


WELL = [
    Heartbeat("connect", "m", 3, "i", 4, owned=()),
    PUT,
    ClassicHeartbeat("connect", "m", 1),
    EndMember("connect", "m", "i"),
]


@given(st.sampled_from(WELL), st.data())
def test_any_bytes_are_a_message_or_none(
    message: carried.CarriedRequest, data: st.DataObject
) -> None:
    kind, body = carried.write_message(message)
    at, cut = data.draw(st.integers(0, len(body))), data.draw(st.integers(0, 4))
    other = body[:at] + data.draw(st.binary(max_size=6)) + body[at + cut :]
    with suppress(FrameRefused):
        assert carried.read_request(kind, other) is not None


@given(
    st.text(max_size=20),
    st.text(max_size=200),
    st.text(max_size=20),
    st.binary(max_size=17_000),
    st.text(max_size=20),
)
def test_frames_of_nodes_are_read_and_written_as_kio_does(
    client_id: str, group_id: str, kind: str, body: bytes, message: str
) -> None:
    told: dict[str, Any] = {"group_id": group_id, "member_id": "", "kind": kind, "body": body}
    frame = write_request(Request(HEAD, client_id, wire.ConnectGroupAskRequest(**told)))
    data = len(frame).to_bytes(4) + frame
    ask = node_frames.read_node_ask(data)
    assert ask in {NodeAsk(group_id, kind, body), None}
    assert (ask is None) is (len(data) > node_frames.LONGEST)
    assert node_frames.read_node_ask(data[:-1]) is None
    assert node_frames.read_node_ask(data + b"\0") is None
    reply = NodeReply(CommandReply(Error.NONE, message), 1, len(body), 1 << 40)
    written = node_frames.write_node_answer(HEAD.number.to_bytes(4), reply)
    kind_of_answer = wire.ConnectGroupAskResponse
    assert written == write_response(HEAD, answer_ask(None, kind_of_answer, [reply]))
    for other in (NodeReply(), NodeReply(CommandReply(Error.NONE))):
        assert node_frames.write_node_answer(bytes(4), other) is None


@given(st.binary(max_size=60))
def test_a_frame_of_another_form_is_left_to_kio(rest: bytes) -> None:
    frame = framed("Heartbeat", b"\x80")
    start = len(frame).to_bytes(4) + frame[:8]
    ask = node_frames.read_node_ask(start + rest)
    assert ask is None or start + rest == start + frame[8:]
