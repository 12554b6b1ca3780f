"""The histories of the golden logs, produced by the real coordinator on real logs.

Together they write every type of record in every possible way. A rule that is added
later gets its own history, or a part of one of these, and a new generation is written.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from fairlead.actors.assignors.built_in import incremental
from fairlead.actors.group.group_shard import CoordinatorProcess, GroupShard
from fairlead.actors.group.host import drain
from fairlead.actors.group.kind import WORKERS
from fairlead.actors.group.members.commit import OffsetLedger
from fairlead.actors.messages.classic import (
    JoinGroup,
    JoinGroupReply,
    LeaveGroup,
    Leaver,
    SyncGroup,
)
from fairlead.actors.messages.commands import AddressedReply, GroupRequest
from fairlead.actors.messages.computing import Assignment, Install, Prepare, PrepareReply
from fairlead.actors.messages.members import (
    CommitOffsets,
    ExternalStateRemoved,
    Heartbeat,
    PutTaskConfigs,
    ReadConfigs,
    ReportStatus,
    StatusUpdate,
)
from fairlead.actors.messages.orders import (
    AlterOffsets,
    ConfigureGroup,
    Cordon,
    DeleteConnector,
    DeleteGroup,
    EndMember,
    Expect,
    PutConnector,
    Rebalance,
    RemoveMember,
    Restart,
    SetPlacement,
    SetTargetState,
    Uncordon,
)
from fairlead.actors.shards.hosting import CONNECTORS
from fairlead.events.commits import Advance, Commit, CommitId, Manifest, Scalar
from fairlead.events.entries.codec import encode
from fairlead.events.group import token_of
from fairlead.events.log.frame import Entry, NewEntry
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import (
    AssignorData,
    ClassicProtocol,
    ClientAssignor,
    Resource,
    RunState,
)
from fairlead.events.records import OwnerBegan, OwnerResigned
from fairlead_tests.classic.workers import as_worker, told
from fairlead_tests.coordination.driver import SESSION_MS, CoordinatorDriver
from fairlead_tests.decider import COOPERATIVE, resource, resources
from fairlead_tests.golden.consuming import Consuming
from fairlead_tests.life import DEEDS, NUMBERS, OPENING, Life

MINUTE_MS = 60_000
FILE = {"path": "a.csv"}


class Stage(CoordinatorDriver):
    """A driver that can run until the group is stable."""

    def run_flights(self, tasks: int, *members: str) -> None:
        """Let members join a group with one connector with so many tasks."""
        self.put("flights")
        for member_id in members:
            self.asks(self.joining(member_id))
        self.settle()
        self.split(self.group.owner[Resource("flights")], "flights", tasks)
        self.settle()

    def comes(self, member_id: str) -> None:
        """Let one more member join."""
        self.asks(self.joining(member_id))
        self.settle()

    def settle(self, *silent: str) -> None:
        """Let all members but the silent ones send heartbeats, and the elected one compute."""
        for _ in range(8):
            end = self.group.end
            for member_id in sorted(self.group.members.keys() - set(silent)):
                self._turn(member_id)
            if self.group.end == end:
                return
        raise AssertionError("the group does not come to rest")

    def _turn(self, member_id: str) -> None:
        member = self.group.members[member_id]
        if member.current.member_epoch == -2:
            return
        owned = " ".join(map(str, sorted(member.current.assigned)))
        joins = member.current.member_epoch == 0
        request = self.joining(member_id) if joins else self.full(member_id, owned)
        self.asks(replace(request, instance_id=member.metadata.instance_id))
        self.compute_if_due(member_id)

    def compute_if_due(self, member_id: str) -> None:
        """Let a member compute the target if it is elected."""
        computation = self.coordinator.state.soft.computation
        if computation is not None and computation.member_id == member_id:
            self.compute(member_id)

    def pass_with(self, milliseconds: int, *silent: str) -> None:
        """Advance the clock, with heartbeats of all members but the silent ones."""
        for _ in range(0, milliseconds, 5_000):
            self.passes(5_000)
            self.settle(*silent)

    def join_as(self, member_id: str, instance_id: str) -> None:
        """Let a static member join."""
        joining = replace(self.joining(member_id), instance_id=instance_id)
        self.asks(replace(joining, url=f"http://{instance_id}"))

    def leave(self, member_id: str, epoch: int = -1) -> None:
        """Let a member leave, permanently or temporarily."""
        instance_id = self.group.members[member_id].metadata.instance_id
        self.asks(self.request(member_id, epoch, instance_id=instance_id))

    def owns(self, record: OwnerBegan | OwnerResigned) -> None:
        """Write that a node owns the group, or gives it up, and open it as the owner does."""
        self.control.append(self.control.end, [encode(record)], self.now.wall_ms)
        self.open()

    def work(self, name: str, number: int) -> None:
        """Let a task commit a batch, publish the former one, and report that it runs."""
        task = resource(name)
        holder = self.group.owner[task]
        token = token_of(self.group, holder, task)
        assert token is not None
        start = {"row": number * 10} if number else None
        advance = Advance(FILE, start, {"row": number * 10 + 10})
        note: dict[str, Scalar] = {"table": "flights", "upload": number}
        letters = Manifest("/bad", f"s-{number}", 2, 20, 1) if number else None
        manifest = Manifest("/out", f"s-{number}", 10, 100, 1, note=note, dead_letters=letters)
        skipped = 3 if number else 0
        commit = Commit(CommitId(*task, token, number), (advance,), manifest, 10, skipped=skipped)
        last = (CommitId(*task, token, number - 1),) if number else ()
        self.send(CommitOffsets("connect", holder, (commit,), last))
        update = StatusUpdate(task, token, RunState.RUNNING, self.now.wall_ms, "batches run")
        self.send(ReportStatus("connect", holder, (update,)))

    def fails(self, member_id: str, error: str) -> None:
        """Let the computation of the elected member fail."""
        epoch = self.group.members[member_id].current.member_epoch
        (prepared,) = self.send(Prepare("connect", member_id, epoch))
        assert isinstance(prepared.reply, PrepareReply)
        assert prepared.reply.snapshot is not None
        at = prepared.reply.snapshot.group_epoch
        self.send(Install("connect", member_id, epoch, at, None, error))


def moves(stage: Stage) -> None:
    """Workers come and go, connectors split, tasks move and commit."""
    stage.run_flights(4, "W1")
    stage.work("flights-0", 0)
    stage.work("flights-0", 1)
    stage.comes("W2")
    stage.put("trains")
    stage.settle()
    stage.split(stage.group.owner[Resource("trains")], "trains", 2)
    stage.settle()
    stage.leave("W2")
    stage.settle()
    stage.open()
    stage.settle()
    stage.split("W1", "flights", 3)
    stage.settle()
    stage.send(DeleteConnector("connect", "trains", "rest"))
    stage.settle()
    stage.pass_with(10_000)


def losses(stage: Stage) -> None:
    """Crashes: work is parked, comes back to its worker, or is released by its deadline."""
    stage.run_flights(6, "W1", "W2", "W3")
    stage.pass_with(SESSION_MS + 5_000, "W3")
    back = replace(stage.joining("W9"), url="http://W3")
    stage.asks(back)
    stage.settle()
    stage.pass_with(SESSION_MS + 5_000, "W2", "W9")
    stage.open()
    stage.pass_with(6 * MINUTE_MS)
    stage.leave("W1")


def deaths(stage: Stage) -> None:
    """Ends of processes are reported: of current ones, of former ones, and late."""
    stage.run_flights(3, "W1")
    stage.comes("W2")
    stage.work("flights-1", 0)
    stage.pass_with(500)
    seen_ms = stage.now.wall_ms - 200
    for member_id, incarnation in (("W2", "i-W1"), ("W9", "i-W9"), ("W2", "i-W2")):
        stage.send(EndMember("connect", member_id, incarnation, seen_ms))
    stage.settle()
    stage.comes("W2")
    stage.pass_with(SESSION_MS, "W1")
    stage.settle()


def revocations(stage: Stage) -> None:
    """One member misses its revocation deadline; at the end another is still revoking."""
    stage.run_flights(4, "W1")
    stage.asks(stage.joining("W2"))
    stage.compute_if_due("W1")
    while "W1" in stage.group.members:
        stage.beat("W1")
        stage.settle("W1")
        stage.passes(5_000)
    stage.asks(stage.joining("W3"))
    for _ in range(3):
        for member_id in sorted(stage.group.members):
            stage.beat(member_id)
            stage.compute_if_due(member_id)


def static(stage: Stage) -> None:
    """Static members leave temporarily, and return with another id, or too late."""
    stage.put("flights")
    stage.join_as("W1", "i1")
    stage.join_as("W2", "i2")
    stage.settle()
    stage.split(stage.group.owner[Resource("flights")], "flights", 5)
    stage.settle()
    stage.leave("W1", -2)
    stage.passes(3_000)
    stage.join_as("W7", "i1")
    stage.settle()
    stage.leave("W7", -2)
    stage.join_as("W7", "i1")
    stage.settle()
    stage.leave("W2", -2)
    stage.open()
    stage.pass_with(6 * MINUTE_MS, "W2")
    stage.join_as("W8", "i2")
    stage.settle()
    stage.leave("W8", -2)


def orders(stage: Stage) -> None:
    """Operators cordon, drain, expect, place, remove, and ask for a rebalance."""
    stage.run_flights(6, "W1", "W2", "W3")
    stage.send(Cordon("connect", "W1", principal="someone"))
    stage.settle()
    stage.send(SetPlacement("connect", resource("flights-0"), weight=5, principal="someone"))
    stage.send(SetPlacement("connect", resource("flights-1"), pins=("http://W2",)))
    stage.settle()
    stage.send(Cordon("connect", "W2", drain=True))
    stage.settle()
    stage.send(Uncordon("connect", "W1"))
    stage.send(Expect("connect", "W3", 20 * MINUTE_MS, "someone"))
    stage.settle()
    stage.pass_with(SESSION_MS + 5_000, "W3")
    stage.send(Rebalance("connect", "someone"))
    stage.settle("W3")
    stage.send(RemoveMember("connect", "W2", force=True, principal="someone"))
    stage.pass_with(SESSION_MS + 5_000, "W2")


def many(stage: Stage) -> None:
    """More connectors than one record is to name: added, split, deleted, lost, all deleted."""
    names = [f"c{number}" for number in range(90)]
    for name in names:
        stage.put(name)
    for member_id in ("W1", "W2"):
        stage.asks(stage.joining(member_id))
    stage.settle()
    stage.put("late")
    stage.settle()
    stage.split(stage.group.owner[Resource("late")], "late", 3)
    stage.settle()
    stage.send(DeleteConnector("connect", "c7", "someone"))
    stage.settle()
    stage.open()
    stage.pass_with(SESSION_MS + 5_000, "W2")
    stage.asks(replace(stage.joining("W9"), url="http://W2"))
    stage.settle()
    for name in names[40:]:
        stage.send(DeleteConnector("connect", name))
    stage.settle()
    stage.passes(1_000)


def settings(stage: Stage) -> None:
    """A group is configured, deleted, and lives again."""
    stage.send(ConfigureGroup("connect", {"session.timeout.ms": "20000"}, "someone"))
    stage.put("flights")
    stage.comes("W1")
    stage.send(ConfigureGroup("connect", {"scheduled.rebalance.max.delay.ms": "60000"}))
    stage.send(Cordon("connect", "W1"))
    stage.leave("W1")
    stage.passes(1_000)
    stage.send(DeleteGroup("connect", "someone"))
    stage.open()
    stage.asks(stage.joining("W2"))
    stage.put("trains")
    stage.settle()
    stage.send(ConfigureGroup("connect", {"group.max.size": "5"}))


def stops(stage: Stage) -> None:
    """Connectors are paused, stopped, resumed, restarted and deleted."""
    stage.run_flights(2, "W1")
    stage.work("flights-0", 0)
    for state in (RunState.PAUSED, RunState.RUNNING, RunState.STOPPED):
        stage.send(SetTargetState("connect", "flights", state, "someone"))
        stage.settle()
    stage.send(Restart("connect", Resource("flights"), include_tasks=True, principal="someone"))
    stage.settle()
    stage.send(SetTargetState("connect", "flights", RunState.RUNNING))
    stage.settle()
    stage.send(Restart("connect", resource("flights-1")))
    stage.send(SetTargetState("connect", "flights", RunState.STOPPED))
    stage.settle()
    stage.passes(1_000)
    stage.send(DeleteConnector("connect", "flights", "someone", forgets=True))
    stage.settle()
    stage.passes(1_000)
    config_ms = stage.group.connectors["flights"].time_ms
    stage.send(ExternalStateRemoved("connect", "W1", "flights", config_ms))
    stage.passes(1_000)


def replays(stage: Stage) -> None:
    """Offsets of a stopped connector are set, reset, and begun with when it is resumed."""
    stage.run_flights(1, "W1")
    stage.work("flights-0", 0)
    token = token_of(stage.group, "W1", resource("flights-0"))
    assert token is not None
    stage.send(CommitOffsets("connect", "W1", (), (CommitId("flights", 0, token, 0),)))
    stage.send(SetTargetState("connect", "flights", RunState.STOPPED, "someone"))
    stage.settle()
    stage.passes(1_000)
    new = (({"path": "b.csv"}, {"row": 5}), (FILE, {"row": 1}))
    stage.send(AlterOffsets("connect", "flights", "altered", new, principal="someone"))
    stage.send(AlterOffsets("connect", "flights", "reset", principal="someone"))
    stage.send(SetTargetState("connect", "flights", RunState.RUNNING, "someone"))
    stage.settle()
    stage.work("flights-0", 0)


def failures(stage: Stage) -> None:
    """Computations fail, a member changes its assignors, and the coordinator computes itself."""
    stage.put("flights")
    stage.asks(stage.joining("W1"))
    stage.fails("W1", "out of luck")
    stage.pass_with(MINUTE_MS)
    richer = replace(
        stage.full("W1", "flights"),
        assignors=(replace(COOPERATIVE[0], metadata=b"x"), ClientAssignor("other", 0, 2, 1)),
    )
    stage.asks(richer)
    stage.settle()
    server = replace(stage.joining("W2"), assignors=None, server_assignor="uniform")
    stage.asks(server)
    for _ in range(4):
        for member_id in sorted(stage.group.members):
            assigned = stage.group.members[member_id].current.assigned
            stage.asks(stage.request(member_id, owned=tuple(sorted(assigned))))


def gently(stage: Stage) -> None:
    """A large imbalance is worked off one move after the other; some are left at the end."""
    stage.assignors = (ClientAssignor(incremental.NAME),)
    stage.assign = lambda snapshot: incremental.assign(snapshot, 1, MINUTE_MS)
    stage.run_flights(9, "W1")
    stage.comes("W2")
    stage.pass_with(MINUTE_MS)
    stage.open()
    stage.asks(stage.joining("W3"))
    stage.pass_with(SESSION_MS + MINUTE_MS, "W3")


def crew(stage: Stage) -> None:
    """Two of Connect's workers share a connector: a task moves from one to the other."""
    ids = map(str, count())
    settings = replace(stage.settings, initial_delay_ms=0)
    shard = GroupShard(
        stage.group,
        WORKERS,
        settings,
        OffsetLedger(stage.offsets),
        0,
        CoordinatorProcess(1, lambda: next(ids)),
    )
    tasks = "a-0", "a-1"

    def ask(request: GroupRequest) -> list[AddressedReply]:
        shard.submit(request, "someone", stage.now)
        return [*drain(shard, stage, stage.now)]

    def joins(url: str, member_id: str, *runs: str, instance_id: str | None = None) -> None:
        said: dict[str, Any] = {
            **as_worker(url, *runs),
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": MINUTE_MS,
            "instance_id": instance_id,
            "asks_for_id": False,
        }
        ask(JoinGroup("connect", member_id, client_id="w", **said))

    def syncs(assignments: dict[str, bytes]) -> None:
        assert stage.group.classic is not None
        generation = stage.group.classic.generation
        ask(SyncGroup("connect", "i1-0", generation, assignments=assignments))

    joins("http://1/", "", instance_id="i1")
    syncs({"i1-0": told(["a", *tasks])})
    joins("http://2/", "")
    joins("http://1/", "i1-0", "a", *tasks)
    syncs({"i1-0": told(taken=["a-1"]), "w-2": told()})
    joins("http://1/", "i1-0", "a", "a-0")
    joins("http://2/", "w-2")
    syncs({"i1-0": told(), "w-2": told(["a-1"])})
    joins("http://1/", "", instance_id="i1")


