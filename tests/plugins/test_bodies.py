"""Threads that have a plugin host run connectors and tasks, with a host that a test scripts."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from threading import Thread
from typing import Any, cast

import pytest

from fairlead.events.model import Resource, RunState, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.plugins.host import (
    HostDied,
    HostListener,
    OpenQuestion,
    PluginFailed,
    PluginHost,
)
from fairlead.runtime.pipeline.plugins.running import bodies, meters
from fairlead.runtime.pipeline.plugins.running.bodies import PluginConnector, PluginTask
from fairlead.runtime.pipeline.plugins.running.figures import Bean
from fairlead.runtime.pipeline.plugins.running.hosts import HostServices, TaskHosts
from fairlead.runtime.pipeline.spi.errors import PluginUnknown
from fairlead.runtime.pipeline.tasks.reports import (
    SPLITS_AGAIN,
    Ending,
    Report,
    StatusChanged,
    TaskConfigsChanged,
)
from fairlead_tests.tasks.memory_ledger import MemoryLedger

TOKEN = Token(1, 1)
GRACE_S = 30.0
PATIENCE_S = 60.0
CONFIG = {"name": "c", "connector.class": "Any"}
NEVER = object()


def until(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


class World:
    """A host that answers as told, and a worker that is sure; writes down what it sees."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        given = dict.fromkeys(("stop task", "stop connector", "fence former", "leave"), "")
        self.answers: dict[str, object] = {**given, **answers}
        self.seen = list[str]()
        self.reports = list[Report]()
        self.is_sure = True
        self.is_logged = True
        self.is_over = False
        self.plugins = self.needs = frozenset({"/a"})
        self.starts = 0
        self.refusal = ""
        self.rows, self.moves = 0, False
        self.listener: HostListener | None = None
        self.hosts = TaskHosts(
            HostServices(
                self._start,
                "w",
                60.0,
                lambda *_: None,
                lambda _: frozenset(),
                MemoryLedger(),
                cast("Any", self),
            )
        )

    # as the worker

    def may_write(self, resource: Resource, token: Token) -> bool:
        self.seen.append(f"may {resource} write under {token}")
        return self.is_sure

    def has_logged(self, resource: Resource) -> bool:
        if self.is_logged:
            self.seen.append(f"the log has {resource}")
        return self.is_logged

    def has_ended(self, resource: Resource) -> bool:
        if self.is_over:
            self.seen.append(f"{resource} is over")
        return self.is_over

    def require(self, _: float) -> frozenset[str]:
        if self.refusal:
            raise PluginUnknown(self.refusal)
        return self.needs

    def report(self, report: Report) -> None:
        self.reports.append(report)
        if isinstance(report, TaskConfigsChanged):
            self.seen.append(f"{len(report.configs)} task configs")
        if isinstance(report, StatusChanged) and report.state is RunState.RUNNING:
            self.seen.append(f"runs {report.reason}".rstrip())

    # as the host

    def _start(self, listener: HostListener) -> PluginHost:
        self.listener = listener
        self.starts += 1
        return cast("PluginHost", self)

    def ask(self, question: str, _: float, **given: object) -> object:
        del given
        return {"metrics": self.read_metrics(), "loggers": {}}.get(question, "")

    def read_metrics(self) -> list[dict[str, object]]:
        """Return the metrics of the task: each time it is asked it has read more, if it does."""
        self.rows += self.moves
        values = {"sink-record-read-total": self.rows}
        bean = Bean("kafka.connect", "sink-task-metrics", {"connector": "c", "task": "0"}, values)
        return [bean._asdict()]

    def put(self, question: str, data: bytes = b"", /, **given: object) -> OpenQuestion:
        assert not data, "nothing of these tests is fed"
        how = " paused" if given.get("paused") else ""
        self.seen.append(f"{question}{how}")
        answer = Future[Any]()
        value = self.answers.get(question)
        if isinstance(value, Exception):
            answer.set_exception(value)
        elif value is not NEVER:
            answer.set_result(value)
        return OpenQuestion(1, answer, lambda _number, _seconds: "bad.Task.stop(Task.java:7)")

    def kill(self, why: str) -> None:
        self.seen.append(f"killed: {why}")
        if self.listener is not None:
            self.listener.end(HostDied(why))

    def close(self) -> None:
        self.seen.append("closed")

    def tell(self, state: str, trace: str = "", task: int | None = None) -> None:
        assert self.listener is not None
        about = {"connector": "c", "task": task, "state": state, "trace": trace}
        self.listener.hear("state", about)


class Run:
    """A body on a thread of its own."""

    def __init__(self, body: PluginConnector | PluginTask) -> None:
        self.body = body
        self.ending: Ending | None = None
        self.thread = Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        self.ending = self.body.run()

    def end(self) -> Ending | None:
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()
        return self.ending


