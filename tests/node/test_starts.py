"""A supervisor starts workers as fast as they begin; it lets go those whose command has ended."""

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.orders import EndMember
from fairlead.actors.shards.host_actor import GroupOpened, Ping, Pong
from fairlead.actors.transport.actor import Actor
from fairlead.actors.worker.instructions import Timing
from fairlead.events.log.process import process_of
from fairlead.runtime.cluster.messages import (
    AddWorker,
    AllLeft,
    AssignorsOpen,
    Begin,
    Begun,
    DescribeNode,
    GroupGivenUp,
    Leave,
    NodeView,
    ShutDown,
    StartWorker,
    StopWorker,
    Undecided,
    Whereabouts,
    WhereIs,
    WorkerUp,
)
from fairlead.runtime.cluster.node_files import EngineFile, engine_file, read_engines, write_engine
from fairlead.runtime.cluster.spec import EngineSpec, NodeSpec
from fairlead.runtime.node.supervisor import children, workers
from fairlead.runtime.node.supervisor import supervisor as real
from fairlead.runtime.node.supervisor.assignor_process import ASSIGNOR
from fairlead.runtime.node.supervisor.children import TICK_SECONDS
from fairlead.runtime.node.supervisor.workers import BEGIN_SECONDS, STARTS_AT_ONCE, STUCK_SECONDS
from fairlead.runtime.processes.liveness import SLOW_SECONDS

WORKERS = 3 * STARTS_AT_ONCE


class Address:
    """Where a child is reached that has no process."""

    addressDetails = None  # noqa: N815  (Thespian's name)

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name


class Supervisor(real.Supervisor):
    """Keeps what it starts and sends to itself."""

    def __init__(self, folder: Path, pids: Mapping[str, int] | None = None) -> None:
        super().__init__()
        self.pids = pids or {}
        """Those of the children that have a process, by name."""
        self.started: list[str] = []
        self.stopped: list[str] = []
        self.let_go: list[str] = []
        self.ended: list[str] = []
        """The members whose end the group was told."""
        self.views: list[NodeView] = []
        self.told: list[Begun | Whereabouts | AllLeft] = []
        self.pings = 0
        """How often the group was asked whether it lives."""
        self.timers: list[tuple[float, object]] = []
        """When each timer fires, and its payload."""
        names = tuple(f"w{number}" for number in range(WORKERS))
        node = NodeSpec(
            folder, "connect", "here", names, GroupSettings(), Timing(), EngineSpec("noop")
        )
        (folder / "run").mkdir(mode=0o700)
        self.receive(Begin(node), Address("whoever asks"))
        self.receive(GroupOpened("connect", 0, 1), Address("connect"))

    def create(self, kind: type[Actor], name: str | None = None) -> Address:
        del kind
        return Address(str(name))

    def pid_of(self, child: object) -> int | None:
        return self.pids.get(str(child))

    def send(self, to: object, message: object) -> None:
        assert to is not None
        if isinstance(message, StartWorker):
            self.started.append(str(to))
        elif isinstance(message, Leave):
            self.let_go.append(str(to))
        elif isinstance(message, EndMember):
            self.ended.append(message.member_id)
        elif isinstance(message, NodeView):
            self.views.append(message)
        elif isinstance(message, Begun | Whereabouts | AllLeft):
            self.told.append(message)
        elif isinstance(message, Ping):
            self.pings += 1

    def stop(self, child: object) -> None:
        self.stopped.append(str(child))

    def described(self) -> NodeView:
        self.receive(DescribeNode(), Address("whoever asks"))
        return self.views[-1]

    def wake_after(self, seconds: float, payload: object = None) -> None:
        self.timers.append((time.monotonic() + seconds, payload))

    def wake(self) -> None:
        """Fire the next timer, whenever it is due."""
        timer = min(self.timers, key=lambda each: each[0])
        self.timers.remove(timer)
        self.woken(timer[1])

    def repeat(self) -> None:
        """Fire the timer for reports."""
        (timer,) = (each for each in self.timers if each[1] is real.REPEAT)
        self.timers.remove(timer)
        self.woken(real.REPEAT)

    def start_group(self) -> None:
        """Start the group's process if it is not started, however long that would wait."""
        if self._node.group.address is None:
            self._node.group.start(self._host)

    def hears_from(self, name: str) -> None:
        self.receive(WorkerUp(name, 1, f"id of {name}", "p"), Address(name))


def test_a_worker_finds_the_code_of_its_work_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = list[str]()
    monkeypatch.setattr(workers, "load_work", loaded.append)
    Supervisor(tmp_path)
    assert loaded == ["noop"] * STARTS_AT_ONCE


def test_as_many_are_started_as_have_begun_until_all_are(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path)
    assert len(supervisor.started) == STARTS_AT_ONCE
    for begun, name in enumerate(supervisor.started, 1):
        supervisor.hears_from(name)
        assert len(supervisor.started) == min(WORKERS, STARTS_AT_ONCE + begun)
    assert len({*supervisor.started}) == WORKERS