def migration(stage: Stage) -> None:
    """A classic group is converted to the connect type by a join, and back."""
    ids = map(str, count())
    settings = replace(stage.settings, initial_delay_ms=0)
    shard = GroupShard(
        stage.group,
        WORKERS,
        settings,
        OffsetLedger(stage.offsets),
        0,
        CoordinatorProcess(1, lambda: next(ids)),
    )

    def ask(request: GroupRequest) -> list[AddressedReply]:
        shard.submit(request, "someone", stage.now)
        return [*drain(shard, stage, stage.now)]

    def joins(member_id: str, *runs: str, instance_id: str) -> None:
        said: dict[str, Any] = {
            **as_worker(f"http://{instance_id}/", *runs),
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": MINUTE_MS,
            "instance_id": instance_id,
            "asks_for_id": False,
        }
        ask(JoinGroup("connect", member_id, client_id="w", **said))

    def beats(epoch: int, **said: Any) -> None:
        ask(stage.request("W1", epoch, coordinator_epoch=1, **said))

    ask(PutConnector("connect", "a", {"name": "a"}))
    joins("", instance_id="i1")
    ask(SyncGroup("connect", "i1-0", 1, assignments={"i1-0": told(["a"])}))
    token = token_of(stage.group, "i1-0", resource("a"))
    assert token is not None
    ask(PutTaskConfigs("connect", "i1-0", "a", token, ({"n": "0"}, {"n": "1"})))
    tasks = "a-0", "a-1"
    joins("i1-0", "a", instance_id="i1")
    ask(SyncGroup("connect", "i1-0", 2, assignments={"i1-0": told(tasks)}))
    beats(
        0,
        url="http://3/",
        instance_id="i3",
        rebalance_timeout_ms=MINUTE_MS,
        server_assignor="uniform",
        owned=(),
    )
    joins("i1-0", "a", *tasks, instance_id="i1")
    joins("i1-0", *sorted(map(str, stage.group.share_of("i1-0"))), instance_id="i1")
    for _ in range(2):
        epoch = stage.group.members["W1"].current.member_epoch
        beats(epoch, owned=tuple(sorted(stage.group.members["W1"].current.assigned)))
    joins("", instance_id="i2")
    joins("", instance_id="i3")
    joins("i1-0", "a", instance_id="i1")


