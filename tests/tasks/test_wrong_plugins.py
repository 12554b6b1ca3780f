"""A plugin that does wrong hurts its own task alone, which tells of it and recovers."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from fairlead.events.commits import Part
from fairlead.events.model import RunState
from fairlead.runtime.pipeline.spi.connector import Pace, Pipeline
from fairlead.runtime.pipeline.spi.errors import ContractBroken
from fairlead.runtime.pipeline.spi.sink import Sink
from fairlead.runtime.pipeline.spi.source import BatchPlan, Limit, Source
from fairlead.runtime.pipeline.tasks.contention import BatchSlots
from fairlead.runtime.pipeline.tasks.plugins.calls import CallLimits, Calls
from fairlead.runtime.pipeline.tasks.plugins.guard import guard_pipeline
from fairlead.runtime.pipeline.tasks.reports import StatusChanged, TaskConfigsChanged
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import (
    PATIENCE_S,
    Gate,
    LocalEngine,
    Reports,
    numbers_launch,
    staged,
    written,
)
from fairlead_tests.tasks.wrong import (
    CALLS,
    CONNECTOR_CALLS,
    Deed,
    Deeds,
    Wrong,
    wrong_launch,
    wrong_plugins,
)

ALL = list(range(9))


@pytest.fixture
def deeds(monkeypatch: pytest.MonkeyPatch) -> Deeds:
    deeds = Deeds()
    monkeypatch.setattr(Wrong, "deeds", deeds)
    return deeds


@pytest.fixture
def runner(engine: LocalEngine, ledger: MemoryLedger, reports: Reports) -> Iterator[Runner]:
    """The one runner of all wrong plugins, and of a healthy connector beside them."""
    runner = Runner(engine, ledger, wrong_plugins(), reports, slots=BatchSlots(100))
    yield runner
    assert runner.close(PATIENCE_S) == frozenset()


class Scene:
    """Connectors that do wrong, one for each deed, beside one that does not."""

    def __init__(self, root: Path, runner: Runner, reports: Reports, deeds: Deeds) -> None:
        self.root, self.runner, self.reports, self.deeds = root, runner, reports, deeds
        self.names: list[str] = []

    def start(self, name: str, call: str, deed: Deed, task: int = 0, **more: str) -> None:
        self.names.append(name)
        self.deeds.of[name, call] = deed
        self.runner.start(wrong_launch(self.root, name, task, **more))

    def is_well(self) -> None:
        """See all that there is arrive, once, and what lies beside it done meanwhile."""
        healthy = self.root / "healthy"
        healthy.mkdir()
        self.runner.start(numbers_launch(healthy, wrong_launch(self.root, "x").token, last=90))
        self._until(lambda: all(written(self.root / name) == ALL for name in self.names))
        self._until(lambda: written(healthy) == list(range(90)))

    def told(self) -> Mapping[str, str]:
        """Return the first reason that each connector, or its task, told for having failed."""
        return {name: first for name, (first, *_) in self.all_told().items()}

    def all_told(self) -> Mapping[str, Sequence[str]]:
        """Return all of them, in their order."""
        reasons: dict[str, list[str]] = {}
        for each in self.reports.statuses:
            if each.state is RunState.FAILED:
                reason, _, _ = each.reason.partition("; restarts in")
                reasons.setdefault(each.resource.connector, []).append(reason)
        return reasons

    @staticmethod
    def _until(holds: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < until
            time.sleep(0.02)


@pytest.fixture
def scene(root: Path, runner: Runner, reports: Reports, deeds: Deeds) -> Scene:
    return Scene(root, runner, reports, deeds)


def hang(gate: Gate) -> Deed:
    def hanging(right: Callable[[], Any]) -> Any:
        gate.reached.set()
        gate.opened.wait(PATIENCE_S)
        return right()

    return hanging


def test_a_call_that_hangs_is_left_behind_and_counts_no_more_when_it_returns(
    scene: Scene, ledger: MemoryLedger
) -> None:
    late = {call: Gate() for call in CALLS if not call.endswith("close")}
    for call, gate in late.items():
        scene.start(call, call, hang(gate), task_call_timeout_ms="50")
    scene.is_well()
    tail = (
        "did not return within 0.05 s (task.call.timeout.ms), and its thread was left behind: "
        "it can no longer commit anything"
    )
    # On a busy machine a call that does not hang may take that long as well.
    told = scene.all_told()
    assert {call for call in late if f"{call} {tail}" in told[call]} == late.keys()
    before = dict(ledger.accepted)
    for gate in late.values():
        assert gate.reached.is_set()
        gate.opened.set()
    time.sleep(0.2)
    assert ledger.accepted == before
    assert all(written(scene.root / name) == ALL for name in scene.names)


def test_a_connector_whose_calls_hang_splits_its_work_all_the_same(
    scene: Scene, reports: Reports
) -> None:
    for call in CONNECTOR_CALLS:
        scene.start(call, call, hang(Gate()), task=-1, task_call_timeout_ms="50")
    for call in CONNECTOR_CALLS:
        reports.wait(partial(is_failure, words=f"{call} did not return"))
        reports.wait(partial(is_split, name=call))


def is_split(report: object, name: str) -> bool:
    return isinstance(report, TaskConfigsChanged) and report.connector == name


def is_failure(report: object, words: str) -> bool:
    return isinstance(report, StatusChanged) and words in report.reason


def test_a_task_whose_calls_hang_again_and_again_is_not_restarted_for_ever(
    scene: Scene, reports: Reports, deeds: Deeds
) -> None:
    gate = Gate()

    def again(right: Callable[[], Any]) -> Any:
        deeds.of["n", "source.plan"] = again
        return hang(gate)(right)

    scene.start("n", "source.plan", again, task_call_timeout_ms="20", task_restart_budget="1000")
    reports.wait(lambda each: is_failure(each, "5 of its threads hang by now"))
    deeds.of.clear()
    gate.opened.set()
    assert reports.statuses[-1].state is RunState.FAILED


class SpeechlessError(Exception):
    """An error that has no text."""

    def __str__(self) -> str:
        raise RuntimeError("none")


ERRORS: Mapping[str, tuple[BaseException, str]] = {
    "bug": (KeyError("x"), "KeyError: 'x'"),
    "exit": (SystemExit(1), "{call} raised SystemExit: a plugin may not"),
    "interrupt": (KeyboardInterrupt(), "{call} raised KeyboardInterrupt: a plugin may not"),
    "generator": (GeneratorExit(), "{call} raised GeneratorExit: a plugin may not"),
    "speechless": (SpeechlessError(), "SpeechlessError: its text is not available: RuntimeError"),
    "bytes": (ValueError("\0\ud800\n\n"), "ValueError: \0\ud800"),
    "huge": (
        ValueError("a" * 500_000),
        f"ValueError: {'a' * 1000} … 498000 characters … {'a' * 1000}",
    ),
}


@pytest.mark.parametrize(
    "most",
    [pytest.param(1, id="one"), pytest.param(len(ERRORS), id="all", marks=pytest.mark.soak)],
)
def test_whatever_a_call_raises_its_task_alone_fails_and_is_restarted(
    scene: Scene, most: int
) -> None:
    expected: dict[str, str] = {}
    for turn, call in enumerate(each for each in CALLS if not each.endswith("close")):
        for kind in [*ERRORS, *ERRORS][turn % len(ERRORS) :][:most]:
            error, reason = ERRORS[kind]
            name = f"{call} {kind}"
            expected[name] = reason.format(call=call)
            scene.start(name, call, raising(error))
    assert {each.split()[-1] for each in expected} == {*ERRORS}
    scene.is_well()
    assert scene.told() == expected
    longest = max(len(each.trace) for each in scene.reports.statuses)
    assert longest < 21_000


def raising(error: BaseException) -> Deed:
    def deed(_: Callable[[], Any]) -> Any:
        raise error

    return deed


def changed(**fields: Any) -> Deed:
    return lambda right: replace(right(), **fields)


def moved(**fields: Any) -> Deed:
    """Change the advance of a plan."""

    def deed(right: Callable[[], Any]) -> Any:
        plan: BatchPlan[range] = right()
        return replace(plan, advances=(replace(plan.advances[0], **fields),))

    return deed


def twice(right: Callable[[], Any]) -> Any:
    plan: BatchPlan[range] = right()
    return replace(plan, advances=plan.advances * 2)


NONSENSE: Mapping[str, tuple[str, Deed, str]] = {
    "none": ("source.plan", lambda _: None, "source.plan is a NoneType, not a BatchPlan"),
    "list": ("source.plan", changed(ranges=[1]), "source.plan: its ranges is a list, not a tuple"),
    "rows": (
        "source.plan",
        changed(rows=-2),
        "source.plan: its rows is -2, not a whole number from -1 on",
    ),
    "bytes": (
        "source.plan",
        changed(bytes="many"),
        "source.plan: its bytes is 'many', not a whole number from 0 on",
    ),
    "step": (
        "source.plan",
        changed(advances=(1,)),
        "source.plan: an advance is a int, not a Advance",
    ),
    "start": (
        "source.plan",
        moved(start={"next": 1}),
        "source.plan: the advance of numbers='all' starts at {'next': 1}: the offset is None",
    ),
    "twice": (
        "source.plan",
        twice,
        "source.plan: two advances are of the partition numbers='all'",
    ),
    "partition": (
        "source.plan",
        moved(partition={"n": "x" * 5000}),
        "source.plan: a partition takes 5009 bytes: 4096 are allowed",
    ),
    "offset": (
        "source.plan",
        moved(end={"n": "x" * 66_000}),
        "source.plan: the offset of numbers='all' takes 66009 bytes: 65536 are allowed",
    ),
    "nested": (
        "source.plan",
        moved(end={"n": [1]}),
        "source.plan: the offset of numbers='all' has under 'n' a value that is a list, "
        "not a text, a number, true, false or null",
    ),
    "nan": (
        "source.plan",
        moved(end={"n": float("nan")}),
        "source.plan: the offset of numbers='all' has under 'n' a value that is nan: "
        "only finite numbers equal themselves",
    ),
    "big": (
        "source.plan",
        moved(end={"n": 1 << 70}),
        "source.plan: the offset of numbers='all' has under 'n' a value that has more than 64 bits",
    ),
    "pipeline": (
        "connector.pipeline",
        lambda _: "a pipeline",
        "connector.pipeline gave a str as the pipeline: no Pipeline",
    ),
    "manifest": ("sink.stage", lambda _: None, "sink.stage is a NoneType, not a Manifest"),
    "files": (
        "sink.stage",
        changed(files=-1),
        "sink.stage: the manifest's files is -1, not a whole number from 0 on",
    ),
    "part": (
        "sink.stage",
        changed(parts=(Part("a", 1), Part(Path("b"), 1))),  # type: ignore[arg-type]
        "sink.stage: a part's path is a PosixPath, not a str",
    ),
    "size": (
        "sink.stage",
        changed(parts=(Part("a", -1),)),
        "sink.stage: a part's bytes is -1, not a whole number from 0 on",
    ),
    "note": (
        "sink.stage",
        changed(note={1: "x"}),
        "sink.stage: the manifest's note has a key that is no text",
    ),
    "surrogate": (
        "sink.stage",
        changed(note={"x": "\ud800"}),
        "sink.stage: the manifest's note has under 'x' a value that is not encodable: "
        "it holds a lone surrogate",
    ),
}


def test_what_a_call_must_not_return_is_refused_with_its_flaw_before_anything_counts(
    scene: Scene,
) -> None:
    for name, (call, deed, _) in NONSENSE.items():
        scene.start(name, call, deed)
    scene.is_well()
    assert scene.told() == {name: reason for name, (_, _, reason) in NONSENSE.items()}
    assert not any(staged(scene.root / name) for name in scene.names)


class Fat:
    """A range that holds rows."""

    nbytes = 300


def test_a_plan_that_holds_more_than_its_task_may_is_refused(scene: Scene, deeds: Deeds) -> None:
    looks: list[None] = []

    def fat(right: Callable[[], Any]) -> Any:
        looks.append(None)
        if len(looks) < 3:
            deeds.of["fat", "source.plan"] = fat
        return changed(ranges=(Fat(),))(right)

    scene.start("fat", "source.plan", fat, task_memory="299")
    scene.is_well()
    assert scene.told() == {
        "fat": "source.plan holds 300 bytes of rows: a task may hold 299 (task.memory). Nothing "
        "was committed. Lower batch.max.bytes or batch.max.rows, or raise task.memory"
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [("stage", "Manifest"), ("stage_parts", "StagedParts"), ("write", "Manifest")],
)
def test_a_sink_has_the_time_of_a_batch_to_write_one_and_says_what_it_wrote(
    name: str, kind: str
) -> None:
    jobs = list[str]()

    class Noted(Calls):
        def run_job(self, name: str, *call: Any, **more: Any) -> Any:
            jobs.append(name)
            return super().run_job(name, *call, **more)

    sink = MagicMock(spec=Sink, takes_arrow=False)
    getattr(sink, name).return_value = "done"
    given = Pipeline(MagicMock(spec=Source), (), sink, Pace(Limit(1, 1, 1)))
    guarded: Any = guard_pipeline(given, Noted(CallLimits(1, 60, 1))).sink
    with pytest.raises(ContractBroken, match=f"is a str, not a {kind}"):
        getattr(guarded, name)()
    assert jobs == [f"sink.{name}"]
