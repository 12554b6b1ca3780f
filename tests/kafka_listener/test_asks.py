"""ConnectGroupAsk, by which members over Kafka's wire are workers: bytes, bounds and rights.

Bodies are packed by msgpack itself, as a client of another make would.
"""
# pyright: basic

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.actors.messages.asks import MemberAsk, UnreadableAsk
from fairlead.actors.messages.groups import ConnectCall
from fairlead.actors.messages.orders import PutConnector
from fairlead.events.model import Resource, RunState, Token
from fairlead.runtime.config.secrets import Vault
from fairlead.runtime.kafka.security.access import ListenerAccess
from fairlead.runtime.kafka.security.acls import Authorizer, parse_acls
from fairlead.runtime.kafka.security.member_secrets import MemberSecrets
from fairlead.runtime.kafka.wire import connect_messages as wire
from fairlead.runtime.kafka.wire.bounds import FrameRefused
from fairlead.runtime.kafka.wire.calls.dispatch import calls_of
from fairlead.runtime.kafka.wire.frames import (
    Head,
    Request,
    read_head,
    read_request,
    read_response,
    write_request,
)
from fairlead.runtime.kafka.wire.served import CONNECT_ASK, CONNECT_HEARTBEAT
from fairlead_tests.kafka_listener.served import OPEN, Client, Served, listening

FENCED, INVALID, UNKNOWN_MEMBER, AHEAD, NO_KIND, NO_GROUP = 20_002, 42, 25, 110, 35, 24
VAULT = Vault(b"k" * 32)
LINES = {
    "name": "lines",
    "connector.class": "MemberConnector",
    "tasks.max": "2",
    "placement.weight": "2",
    "member.password": VAULT.seal("lines", "open sesame"),
}
CONNECTOR, TASK = ["lines", -1], ["lines", 0]
EMPTY = {"root": "", "staging": "", "rows": 0, "bytes": 0, "files": 0}


def framed(kind: str, body: bytes, **told: Any) -> bytes:
    said = {"group_id": "connect", "member_id": "m1", "member_epoch": -1, **told}
    message = wire.ConnectGroupAskRequest(**said, kind=kind, body=body)
    return write_request(Request(Head(CONNECT_ASK, 0, 7), "c", message))


class Asking:
    """A member that is granted all work of the group, on a connection of its own."""

    def __init__(self, client: Client, served: Served) -> None:
        self._client, self.served = client, served
        self.epoch = 0

    async def joins(self) -> None:
        message = wire.ConnectGroupHeartbeatRequest(
            group_id="connect",
            member_id="m1",
            member_epoch=self.epoch,
            rebalance_timeout_ms=60_000,
            server_assignor="uniform",
            connectors_and_tasks=wire.NOTHING,
        )
        frame = write_request(Request(Head(CONNECT_HEARTBEAT, 0, 7), "c", message))
        answer = read_response(Head(CONNECT_HEARTBEAT, 0, 7), await self._client.asks(frame))
        assert answer.error_code == 0
        self.epoch = answer.member_epoch

    async def asks(self, kind: str, told: Any = None, **body: Any) -> tuple[int, Any]:
        """Ask, and return the error and the answer's body, or the message of the error."""
        frame = framed(kind, msgpack.packb(body), **(told or {}))
        answer = read_response(Head(CONNECT_ASK, 0, 7), await self._client.asks(frame))
        if answer.error_code:
            assert 0 < len(answer.error_message) < 1_000
            return answer.error_code, answer.error_message
        return 0, msgpack.unpackb(answer.body)

    async def token(self, resource: list[Any]) -> Any:
        """Return the fencing token of a resource."""
        _, answer = await self.asks("ReadWork", resources=[resource])
        return answer["work"][0]["token"]

    async def splits(self) -> Any:
        """Split the connector into two tasks, be granted them, and return the first one's token."""
        token = await self.token(CONNECTOR)
        split = {"connector": "lines", "token": token, "configs": [{"of": "0"}, {"of": "1"}]}
        assert await self.asks("PutTaskConfigs", **split) == (0, {})
        await self.joins()
        return await self.token(TASK)


