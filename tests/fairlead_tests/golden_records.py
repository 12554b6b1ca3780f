"""The disk format of records, written by hand: the whole value of each type, and its key.

When a type gets a field, its row in `WRITTEN` gets the new form, and `EARLIER` says which fields
the old one did not have, and to which record it is decoded now. Never remove rows of `EARLIER`.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

from fairlead.events import records
from fairlead.events.commits import (
    Advance,
    Commit,
    CommitId,
    Committed,
    ConsumerOffset,
    Cost,
    Lag,
    Manifest,
    Offset,
    Part,
    PendingOffset,
    TaskProgress,
)
from fairlead.events.model import (
    AssignorData,
    AutoRestart,
    Cause,
    ClassicMember,
    ClassicMetadata,
    ClassicProtocol,
    ClientAssignor,
    MemberState,
    Resource,
    RunState,
    Scope,
    Succession,
    TaskConfig,
    Token,
    Why,
)
from fairlead.events.records import (
    ConnectorConfig,
    ConsumerSubscription,
    OffsetsAltered,
    Record,
    SubscribedTopics,
    TargetState,
    TaskConfigs,
    TaskStatus,
    Topic,
)


class Golden(NamedTuple):
    """A record, its key, and its decoded msgpack value."""

    record: Record
    key: bytes
    value: dict[str, object]


A, A0, A1, B0 = Resource("A"), Resource("A", 0), Resource("A", 1), Resource("B", 0)
COMMIT_ID = CommitId("A", 1, Token(5, 2), 3)
TOOK = Cost(400, 1, 2, 3, 4, 5)
COST = {
    "bytes_in": 400,
    "plan_ms": 1,
    "wait_ms": 2,
    "run_ms": 3,
    "commit_ms": 4,
    "publish_ms": 5,
}
WIRE_ID = {"connector": "A", "task": 1, "grant_epoch": 5, "generation": 2, "batch": 3}
LISTED = {"connectors": ["A"], "tasks": [{"connector": "A", "tasks": [0, 1]}]}
JUST_B0 = {"connectors": [], "tasks": [{"connector": "B", "tasks": [0]}]}

WRITTEN: list[Golden] = [
    Golden(
        records.GroupMetadata(3, Cause(Why.MEMBER_JOINED, "http://w1"), 9, "someone", 8),
        b"",
        {
            "group_epoch": 3,
            "cause": {"why": "member-joined", "subject": "http://w1"},
            "time_ms": 9,
            "actor": "someone",
            "since_ms": 8,
        },
    ),
    Golden(
        records.ConnectorsTasksMetadata(frozenset({A, A0, A1}), config_offset=7),
        b"",
        {"configured": LISTED, "shards": 0, "config_offset": 7},
    ),
    Golden(
        records.MemberMetadata(
            "W1",
            "p",
            2,
            60_000,
            (ClientAssignor("balanced", 0, 2, 1, 3, b"x"),),
            url="http://w1",
            session_timeout_ms=10_000,
            succession=Succession(2, "W0", 1),
            classic=ClassicMetadata((ClassicProtocol("eager", b"x"),), "eager", "eager"),
        ),
        b"W1\0",
        {
            "member_id": "W1",
            "incarnation": "p",
            "joined_epoch": 2,
            "rebalance_timeout_ms": 60_000,
            "assignors": [
                {
                    "name": "balanced",
                    "minimum_version": 0,
                    "maximum_version": 2,
                    "version": 1,
                    "reason": 3,
                    "metadata": b"x",
                }
            ],
            "server_assignor": None,
            "instance_id": None,
            "rack": None,
            "url": "http://w1",
            "client_id": "",
            "client_host": "",
            "session_timeout_ms": 10_000,
            "succession": {"returns": 2, "target_id": "W0", "assignment_epoch": 1},
            "node": "",
            "classic": {
                "protocols": [{"name": "eager", "metadata": b"x"}],
                "protocol": "eager",
                "spoke": "eager",
            },
        },
    ),
    Golden(
        records.TargetAssignment(
            4,
            {"W1": frozenset({A, A0, A1})},
            unplaceable={B0: "full"},
            data={"W1": AssignorData(2, b"own")},
            error_code=9,
        ),
        b"",
        {
            "assignment_epoch": 4,
            "members": [{"member_id": "W1", "resources": LISTED}],
            "assignor": "",
            "assignor_version": 0,
            "assignor_metadata": b"",
            "unplaceable": [{"connector": "B", "task": 0, "reason": "full"}],
            "computed_by": "",
            "time_ms": 0,
            "error": "",
            "failures": 0,
            "retry_at_ms": 0,
            "shards": 0,
            "data": [{"member_id": "W1", "version": 2, "metadata": b"own"}],
            "error_code": 9,
        },
    ),
    Golden(
        records.CurrentAssignment(
            "W1",
            5,
            4,
            MemberState.UNREVOKED,
            {A1: 3, A: 5, A0: 4},
            {B0: 2},
            data=AssignorData(2, b"own"),
        ),
        b"W1\0",
        {
            "member_id": "W1",
            "member_epoch": 5,
            "previous_epoch": 4,
            "state": 1,
            "assigned": LISTED,
            "pending": JUST_B0,
            "assigned_epochs": [5, 4, 3],
            "pending_epochs": [2],
            "assignor_error": 0,
            "shards": 0,
            "data": [2, b"own"],
        },
    ),
    Golden(
        records.GroupConfiguration({"session.timeout.ms": "20000"}),
        b"",
        {"configs": {"session.timeout.ms": "20000"}},
    ),
    Golden(
        ConnectorConfig("A", {"x": "1"}, 2, 9, actor="ann"),
        b"A\0",
        {
            "connector": "A",
            "config": {"x": "1"},
            "version": 2,
            "time_ms": 9,
            "deleting": False,
            "offsets_before": 0,
            "to_forget": False,
            "given_up": 0,
            "actor": "ann",
        },
    ),
    Golden(
        TaskConfigs("A", 2, (TaskConfig({"x": "1"}, 1),)),
        b"A\0",
        {"connector": "A", "generation": 2, "tasks": [{"config": {"x": "1"}, "generation": 1}]},
    ),
    Golden(
        TargetState("A", RunState.STOPPED, 9, "someone", True),
        b"A\0",
        {
            "connector": "A",
            "state": "STOPPED",
            "time_ms": 9,
            "actor": "someone",
            "is_complete": True,
        },
    ),
    Golden(
        OffsetsAltered("A", "reset", 3, 9, "someone"),
        b"A\0",
        {"connector": "A", "how": "reset", "partitions": 3, "time_ms": 9, "actor": "someone"},
    ),
    Golden(
        Offset("A", {"path": "a"}, {"row": 8}),
        b"A\0path='a'\0",
        {"connector": "A", "partition": {"path": "a"}, "offset": {"row": 8}},
    ),
    Golden(
        TaskStatus(A1, RunState.FAILED, "http://w1", Token(5, 2), 9, "why", AutoRestart(3, 8)),
        b"A\x001\0",
        {
            "connector": "A",
            "task": 1,
            "state": "FAILED",
            "worker": "http://w1",
            "grant_epoch": 5,
            "generation": 2,
            "time_ms": 9,
            "reason": "why",
            "restarts": 3,
            "restarted_ms": 8,
        },
    ),
    Golden(
        records.ScheduledRebalance({A: 300, A0: 300, A1: 300, B0: 900}, frozenset({B0}), 800),
        b"",
        {
            "parked": [
                {"deadline_ms": 300, "resources": LISTED},
                {"deadline_ms": 900, "resources": JUST_B0},
            ],
            "fired": JUST_B0,
            "again_at_ms": 800,
        },
    ),
    Golden(
        records.Operator(
            Scope.RESOURCE, "A", 1, True, True, 300, 5, ("http://w1", "i"), 9, "someone", "W1", True
        ),
        b"resource\0A\x001\0",
        {
            "scope": "resource",
            "name": "A",
            "task": 1,
            "cordoned": True,
            "draining": True,
            "expected_back_ms": 300,
            "weight": 5,
            "pins": ["http://w1", "i"],
            "time_ms": 9,
            "actor": "someone",
            "removing": "W1",
            "gently": True,
        },
    ),
    Golden(
        records.Loss("W1", "i", "http://w1", frozenset({B0}), 9, Cause(Why.SESSION_EXPIRED), 300),
        b"W1\0",
        {
            "member_id": "W1",
            "url": "http://w1",
            "resources": JUST_B0,
            "time_ms": 9,
            "cause": {"why": "session-expired", "subject": ""},
            "deadline_ms": 300,
            "instance_id": "i",
        },
    ),
    Golden(
        Committed(
            Commit(
                COMMIT_ID,
                (Advance({"path": "a"}, None, {"row": 8}),),
                Manifest(
                    "/out",
                    "s",
                    8,
                    80,
                    1,
                    (Part("m=1/part-0", 80, 8),),
                    "ab12",
                    {"table": "t"},
                    Manifest("/bad", "d", 2, 20, 1),
                ),
                10,
                Lag(3, 300, 3),
                2,
                TOOK,
            ),
            9,
        ),
        b"A\x001\x005\x002\x003\0",
        {
            "commit_id": WIRE_ID,
            "advances": [{"partition": {"path": "a"}, "start": None, "end": {"row": 8}}],
            "manifest": {
                "root": "/out",
                "staging": "s",
                "rows": 8,
                "bytes": 80,
                "files": 1,
                "parts": [["m=1/part-0", 80, 8]],
                "claim": "ab12",
                "note": {"table": "t"},
                "dead_letters": {
                    "root": "/bad",
                    "staging": "d",
                    "rows": 2,
                    "bytes": 20,
                    "files": 1,
                    "parts": [],
                    "claim": "",
                    "note": {},
                    "dead_letters": None,
                },
            },
            "rows_in": 10,
            "time_ms": 9,
            "lag": {"ranges": 3, "bytes": 300, "records": 3},
            "skipped": 2,
            "cost": COST,
        },
    ),
    Golden(
        TaskProgress(COMMIT_ID, 4, 40, 32, 320, 9, Lag(1, 100, 7), COMMIT_ID, 3, 2, TOOK),
        b"A\x001\0",
        {
            "last": WIRE_ID,
            "batches": 4,
            "rows_in": 40,
            "rows_out": 32,
            "bytes_out": 320,
            "time_ms": 9,
            "lag": {"ranges": 1, "bytes": 100, "records": 7},
            "filled": WIRE_ID,
            "skipped": 3,
            "dead_letters": 2,
            "cost": COST,
        },
    ),
    Golden(
        records.GroupDeletion(7, 9, "someone"),
        b"",
        {"group_epoch": 7, "time_ms": 9, "actor": "someone"},
    ),
    Golden(
        records.ClassicGroup(
            7,
            Cause(Why.MEMBER_JOINED, "m1"),
            9,
            "game",
            "chess",
            "m1",
            (
                ClassicMember(
                    *("m1", 6, 60, (ClassicProtocol("chess", b"x"),), "i1", "c", "/h", b"y"),
                    *("http://l/", {A1: 3, A: 5}, {B0: 2}, 1),
                ),
            ),
            is_synced=True,
        ),
        b"",
        {
            "generation": 7,
            "cause": {"why": "member-joined", "subject": "m1"},
            "time_ms": 9,
            "protocol_type": "game",
            "protocol": "chess",
            "leader": "m1",
            "members": [
                {
                    "member_id": "m1",
                    "session_timeout_ms": 6,
                    "rebalance_timeout_ms": 60,
                    "protocols": [{"name": "chess", "metadata": b"x"}],
                    "instance_id": "i1",
                    "client_id": "c",
                    "client_host": "/h",
                    "assignment": b"y",
                    "url": "http://l/",
                    "assigned": {"A": [-1, 5, 1, 3]},
                    "pending": {"B": [0, 2]},
                    "returns": 1,
                }
            ],
            "is_synced": True,
        },
    ),
    Golden(
        records.OwnerBegan(3, "n2", "10.0.0.2:9094", "0.4", 3_400, 9, 14),
        b"",
        {
            "epoch": 3,
            "node": "n2",
            "address": "10.0.0.2:9094",
            "version": "0.4",
            "silence_ms": 3_400,
            "time_ms": 9,
            "generation": 14,
        },
    ),
    Golden(
        records.OwnerResigned(3, "n2", "n1", 9),
        b"",
        {"epoch": 3, "node": "n2", "to": "n1", "time_ms": 9},
    ),
    Golden(
        SubscribedTopics({"t": Topic("ab12", 4), "old": Topic("cd34", 2, is_released=True)}),
        b"",
        {
            "topics": {
                "t": {"topic_id": "ab12", "partitions": 4, "is_released": False},
                "old": {"topic_id": "cd34", "partitions": 2, "is_released": True},
            }
        },
    ),
    Golden(
        ConsumerSubscription("m1", ("a", "t"), "t.*", ("t", "tt")),
        b"m1\0",
        {"member_id": "m1", "names": ["a", "t"], "pattern": "t.*", "matched": ["t", "tt"]},
    ),
    Golden(
        ConsumerOffset("t", 3, 7, 2, "note", 9, "ab12"),
        b"t\x003\0",
        {
            "topic": "t",
            "partition": 3,
            "offset": 7,
            "leader_epoch": 2,
            "metadata": "note",
            "time_ms": 9,
            "topic_id": "ab12",
        },
    ),
    Golden(
        PendingOffset(ConsumerOffset("t", 3, 7, 2, "note", 9, "ab12"), 11, 100, "copy"),
        b"t\x003\x0011\x00100\0",
        {
            "offset": {
                "topic": "t",
                "partition": 3,
                "offset": 7,
                "leader_epoch": 2,
                "metadata": "note",
                "time_ms": 9,
                "topic_id": "ab12",
            },
            "producer_id": 11,
            "after": 100,
            "transactional_id": "copy",
        },
    ),
    Golden(
        records.ConfiguredPart(3, frozenset({A, A0, A1})),
        b"3\0",
        {"number": 3, "configured": {"A": [-1, 0, 1]}},
    ),
    Golden(
        records.TargetPart(3, {"W1": frozenset({A, A0, A1})}, {B0: "full"}),
        b"3\0",
        {
            "number": 3,
            "members": {"W1": {"A": [-1, 0, 1]}},
            "unplaceable": [{"connector": "B", "task": 0, "reason": "full"}],
        },
    ),
    Golden(
        records.CurrentPart("W1", 3, {A1: 3, A: 5, A0: 4}, {B0: 2}),
        b"W1\0003\0",
        {
            "member_id": "W1",
            "number": 3,
            "assigned": {"A": [-1, 5, 0, 4, 1, 3]},
            "pending": {"B": [0, 2]},
        },
    ),
]


def before(now: Record, was: Record, *lacking: str) -> Golden:
    """Return an earlier form of a record, without these fields.

    `was` is the record to which it is decoded now.
    """
    (form,) = (each for each in WRITTEN if each.record == now)
    value = deepcopy(form.value)
    for path in lacking:
        *outer, name = path.split(".")
        inner: Any = value
        for each in outer:
            inner = inner[int(each)] if each.isdigit() else inner[each]
        del inner[name]
    return Golden(was, form.key, value)


def _rows() -> dict[type, Any]:
    """Return the current records, by class."""
    return {type(each.record): each.record for each in WRITTEN}


def _earlier() -> Iterator[Golden]:
    now = _rows()
    committed, progress = now[Committed], now[TaskProgress]
    manifest = replace(committed.commit.manifest, dead_letters=None)
    clean = replace(committed.commit, manifest=manifest, skipped=0)
    unsaid = replace(clean, manifest=replace(manifest, note={}), lag=None)
    fields = "skipped", "manifest.dead_letters"
    yield before(committed, replace(committed, commit=clean), *fields)
    yield before(committed, replace(committed, commit=unsaid), *fields, "lag", "manifest.note")
    yield before(progress, replace(progress, skipped=0, dead_letters=0), "skipped", "dead_letters")
    yield before(progress, replace(progress, lag=Lag(1, 100)), "lag.records")
    status, member = now[TaskStatus], now[records.MemberMetadata]
    yield before(status, replace(status, restarts=AutoRestart()), "restarts", "restarted_ms")
    config = now[ConnectorConfig]
    unnamed = replace(config, actor=None)
    yield before(config, unnamed, "actor")
    yield before(config, unnamed, "given_up", "actor")
    yield before(config, unnamed, "to_forget", "given_up", "actor")
    for head in records.HEADS:
        yield before(now[head], now[head], "shards")
    bump = now[records.GroupMetadata]
    yield before(bump, replace(bump, since_ms=0), "since_ms")
    said = "session_timeout_ms", "succession", "node", "classic"
    blank = replace(member, session_timeout_ms=0, succession=None, classic=None)
    yield before(member, blank, *said)
    generation = now[records.ClassicGroup]
    (known,) = generation.members
    ungranted = replace(known, url="", assigned={}, pending={}, returns=0)
    lacking = (f"members.0.{each}" for each in ("url", "assigned", "pending", "returns"))
    yield before(generation, replace(generation, members=(ungranted,)), *lacking)
    read = now[ConsumerOffset]
    yield before(read, replace(read, topic_id=""), "topic_id")


EARLIER: list[Golden] = [*_earlier()]