def test_one_that_does_not_begin_does_not_keep_the_others_from_it_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = Supervisor(tmp_path)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + BEGIN_SECONDS)
    supervisor.wake()
    assert len(supervisor.started) == 2 * STARTS_AT_ONCE


def test_one_that_never_begins_is_ended_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = Supervisor(tmp_path)
    first = supervisor.started[0]
    for name in supervisor.started:
        if name != first:
            supervisor.hears_from(name)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + STUCK_SECONDS)
    supervisor.wake()
    supervisor.wake()
    assert [each for each in supervisor.stopped if each != ASSIGNOR] == [first], "once"
    supervisor.child_exited(Address(first))
    monkeypatch.setattr(time, "monotonic", lambda: now + 2 * STUCK_SECONDS)
    supervisor.wake()
    assert supervisor.started.count(first) == 2


def test_a_worker_that_was_let_go_before_it_began_is_not_heard(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path)
    (name, *_) = supervisor.started
    supervisor.receive(StopWorker(name), Address("whoever asks"))
    supervisor.child_exited(Address(name))
    supervisor.hears_from(name)
    assert name not in [each.name for each in supervisor.described().workers]


def test_a_worker_that_was_let_go_leaves_no_state_of_an_engine(tmp_path: Path) -> None:
    supervisor, run_folder = Supervisor(tmp_path), tmp_path / "run"
    for name in ("w0", "w1"):
        supervisor.hears_from(name)
        write_engine(engine_file(run_folder, name), EngineFile(process_of(1), 2, "running", 0, ""))
    supervisor.receive(StopWorker("w0", force=True), Address("whoever asks"))
    for name in ("w0", "w1"):
        supervisor.child_exited(Address(name))
    assert [*read_engines(run_folder)] == ["w1"], "that one is started again"


def test_a_worker_is_let_go_once_when_the_process_that_it_is_tied_to_has_ended(
    tmp_path: Path,
) -> None:
    supervisor = Supervisor(tmp_path)
    with subprocess.Popen(["sleep", "60"]) as command:
        supervisor.receive(AddWorker(command.pid, "mine"), Address("whoever asks"))
        supervisor.wake()
        assert supervisor.let_go == []
        command.kill()
    supervisor.wake()
    supervisor.wake()
    assert supervisor.let_go == ["mine"]
    supervisor.child_exited(Address("mine"))
    assert "mine" not in [each.name for each in supervisor.described().workers]


def test_a_group_that_ends_before_it_heard_of_a_worker_is_started_again_and_told(
    tmp_path: Path,
) -> None:
    with subprocess.Popen(["sleep", "60"]) as engine:
        supervisor = Supervisor(tmp_path, {"w0": engine.pid, "connect": os.getpid()})
        supervisor.hears_from("w0")
        supervisor.child_exited(Address("w0"))
        assert supervisor.ended == [], "something of it still runs"
        engine.kill()
    supervisor.child_exited(Address("connect"))
    assert supervisor.described().groups[0].state == "starting"
    supervisor.receive(GroupOpened("connect", 0, 2), Address("connect"))
    assert supervisor.ended == ["id of w0"]


def test_reports_that_no_owner_decides_are_repeated_after_a_pause(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path, {"w0": 1 << 30})
    supervisor.hears_from("w0")
    supervisor.child_exited(Address("w0"))
    set_before = len(supervisor.timers)
    for _ in range(3):
        supervisor.receive(Undecided("no node owns the group"), Address("connect"))
    supervisor.receive(Undecided("another child's"), Address(ASSIGNOR))
    assert len(supervisor.timers) == set_before + 1, "one is enough for all"
    for times in (2, 3):
        supervisor.repeat()
        assert supervisor.ended == ["id of w0"] * times
        supervisor.receive(Undecided("no node owns the group"), Address("connect"))
    supervisor.child_exited(Address("connect"))
    supervisor.repeat()
    assert supervisor.ended == ["id of w0"] * 3, "nobody is there to hear it"


def test_who_starts_a_node_is_told_that_its_group_does_not_follow_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = Supervisor(tmp_path)
    monkeypatch.setattr(type(supervisor._node), "is_open", True)
    opened = GroupOpened("connect", 0, 2, is_owner=False, flaw="PostgreSQL: no route to host")
    supervisor.receive(opened, Address("connect"))
    assert supervisor.told == [Begun(flaw="PostgreSQL: no route to host")]


def test_a_group_that_was_given_up_ends_with_that_as_its_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor = Supervisor(tmp_path, {"connect": 1 << 30})
    supervisor.receive(GroupGivenUp("this node has given the group up, to n2"), Address("connect"))
    supervisor.child_exited(Address("connect"))
    assert "ended: this node has given the group up, to n2" in caplog.text
    assert supervisor.described().groups[0].detail == "this node has given the group up, to n2"