def classic(stage: Stage) -> None:
    """Members of the classic protocol come and go; when they have left, one of ours joins."""
    ids = map(str, count())
    ledger = OffsetLedger(stage.offsets)
    shard = GroupShard(
        stage.group, WORKERS, stage.settings, ledger, 0, CoordinatorProcess(1, lambda: next(ids))
    )

    def ask(request: GroupRequest) -> list[AddressedReply]:
        shard.submit(request, "someone", stage.now)
        return [*drain(shard, stage, stage.now)]

    def joins(name: str, member_id: str = "") -> list[AddressedReply]:
        offers = (ClassicProtocol("chess", name.encode()), ClassicProtocol("go", b""))
        return ask(
            JoinGroup(
                *("connect", member_id, "game", offers, SESSION_MS, MINUTE_MS, name),
                client_id="client",
                client_host="/127.0.0.1",
            )
        )

    joins("i1")
    joins("i2")
    stage.now_ms += 3_000
    shard.run_timers(stage.now)
    first, second = [
        each.reply.member_id
        for each in drain(shard, stage, stage.now)
        if isinstance(each.reply, JoinGroupReply)
    ]
    ask(SyncGroup("connect", first, 1, assignments={first: b"one", second: b"\0\xff"}))
    joins("i2")
    ask(LeaveGroup("connect", (Leaver(first),)))
    ask(LeaveGroup("connect", (Leaver("", "i2"),)))
    stage.open()
    stage.asks(stage.joining("W1"))
    stage.leave("W1")
    shard = GroupShard(
        stage.group,
        WORKERS,
        stage.settings,
        ledger,
        stage.now_ms,
        CoordinatorProcess(1, lambda: next(ids)),
    )
    joins("i3")
    stage.now_ms += 3_000
    shard.run_timers(stage.now)
    drain(shard, stage, stage.now)