def task(world: World) -> Run:
    launch = Launch(Resource("c", 0), TOKEN, CONFIG, {}, tasks=1)
    return Run(PluginTask(launch, world.hosts, world.report, GRACE_S, world.require))


def connector(world: World, *former: Mapping[str, str]) -> Run:
    launch = Launch(Resource("c"), TOKEN, CONFIG, CONFIG, former)
    return Run(PluginConnector(launch, world.hosts, world.report, GRACE_S, world.require))


def test_a_class_that_may_not_run_here_fails_its_task_and_no_host_is_started() -> None:
    world = World({})
    world.refusal = "plugin.allow has no such class"
    run = task(world)

    def has_failed() -> bool:
        states = [each for each in world.reports if isinstance(each, StatusChanged)]
        return [(each.state, each.reason) for each in states] == [(RunState.FAILED, world.refusal)]

    until(has_failed, "it has failed")
    run.body.halt.drain()
    assert run.end() is Ending.STOPPED
    assert (world.listener, world.seen) == (None, [])


def test_former_tasks_are_fenced_once_the_log_says_so_and_until_it_has_the_new_configs() -> None:
    world = World({"start connector": [{"part": "1"}], "fences": True, "fence": ""})
    world.is_logged = False
    run = connector(world, {"part": "1"}, {"part": "2"})
    until(lambda: f"runs {SPLITS_AGAIN}" in world.seen, "it says that it fences")
    world.tell("RUNNING")
    world.is_logged = True
    until(lambda: "runs" in world.seen, "it runs")
    run.body.halt.drain()
    assert run.end() is Ending.STOPPED
    begins = world.seen.index("start connector")
    assert world.seen[begins:] == [
        "start connector",
        "fences",
        f"runs {SPLITS_AGAIN}",
        "the log has c",
        "fence",
        "1 task configs",
        "the log has c",
        "runs",
        "stop connector",
    ]


@pytest.mark.parametrize(
    ("former", "new", "asked"),
    [
        pytest.param(0, 2, ["fence former"], id="first"),
        pytest.param(1, 1, [], id="one-after-one"),
        pytest.param(2, 2, ["fences"], id="sinks-and-at-least-once"),
    ],
)
def test_tasks_are_not_fenced_where_none_can_write_beside_the_new_ones(
    former: int, new: int, asked: list[str]
) -> None:
    split = [{"part": str(each)} for each in range(10, 10 + new)]
    world = World({"start connector": split, "fences": False})
    run = connector(world, *({"part": str(each)} for each in range(former)))
    until(lambda: f"{new} task configs" in world.seen, "it reports them")
    run.body.halt.drain()
    run.end()
    assert [each for each in world.seen if "fence" in each or SPLITS_AGAIN in each] == asked


def test_a_connector_that_is_asked_to_end_before_the_fence_reports_no_task_configs() -> None:
    world = World({"start connector": [{}], "fences": True, "fence": NEVER})
    run = connector(world, {"part": "1"}, {"part": "2"})
    until(lambda: "fence" in world.seen, "it fences")
    run.body.halt.drain()
    run.end()
    assert not [each for each in world.reports if isinstance(each, TaskConfigsChanged)]


def test_a_connector_whose_former_tasks_cannot_be_fenced_fails_and_tries_again() -> None:
    away = PluginFailed("TimeoutException", "no broker has answered", None)
    world = World({"start connector": [{}], "fence former": away})
    run = connector(world)
    until(lambda: _states(world)[-1:] == [RunState.FAILED], "it is FAILED")
    world.answers["fence former"] = ""
    until(lambda: "1 task configs" in world.seen, "it is tried again")
    told = [each.reason for each in world.reports if isinstance(each, StatusChanged)]
    assert any("no broker has answered" in each for each in told)
    run.body.halt.drain()
    run.end()


def test_a_task_that_may_not_write_is_fenced_and_no_failure() -> None:
    world = World({"start task": ""})
    world.is_sure = False
    run = task(world)
    until(lambda: "start task" in world.seen, "it starts")
    assert world.listener is not None
    assert world.listener.answer("may write", {"connector": "c", "task": 0}) is False
    world.tell("FAILED", "ConnectException: task c-0 may not write here, or not now", 0)
    assert run.end() is Ending.FENCED
    states = [each.state for each in world.reports if isinstance(each, StatusChanged)]
    assert RunState.FAILED not in states


def test_a_task_that_is_asked_to_end_may_not_write_whatever_its_worker_says() -> None:
    world = World({"start task": "", "stop task": NEVER})
    run = task(world)
    until(lambda: "start task" in world.seen, "it starts")
    assert world.listener is not None
    assert world.listener.answer("may write", {"connector": "c", "task": 0}) is True
    run.body.halt.drain()
    assert world.listener.answer("may write", {"connector": "c", "task": 0}) is False
    run.body.halt.cancel()
    run.end()


