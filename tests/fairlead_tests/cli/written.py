"""The logs of a small group: two workers share a connector with four tasks, one is lost."""

from collections.abc import Sequence
from pathlib import Path

from fairlead.events.commits import (
    Advance,
    Commit,
    CommitId,
    Committed,
    Manifest,
    Offset,
    TaskProgress,
)
from fairlead.events.entries.codec import encode
from fairlead.events.log.frame import NewEntry
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import (
    Cause,
    ClientAssignor,
    MemberState,
    Resource,
    RunState,
    TaskConfig,
    Token,
    Why,
)
from fairlead.events.records import (
    ConnectorConfig,
    ConnectorsTasksMetadata,
    CurrentAssignment,
    GroupMetadata,
    Loss,
    MemberMetadata,
    Record,
    ScheduledRebalance,
    TargetAssignment,
    TaskConfigs,
    TaskStatus,
    Tombstone,
)

TIME_MS = 1_357_000_000_000
W1, W2 = "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed", "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d"
URL_1, URL_2 = "127.0.0.1:8083/w1", "127.0.0.1:8083/w2"
FLIGHTS = Resource("flights")
TASKS = [Resource("flights", number) for number in range(4)]
CONFIG = {"connector.class": "fairlead.runtime.pipeline.connectors.SparkPipeline", "tasks.max": "4"}
COMMIT = CommitId("flights", 0, Token(2, 1), 7)

CONTROL: Sequence[Record] = (
    GroupMetadata(1, Cause(Why.MEMBER_JOINED, URL_1), TIME_MS),
    MemberMetadata(W1, "i1", 1, 60_000, (ClientAssignor("balanced"),), url=URL_1),
    ConnectorConfig("flights", CONFIG, 1, TIME_MS),
    ConnectorsTasksMetadata(frozenset({FLIGHTS, *TASKS})),
    GroupMetadata(2, Cause(Why.CONNECTOR_ADDED, "flights"), TIME_MS, actor="rest"),
    TaskConfigs("flights", 1, tuple(TaskConfig({"n": str(n)}, 1) for n in range(4))),
    MemberMetadata(W2, "i2", 2, 60_000, (ClientAssignor("balanced"),), url=URL_2),
    TargetAssignment(
        2,
        {W1: frozenset({FLIGHTS, *TASKS[:2]}), W2: frozenset(TASKS[2:])},
        assignor="balanced",
        computed_by=W1,
        time_ms=TIME_MS,
    ),
    CurrentAssignment(W1, 2, 0, MemberState.STABLE, {FLIGHTS: 2, TASKS[0]: 2, TASKS[1]: 2}, {}),
    CurrentAssignment(W2, 1, 0, MemberState.UNREVOKED, {TASKS[2]: 1}, {TASKS[3]: 1}),
    TaskStatus(TASKS[0], RunState.RUNNING, URL_1, Token(2, 1), TIME_MS),
    TaskStatus(TASKS[1], RunState.FAILED, URL_1, Token(2, 1), TIME_MS, "no such column\nat x.py"),
    Tombstone(CurrentAssignment, (W2,)),
    Tombstone(MemberMetadata, (W2,)),
    Loss(
        W2,
        None,
        URL_2,
        frozenset({TASKS[2]}),
        TIME_MS,
        Cause(Why.SESSION_EXPIRED, URL_2),
        TIME_MS + 300_000,
    ),
    GroupMetadata(3, Cause(Why.SESSION_EXPIRED, URL_2), TIME_MS),
    ScheduledRebalance({TASKS[2]: TIME_MS + 300_000}),
    TargetAssignment(2, {W1: frozenset()}, error="assignor failed", failures=1),
)
OFFSETS: Sequence[Record] = (
    Committed(
        Commit(
            COMMIT,
            (Advance({"file": "a.csv"}, None, {"row": 842}),),
            Manifest("/out", "_staging/1", 842, 10_240, 3),
            842,
        ),
        TIME_MS,
    ),
    Offset("flights", {"file": "a.csv"}, {"row": 842}),
    TaskProgress(COMMIT, 8, 6_700, 6_700, 81_920, TIME_MS),
    Tombstone(Committed, ("flights", 0, 2, 1, 7)),
)
STRANGE = NewEntry(99, 1, b"key\x00", b"\x01")
"""An entry of a type that this version does not know."""


def write(folder: Path, records: Sequence[Record], extra: Sequence[NewEntry] = ()) -> None:
    """Write records into the log of the group `connect` in a folder, one commit each."""
    with GroupLog.open_writer(folder, "connect", reserve_bytes=0) as log:
        for entry in (*map(encode, records), *extra):
            log.append(log.end, [entry], TIME_MS)


def write_both(data_dir: Path) -> Path:
    """Write both logs of the group and return its folder."""
    folder = data_dir / "groups" / "connect"
    write(folder / "control", CONTROL, [STRANGE])
    write(folder / "offsets", OFFSETS)
    return folder