def consumers(stage: Stage) -> None:
    """Consumers read topics that are added and deleted; one has a pattern, one is static."""
    Consuming(stage, stage.offsets).lead()


def outside(stage: Stage) -> None:
    """Workers with configs of their own say what is to run, the last time in parts."""
    shard = GroupShard(
        stage.group,
        CONNECTORS,
        stage.settings,
        OffsetLedger(stage.offsets),
        0,
        CoordinatorProcess(1, str),
    )
    for member_id, epoch, names, offset in (
        ("W1", 0, "A A-0 A-1", 5),
        ("W2", 0, "", -1),
        ("W1", 1, "A A-0 A-1 B B-0", 9),
        ("W1", 1, " ".join(f"C{number} C{number}-0" for number in range(20)), 12),
    ):
        joins = {"rebalance_timeout_ms": 60_000, "server_assignor": "uniform", "owned": ()}
        said: dict[str, Any] = {} if epoch else {"url": f"http://{member_id}/", **joins}
        configs = None if offset < 0 else ReadConfigs(resources(names), offset)
        beat = Heartbeat("connect", member_id, epoch, configs=configs, **said)
        shard.submit(beat, member_id, stage.now)
        drain(shard, stage, stage.now)


def said(stage: Stage) -> None:
    """An assignor says something to each member alone, then it fails with a number."""
    stage.put("flights")
    stage.asks(stage.joining("W1"))
    shares = {"W1": frozenset({Resource("flights")})}
    for assignment, code in (
        (Assignment(shares, data={"W1": AssignorData(2, b"for-W1")}), 0),
        (None, 9),
    ):
        epoch = stage.group.members["W1"].current.member_epoch
        (prepared,) = stage.send(Prepare("connect", "W1", epoch))
        assert isinstance(prepared.reply, PrepareReply)
        assert prepared.reply.snapshot is not None
        at, failed = prepared.reply.snapshot.group_epoch, "it failed" if code else ""
        stage.send(Install("connect", "W1", epoch, at, assignment, failed, error_code=code))
        stage.settle()
        stage.send(Rebalance("connect"))