def test_a_cancelled_task_that_does_not_stop_ends_its_host_long_before_its_grace_period() -> None:
    world = World({"start task": "", "stop task": NEVER})
    run = task(world)
    until(lambda: "start task" in world.seen, "it starts")
    begun = time.monotonic()
    run.body.halt.cancel()
    run.end()
    assert time.monotonic() - begun < GRACE_S
    (killed,) = [each for each in world.seen if each.startswith("killed")]
    assert killed.endswith("s: its code is at bad.Task.stop(Task.java:7)")


def test_a_method_at_the_same_line_is_told_only_while_no_record_moves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bodies, "_SLOW_S", 0.2)
    monkeypatch.setattr(meters, "BEAT_S", 0.01)
    line = {"method": "put", "line": "bad.Task.put(Task.java:9)"}
    world = World({"start task": "", "busy": line})
    world.moves = True
    run = task(world)
    until(lambda: "start task" in world.seen, "it starts")
    world.tell("RUNNING", task=0)

    def slow() -> list[str]:
        states = (each for each in world.reports if isinstance(each, StatusChanged))
        return [each.reason for each in states if "has not come back" in each.reason]

    until(lambda: world.seen.count("busy") > 4, "it is looked at")
    assert slow() == []
    world.moves = False
    until(slow, "it is told")
    assert slow()[0].startswith("its put has not come back since ")
    run.body.halt.drain()
    run.end()


def test_a_host_that_a_connector_has_ended_twice_is_left_to_the_others() -> None:
    world = World({"start task": "", "stop task": NEVER})
    started = list[HostListener | None]()
    for _ in range(2):
        world.listener = None
        run = task(world)
        until(lambda: world.seen[-1:] == ["start task"], "it starts")
        started.append(world.listener)
        run.body.halt.cancel()
        run.end()
    with world.hosts.joined(Resource("other"), lambda: True, frozenset()):
        until(lambda: world.listener not in started, "another host starts")
        shared = world.listener
        with world.hosts.joined(Resource("c", 0), lambda: True, frozenset()):
            until(lambda: world.listener is not shared, "the culprit has its own")
        own = world.listener
        with world.hosts.joined(Resource("third"), lambda: True, frozenset()):
            assert world.listener is own, "others share theirs"


def test_a_sink_that_ends_its_host_beside_its_source_is_its_connectors_fault() -> None:
    world = World({})
    task = Resource("c", 0), lambda: True, frozenset[str]()
    other = Resource("other", 0), lambda: True, frozenset[str]()
    started = list[HostListener | None]()
    for _ in range(2):
        with (
            world.hosts.joined(*task) as source,
            world.hosts.joined(*task, part="sink") as sink,
            world.hosts.joined(*other),
        ):
            until(lambda: world.listener not in started, "a host starts")
            started.append(world.listener)
            assert [each.place["connector"] for each in (source, sink)] == ["c", "c\tsink"]
            world.kill("System.exit was called at a.B.c(B.java:1) by task-thread-c\tsink-0")
            assert str(source.ended) == str(sink.ended)
    with world.hosts.joined(*other):
        until(lambda: world.listener not in started, "another host starts")
        shared = world.listener
        with world.hosts.joined(*task):
            until(lambda: world.listener is not shared, "the culprit has its own")
            own = world.listener
            with world.hosts.joined(*task, part="sink"):
                assert world.listener is own, "with both its plugins"


@pytest.mark.parametrize(
    ("is_over", "then"),
    [
        pytest.param(False, [], id="it-moves"),
        pytest.param(True, ["c-0 is over", "leave"], id="for-good"),
    ],
)
def test_a_task_leaves_its_group_where_it_ends_for_good(is_over: bool, then: list[str]) -> None:
    world = World({"start task": ""})
    world.is_over = is_over
    run = task(world)
    until(lambda: "start task" in world.seen, "it starts")
    run.body.halt.drain()
    assert run.end() is Ending.STOPPED
    assert world.seen == ["start task", "stop task", *then]


def test_a_broker_that_is_away_does_not_hold_up_the_end_of_a_task() -> None:
    world = World({"start task": "", "leave": NEVER})
    world.is_over = True
    run = task(world)
    until(lambda: "start task" in world.seen, "it starts")
    run.body.halt.drain()
    assert run.end() is Ending.STOPPED
    assert not [each for each in world.seen if each.startswith("killed")]


def _states(world: World) -> list[RunState]:
    return [each.state for each in world.reports if isinstance(each, StatusChanged)]