def test_a_group_whose_processes_die_as_they_open_its_logs_is_told_as_damaged(
    tmp_path: Path,
) -> None:
    supervisor = Supervisor(tmp_path)
    for _ in range(2):  # one that ran, and one that somebody may have killed
        supervisor.child_exited(Address("connect"))
        assert (supervisor.told, supervisor.described().groups[0].detail) == ([], "")
        supervisor.start_group()
    supervisor.child_exited(Address("connect"))
    why = "its process ended each time while it opened its logs; `fairlead log verify` checks them"
    supervisor.receive(WhereIs("connect"), Address("whoever asks"))
    assert supervisor.told == [
        Begun(f"group connect: {why}"),
        Whereabouts("connect", None, detail=why),
    ]
    supervisor.start_group()
    supervisor.receive(GroupOpened("connect", 0, 2), Address("connect"))
    supervisor.child_exited(Address("connect"))
    assert supervisor.described().groups[0].detail == ""


def test_an_end_without_a_reason_is_told_as_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor = Supervisor(tmp_path)
    supervisor.hears_from("w0")
    supervisor.child_exited(Address("w0"))
    assert caplog.messages[-1] == "worker w0 (pid 1) ended: it left no reason"


def test_a_worker_that_ends_because_it_was_let_go_needs_no_other_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor = Supervisor(tmp_path)
    supervisor.hears_from("w0")
    supervisor.receive(StopWorker("w0"), Address("whoever asks"))
    with caplog.at_level("INFO", logger=children.LOGGER.name):
        supervisor.child_exited(Address("w0"))
    assert caplog.messages[-1] == "worker w0 (pid 1) ended: it had to go"
    assert caplog.records[-1].levelname == "INFO", "nobody has to do anything"


def test_what_a_process_has_said_before_its_end_is_not_taken_for_its_successors(
    tmp_path: Path,
) -> None:
    supervisor = Supervisor(tmp_path)
    (name, *_) = supervisor.started
    supervisor.child_exited(Address(name))
    supervisor.hears_from(name)
    (worker,) = [each for each in supervisor.described().workers if each.name == name]
    assert (worker.state, worker.pid) == ("backing-off", None)


def test_a_supervisor_wakes_to_ask_its_group_and_to_hear_of_silence_and_for_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    supervisor = Supervisor(tmp_path, {"connect": os.getpid()})
    supervisor.receive(AssignorsOpen(1), Address(ASSIGNOR))
    for number in range(WORKERS):
        supervisor.hears_from(f"w{number}")
    wakes = 0

    def passes() -> None:
        nonlocal now
        now = max(now, min(at for at, _ in supervisor.timers)) + 0.001
        supervisor.wake()

    while supervisor.pings < 10:
        asked = supervisor.pings
        passes()
        wakes += 1
        if supervisor.pings > asked:
            supervisor.receive(Pong(), Address("connect"))
    assert wakes <= 2 * supervisor.pings, "one to ask, and one to see that it was answered"

    while supervisor.pings < 11:
        passes()
    asked_at = now
    while supervisor.described().groups[0].silent_ms < SLOW_SECONDS * 1000:
        passes()
    assert now - asked_at < SLOW_SECONDS + 2 * TICK_SECONDS


def test_workers_that_wait_until_others_have_begun_keep_no_message_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    supervisor = Supervisor(tmp_path)
    for number in range(WORKERS):
        supervisor.hears_from(f"w{number}")
    supervisor.started.clear()
    for number in range(WORKERS):
        supervisor.child_exited(Address(f"w{number}"))
    now += 3_600.0
    supervisor.wake()
    assert len(supervisor.started) == STARTS_AT_ONCE, "all are due"
    # Timers are served before messages: one that is due at once would be so for ever.
    assert supervisor.timers[-1][0] >= now + TICK_SECONDS


def test_who_shuts_a_node_down_hears_once_when_the_last_worker_has_left(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path)
    supervisor.receive(ShutDown(), Address("whoever asks"))
    *others, last = [*supervisor.started]
    for name in others:
        supervisor.child_exited(Address(name))
    assert supervisor.told == []
    supervisor.child_exited(Address(last))
    supervisor.child_exited(Address("connect"))
    assert supervisor.told == [AllLeft()]
    assert sorted(supervisor.started) == sorted([*others, last]), "and nothing is started again"


def test_a_start_that_failed_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(kind: type[Actor], name: str | None = None) -> Address:
        raise BlockingIOError(f"no process for {name}: {kind}")

    supervisor = Supervisor(tmp_path)
    (name, *_) = supervisor.started
    supervisor.hears_from(name)
    supervisor.child_exited(Address(name))
    now = time.monotonic() + BEGIN_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with monkeypatch.context() as full:
        full.setattr(supervisor, "create", fail)
        with pytest.raises(BlockingIOError):
            supervisor.wake()
    while name not in supervisor.started[STARTS_AT_ONCE:]:
        supervisor.wake()