def owners(stage: Stage) -> None:
    """Nodes own the group one after the other: the first is silent, the second gives it up."""
    stage.owns(
        OwnerBegan(1, "n1", "10.0.0.1:9094", "0.4", time_ms=stage.now.wall_ms, generation=14)
    )
    stage.run_flights(2, "W1", "W2")
    stage.passes(3_400)
    silence = {"silence_ms": 3_400, "time_ms": stage.now.wall_ms}
    stage.owns(OwnerBegan(2, "n2", "10.0.0.2:9094", "0.4", **silence, generation=14))
    stage.work("flights-0", 0)
    stage.settle()
    stage.owns(OwnerResigned(2, "n2", "n1", stage.now.wall_ms))
    stage.owns(
        OwnerBegan(3, "n1", "10.0.0.1:9094", "0.4", time_ms=stage.now.wall_ms, generation=14)
    )
    stage.settle()


def storm(stage: Stage) -> None:
    """Random events, by one seed."""
    rng = Random(1)
    names = [*DEEDS, "join", "expire", *["rest"] * 6]
    deeds = [
        (rng.choice(names), rng.randrange(NUMBERS), rng.randrange(NUMBERS)) for _ in range(150)
    ]
    entries = Life().lead([*OPENING, *deeds]).witness.entries
    for entry in entries:
        stage.control.append(
            entry.offset, [NewEntry(*entry[1:4], entry.value)], stage.now.wall_ms + entry.offset
        )


LIVES: dict[str, Callable[[Stage], None]] = {
    life.__name__: life
    for life in (
        *(moves, losses, deaths, revocations, static, orders, many, settings, failures, gently),
        *(stops, replays, classic, crew, migration, consumers, outside, said, owners, storm),
    )
}


def lead(name: str, folder: Path) -> tuple[list[Entry], list[Entry]]:
    """Produce a history in a separate folder; return the entries of both logs.

    `backup` in that folder is a compact copy of the control log.
    """
    control = GroupLog.open_writer(folder / "control", "connect")
    stage = Stage(control, GroupLog.open_writer(folder / "offsets", "connect"))
    try:
        LIVES[name](stage)
        stage.control.backup(folder / "backup")
        return stage.control.read(0).entries, stage.offsets.read(0).entries
    finally:
        stage.close()