def test_a_task_pauses_and_goes_on_in_its_place() -> None:
    world = World({"start task": "", "turn task": ""})
    run = task(world)
    until(lambda: "start task" in world.seen, "it starts")
    world.tell("RUNNING", task=0)
    until(lambda: _states(world)[-1:] == [RunState.RUNNING], "it runs")
    run.body.turn(RunState.PAUSED)
    until(lambda: world.seen[-1] == "turn task paused", "its host is told")
    world.tell("PAUSED", task=0)
    until(lambda: _states(world)[-1:] == [RunState.PAUSED], "it is paused")
    run.body.turn(RunState.RUNNING)
    until(lambda: world.seen[-1] == "turn task", "its host is told again")
    world.tell("RUNNING", task=0)
    until(lambda: _states(world)[-1:] == [RunState.RUNNING], "it goes on")
    run.body.halt.cancel()
    assert run.end() is Ending.CANCELLED
    assert world.seen.count("start task") == 1


def test_a_task_that_begins_while_it_is_paused_is_created_paused() -> None:
    world = World({"start task": ""})
    state = RunState.PAUSED
    launch = Launch(Resource("c", 0), TOKEN, CONFIG, {}, target_state=state, tasks=1)
    run = Run(PluginTask(launch, world.hosts, world.report, GRACE_S, world.require))
    until(lambda: "start task paused" in world.seen, "it starts")
    world.tell("PAUSED", task=0)
    until(lambda: _states(world)[-1:] == [RunState.PAUSED], "it is paused")
    run.body.halt.drain()
    run.end()


def test_a_task_that_has_failed_stays_so_while_it_is_paused() -> None:
    world = World({"start task": ""})
    launch = Launch(
        Resource("c", 0), TOKEN, {**CONFIG, "task.restart.backoff.initial.ms": "10"}, {}
    )
    run = Run(PluginTask(launch, world.hosts, world.report, GRACE_S, world.require))
    until(lambda: "start task" in world.seen, "it starts")
    run.body.turn(RunState.PAUSED)
    world.answers["turn task"] = ""
    world.tell("FAILED", "java.lang.Error: no such luck", 0)
    until(lambda: "stop task" in world.seen, "it has failed")
    until(lambda: _states(world)[-1:] == [RunState.FAILED], "it is FAILED")
    run.body.turn(RunState.RUNNING)
    until(lambda: world.seen.count("start task") == 2, "it begins anew")
    assert RunState.PAUSED not in _states(world)
    run.body.halt.drain()
    run.end()


def test_what_needs_a_plugin_that_has_come_meanwhile_starts_in_a_new_host() -> None:
    world = World({"start task": ""})
    first = task(world)
    until(lambda: world.seen.count("start task") == 1, "the first one starts")
    world.plugins = frozenset({"/a", "/b"})
    same = Launch(Resource("d", 0), TOKEN, {**CONFIG, "name": "d"}, {})
    neighbour = Run(PluginTask(same, world.hosts, world.report, GRACE_S, world.require))
    until(lambda: world.seen.count("start task") == 2, "the neighbour starts")
    assert world.starts == 1
    world.needs = frozenset({"/b"})
    other = Launch(Resource("e", 0), TOKEN, {**CONFIG, "name": "e"}, {})
    new = Run(PluginTask(other, world.hosts, world.report, GRACE_S, world.require))
    until(lambda: world.seen.count("start task") == 3, "the new one starts")
    assert (world.starts, world.seen.count("closed")) == (2, 0)
    for each in (first, neighbour):
        each.body.halt.drain()
        each.end()
    until(lambda: world.seen.count("closed") == 1, "the former host is closed once nobody has it")
    again = Run(PluginTask(same, world.hosts, world.report, GRACE_S, world.require))
    until(lambda: world.seen.count("start task") == 4, "the neighbour starts again")
    assert world.starts == 2
    for each in (new, again):
        each.body.halt.drain()
        each.end()


def test_a_plugin_that_is_replaced_or_removed_is_told_of_what_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bodies, "_SLOW_S", 0.01)
    world = World({"start task": "", "busy": {}})
    run = task(world)
    until(lambda: "start task" in world.seen, "it starts")
    world.tell("RUNNING", task=0)

    def tells(*words: str) -> bool:
        states = [each for each in world.reports if isinstance(each, StatusChanged)]
        return all(each in states[-1].reason for each in words) if states else False

    world.needs = frozenset({"/c"})
    until(lambda: tells("was replaced", "a restart takes the new one up"), "it is replaced")
    world.refusal = "there is none"
    until(lambda: tells("its plugin was removed"), "it is removed")
    world.refusal, world.needs = "", world.plugins
    until(lambda: tells() and not world.reports[-1].reason, "it is there again")  # type: ignore[union-attr]
    run.body.halt.drain()
    run.end()