def asking(
    folder: Path, play: Callable[[Asking], Awaitable[Any]], access: ListenerAccess = OPEN
) -> Served:
    """Play against a listener whose workers' group has a connector for members, and one for not."""
    kept: list[Served] = []

    async def run() -> None:
        async with listening(folder, access=access) as served:
            kept.append(served)
            served.workers.take(PutConnector("connect", "lines", LINES))
            served.workers.configure("A")
            asker = Asking(await served.dial(), served)
            await asker.joins()
            await play(asker)

    asyncio.run(run())
    return kept[0]


def commit(
    token: Any, batch: int, start: int | None, end: float, **manifest: Any
) -> dict[str, Any]:
    """Return a commit of lines of one file."""
    return {
        "commit_id": [*TASK, token, batch],
        "advances": [
            {
                "partition": {"file": "a"},
                "start": None if start is None else {"bytes": start},
                "end": {"bytes": end},
            }
        ],
        "manifest": {**EMPTY, **manifest},
        "rows_in": 1,
    }


def test_a_member_learns_configs_and_tokens_of_what_it_is_granted(tmp_path: Path) -> None:
    async def play(asker: Asking) -> None:
        token = await asker.splits()
        wanted = [CONNECTOR, TASK, ["lines", 7], ["A", -1], ["none", 0]]
        _, answer = await asker.asks("ReadWork", resources=wanted)
        shown = {key: value for key, value in LINES.items() if key != "placement.weight"}
        shown["member.password"] = "********"
        assert answer == {
            "work": [
                {
                    "resource": CONNECTOR,
                    "token": [1, 1],
                    "state": "RUNNING",
                    "connector_config": shown,
                    "config": shown,
                },
                {
                    "resource": TASK,
                    "token": token,
                    "state": "RUNNING",
                    "connector_config": shown,
                    "config": {"of": "0"},
                },
            ]
        }

    asking(tmp_path, play)


def test_a_batch_counts_once_under_the_token_of_now_and_from_the_logged_offset(
    tmp_path: Path,
) -> None:
    async def play(asker: Asking) -> None:
        token = await asker.splits()
        older = [token[0] - 1, token[1]]

        async def verdict(commit: dict[str, Any]) -> str:
            error, answer = await asker.asks("CommitOffsets", commits=[commit])
            assert error == 0
            return str(answer["verdicts"][0]["error"])

        staged = {"root": "/r", "staging": "s", "rows": 1, "bytes": 2, "files": 1}
        assert await verdict(commit(token, 0, None, 5, **staged)) == "NONE"
        assert await verdict(commit(token, 0, None, 5, **staged)) == "NONE", "it is the same"
        assert await verdict(commit(older, 1, 5, 9)) == "FENCED"
        assert await verdict(commit(token, 1, None, 9)) == "FENCED", "not the logged offset"
        about = {"connector": "lines", "task": 0, "partitions": [{"file": "a"}, {"file": "b"}]}
        _, before = await asker.asks("ReadOffsets", **about)
        (waiting,) = before.pop("unpublished")
        assert before == {"offsets": [{"bytes": 5}, None], "last": [*TASK, token, 0]}
        assert waiting["commit_id"] == [*TASK, token, 0]
        assert waiting["manifest"]["staging"] == "s"
        done = await asker.asks("CommitOffsets", commits=[], published=[[*TASK, token, 0]])
        assert done == (0, {"verdicts": []})
        assert (await asker.asks("ReadOffsets", **about))[1]["unpublished"] == []
        progress = asker.served.workers.shard.state.ledger.progress("lines", 0)
        assert progress is not None
        assert (progress.batches, progress.rows_out) == (1, 1)

    asking(tmp_path, play)


def test_statuses_count_under_the_token_of_now_alone(tmp_path: Path) -> None:
    async def play(asker: Asking) -> None:
        token = await asker.splits()
        update = {"resource": TASK, "token": token, "state": "FAILED", "at_ms": 5, "reason": "why"}
        assert await asker.asks("ReportStatus", updates=[update]) == (0, {})
        status = asker.served.workers.group.statuses[Resource("lines", 0)]
        assert (status.state, status.worker, status.reason) == (RunState.FAILED, "m1", "why")
        for other in ({"token": [token[0] + 1, 1]}, {"resource": ["none", 0]}):
            assert (await asker.asks("ReportStatus", updates=[{**update, **other}]))[0] == FENCED
        assert asker.served.workers.group.statuses[Resource("lines", 0)] == status
        assert status.token == Token(*token)

    asking(tmp_path, play)


REFUSED: dict[str, tuple[int, str, dict[str, Any], dict[str, Any]]] = {
    "an unknown kind": (NO_KIND, "DeleteGroup", {}, {}),
    "a group that is not the node's": (NO_GROUP, "ReadWork", {"group_id": "g"}, {"resources": []}),
    "an unknown member": (UNKNOWN_MEMBER, "ReadWork", {"member_id": "m2"}, {"resources": []}),
    "a member epoch ahead": (AHEAD, "ReadWork", {"member_epoch": 99}, {"resources": []}),
    "a missing field": (INVALID, "ReadWork", {}, {}),
    "a field of another type": (INVALID, "ReadWork", {}, {"resources": [["lines", "0"]]}),
    "too many resources": (INVALID, "ReadWork", {}, {"resources": [CONNECTOR] * 10_001}),
    "offsets of what it does not hold": (FENCED, "ReadOffsets", {}, {"connector": "A", "task": 3}),
    "more tasks than tasks.max": (
        INVALID, "PutTaskConfigs", {}, {"connector": "lines", "token": [1, 1], "configs": [{}] * 3}
    ),
    "a split under another token": (
        FENCED, "PutTaskConfigs", {}, {"connector": "lines", "token": [9, 1], "configs": [{}]}
    ),
    "a split of what the node's workers run": (
        INVALID, "PutTaskConfigs", {}, {"connector": "A", "token": [1, 1], "configs": [{}]}
    ),
    "a batch of what the node's workers run": (
        INVALID, "CommitOffsets", {}, {"commits": [{**commit([1, 1], 0, None, 1),
                                                     "commit_id": ["A", 0, [1, 1], 0]}]}
    ),
    "words of a batch that it does not hold": (
        FENCED, "CommitOffsets", {}, {"commits": [], "published": [["A", 0, [1, 1], 0]]}
    ),
    "an offset that is no number": (
        INVALID, "CommitOffsets", {}, {"commits": [commit([1, 1], 0, None, float("nan"))]}
    ),
    "rows below 0": (
        INVALID, "CommitOffsets", {}, {"commits": [commit([1, 1], 0, None, 1, rows=-1)]}
    ),
    "dead letters of dead letters": (
        INVALID, "CommitOffsets", {},
        {"commits": [commit([1, 1], 0, None, 1,
                            dead_letters={**EMPTY, "dead_letters": EMPTY})]},
    ),
    "a reason without end": (
        INVALID, "ReportStatus", {},
        {"updates": [{"resource": CONNECTOR, "token": [1, 1], "state": "FAILED", "at_ms": 1,
                      "reason": "x" * 16_385}]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_an_ask_is_refused_and_changes_nothing(tmp_path: Path, name: str) -> None:
    error, kind, told, body = REFUSED[name]

    async def play(asker: Asking) -> None:
        workers = asker.served.workers
        before = workers.group.end, [*workers.shard.state.ledger.offsets("lines")]
        assert (await asker.asks(kind, told, **body))[0] == error
        assert (workers.group.end, workers.shard.state.ledger.offsets("lines")) == before

    asking(tmp_path, play)


def asked_by(frame: bytes) -> object:
    (call,) = calls_of(read_request(read_head(frame), frame), "/127.0.0.1")
    assert isinstance(call, ConnectCall)
    assert isinstance(call.request, MemberAsk)
    return call.request.request


NESTED = b"\x86" + msgpack.packb(EMPTY)[1:] + msgpack.packb("dead_letters")
HOSTILE = {
    "nothing": b"",
    "no map": b"\x01",
    "a map of four thousand million": b"\xdf\xff\xff\xff\xff",
    "a list of two thousand million": b"\x81\xa9resources\xdd\x7f\xff\xff\xff",
    "a text of a thousand million": b"\x81\xa9resources\xdb\x40\x00\x00\x00",
    "lists without end": b"\x81\xa9resources" + b"\x91" * 100_000,
    "bytes after the end": msgpack.packb({"resources": []}) + b"\0",
    "a text that is no text": b"\x81\xa9resources\x91\x92\xa1\xff\x00",
    "a pickle": b"cos\nsystem\n(S'true'\ntR.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_body_that_cannot_be_read_is_refused_and_counted_and_the_client_goes_on(
    tmp_path: Path, name: str
) -> None:
    async def play(asker: Asking) -> None:
        frame = framed("ReadWork", HOSTILE[name])
        answer = read_response(Head(CONNECT_ASK, 0, 7), await asker._client.asks(frame))
        assert answer.error_code == INVALID
        assert (await asker.asks("ReadWork", resources=[CONNECTOR]))[0] == 0

    served = asking(tmp_path, play)
    assert [each.partition(":")[0] for each in served.counts.told] == ["an ask cannot be read"]


def test_manifests_in_manifests_are_refused_however_deep() -> None:
    begin = msgpack.packb({"commits": [commit([1, 1], 0, None, 1)]})
    at = begin.index(msgpack.packb(EMPTY))
    end = at + len(msgpack.packb(EMPTY))
    for depth in (2, 500, 5_000):
        body = begin[:at] + NESTED * depth + msgpack.packb(EMPTY) + begin[end:]
        assert isinstance(asked_by(framed("CommitOffsets", body)), UnreadableAsk)


WELL = [
    ("ReadWork", {"resources": [CONNECTOR, TASK]}),
    ("CommitOffsets", {"commits": [commit([1, 1], 0, None, 1)], "published": [[*TASK, [1, 1], 0]]}),
    ("PutTaskConfigs", {"connector": "lines", "token": [1, 1], "configs": [{"a": "b"}]}),
]


@given(st.sampled_from(WELL), st.data())
def test_any_bytes_are_an_ask_or_no_ask(well: tuple[str, Any], data: st.DataObject) -> None:
    frame = framed(well[0], msgpack.packb(well[1]))
    at = data.draw(st.integers(8, len(frame)))
    cut = data.draw(st.integers(0, 4))
    other = frame[:at] + data.draw(st.binary(max_size=6) | st.just(b"\0")) + frame[at + cut :]
    with suppress(FrameRefused):
        asked_by(other)


def guarded_by(rules: str) -> ListenerAccess:
    authorizer = Authorizer(parse_acls(rules), frozenset(), allows_without_rules=False)
    return ListenerAccess(authorizer=authorizer, secrets=MemberSecrets(VAULT))


@pytest.mark.parametrize(
    ("rights", "password"), [("read", "********"), ("read,write", "open sesame")]
)
def test_secrets_are_for_members_that_may_write_to_the_group(
    tmp_path: Path, rights: str, password: str
) -> None:
    async def play(asker: Asking) -> None:
        _, answer = await asker.asks("ReadWork", resources=[CONNECTOR])
        assert answer["work"][0]["connector_config"]["member.password"] == password

    asking(tmp_path, play, guarded_by(f"allow User:ANONYMOUS {rights} group literal connect"))


def test_a_secret_that_was_given_away_gets_into_no_log(tmp_path: Path) -> None:
    async def play(asker: Asking) -> None:
        token = await asker.token(CONNECTOR)
        configs = [{"url": "http://x/open sesame", "file": "a"}]
        split = {"connector": "lines", "token": token, "configs": configs}
        assert (await asker.asks("PutTaskConfigs", **split))[0] == 0
        failed = {"state": "FAILED", "at_ms": 1, "reason": "no: open sesame"}
        update = {"resource": CONNECTOR, "token": token, **failed}
        assert (await asker.asks("ReportStatus", updates=[update]))[0] == 0
        group = asker.served.workers.group
        (task,) = group.task_configs["lines"].tasks
        assert task.config == {"url": VAULT.seal("lines", configs[0]["url"]), "file": "a"}
        assert group.statuses[Resource("lines")].reason == "no: ********"

    asking(tmp_path, play, guarded_by("allow User:ANONYMOUS read,write group literal connect"))


def test_an_answer_has_no_more_than_its_bounds(tmp_path: Path) -> None:
    async def play(asker: Asking) -> None:
        token = await asker.splits()
        staged = {"root": "/r", "staging": "s", "rows": 1, "bytes": 2, "files": 1}
        commits = [commit(token, n, n or None, n + 1, **staged) for n in range(20)]
        assert (await asker.asks("CommitOffsets", commits=commits))[0] == 0
        _, answer = await asker.asks("ReadOffsets", connector="lines", task=0)
        assert [each["commit_id"][3] for each in answer["unpublished"]] == [*range(16)]
        asker.served.workers.take(PutConnector("connect", "lines", {**LINES, "more": "x" * 65_536}))
        error, message = await asker.asks("ReadWork", resources=[CONNECTOR] * 65)
        assert (error, message[-20:]) == (INVALID, "ask for less at once")

    asking(tmp_path, play)
