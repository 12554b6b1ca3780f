"""A plan asks assignors of others in a process of its own, which it ends in any case."""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from msgspec import msgpack

from fairlead.actors.assignors.built_in import counting
from fairlead.actors.group.computing.snapshot import snapshot_of
from fairlead.actors.messages.assignors import ComputeAssignmentReply, DescribeAssignorsReply
from fairlead.actors.messages.computing import Assignment, Snapshot
from fairlead.actors.messages.errors import Error
from fairlead.events.model import ClientAssignor, Resource
from fairlead.events.placement import Abilities
from fairlead.runtime.cluster.spec import AssignorSpec
from fairlead.runtime.node.assignors.sandbox import read
from fairlead.runtime.node.assignors.user_code import WrongResultError
from fairlead.runtime.planning.changes import WorkersJoined
from fairlead.runtime.planning.compare import make_plan
from fairlead.runtime.planning.dry_run import PlanError
from fairlead.runtime.planning.report import ExpectedDowntimes
from fairlead.runtime.planning.sandbox import PlanSandbox, all_assignors
from fairlead_tests.decider import JOIN, Decider
from fairlead_tests.local_assignors.packages import ASSIGNOR, install

POINT = "mine = shop_rules:Mine"
SPEC = AssignorSpec(("mine", "balanced"), {"token": "hunter2"})
PATIENCE_S = 60.0


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where distributions are installed for processes to come; none of these is left over."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    yield tmp_path
    assert not any(map(_is_of_a_plan, psutil.Process().children(recursive=True)))


def opened(site: Path, source: str, seconds: float = PATIENCE_S) -> PlanSandbox:
    install(site, source, POINT)
    return PlanSandbox(SPEC, site / "assignor.log", time.monotonic() + seconds)


def _is_of_a_plan(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return "assignors.sandbox" in " ".join(process.cmdline())
    return False


def a_group() -> Decider:
    """W1 has A and its four tasks, and computes with `mine`."""
    decider = Decider()
    decider.configure("A A-0 A-1 A-2 A-3")
    decider.join("W1", replace(JOIN, assignors=(ClientAssignor("mine", 0, 2),)))
    decider.settle()
    return decider


def a_snapshot() -> Snapshot:
    return snapshot_of(a_group().group, "mine", 1_000)


def why(others: PlanSandbox, snapshot: Snapshot) -> str:
    with others, pytest.raises(PlanError) as caught:
        others.assignors()["mine"].assign(snapshot)
    assert caught.value.error is Error.INVALID_ASSIGNMENT
    return str(caught.value)


def test_it_computes_as_it_would_for_real_from_settings_that_no_command_line_tells(
    site: Path,
) -> None:
    snapshot = a_snapshot()
    checked = ASSIGNOR.replace("self.conf = conf", "assert conf == {'token': 'hunter2'}")
    with opened(site, checked) as others:
        assert list(others.assignors()) == ["mine"], "fairlead's own need no process"
        assert others.assignors()["mine"].assign(snapshot) == counting.assign_deferred(snapshot)
        (process,) = filter(_is_of_a_plan, psutil.Process().children())
        assert "hunter2" not in " ".join(process.cmdline())


def test_a_plan_tells_what_an_assignor_of_others_would_do_and_say_for_a_newcomer(
    site: Path,
) -> None:
    says = "return Metadata(1, 0, worker.name.encode())"
    takes = """
        last = max(group.members.values(), key=lambda member: member.metadata).member_id
        shares = dict.fromkeys(group.members, ()) | {last: group.configured}
        return Assignment(shares)
    """
    source = ASSIGNOR.replace("return plain_metadata(worker)", says)
    install(site, source.replace("return counting.assign_deferred(group)", takes.strip()), POINT)
    joins = WorkersJoined(1, "a", Abilities())
    with all_assignors(SPEC, site / "assignor.log", PATIENCE_S) as assignors:
        plan = make_plan(a_group().group, [joins], assignors, ExpectedDowntimes(), 1_000)
    assert plan.assignor == "mine"
    assert {each.id: each.taker.worker for each in plan.moves} == dict.fromkeys(
        ("A", "A-0", "A-1", "A-2", "A-3"), "new-1"
    )


WRONG = {
    "raise RuntimeError('no luck')": "assignor mine: RuntimeError: no luck (shop_rules.py, ",
    "return 7": "assignor mine: WrongResultError: assign returned of type int",
    "raise MemoryError": "assignor mine: MemoryError: it used up what assignor.memory.max",
    "return Assignment({})": "assignor mine: A is neither assigned nor parked",
}
"""What an assignor does, and what is said of it; its process goes on."""


def test_what_it_does_wrong_is_told(site: Path) -> None:
    deeds = "".join(f"\n        if n == {n}: {does}" for n, does in enumerate(WRONG))
    source = ASSIGNOR.replace("return counting.assign_deferred(group)", f"n = next(TURNS){deeds}")
    with opened(site, f"TURNS = iter(range(9))\n{source}") as others:
        for said in WRONG.values():
            with pytest.raises(PlanError) as caught:
                others.assignors()["mine"].assign(a_snapshot())
            assert caught.value.error is Error.INVALID_ASSIGNMENT
            assert said in str(caught.value)


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("import os; os._exit(3)", "its process ended (without an answer); the group"),
        ("import os; os.closerange(3, 9999); return 7", "its process ended"),
        ("import time; time.sleep(600)", "it did not answer in time (calling mine.assign)"),
    ],
)
def test_how_its_process_ended_is_told(site: Path, does: str, said: str) -> None:
    seconds = 5 if "sleep" in does else PATIENCE_S  # its process has to start within them
    source = ASSIGNOR.replace("return counting.assign_deferred(group)", does)
    assert said in why(opened(site, source, seconds), a_snapshot())


def test_one_that_can_not_be_made_is_named_and_what_it_has_started_is_ended(site: Path) -> None:
    starts = "import subprocess; subprocess.Popen(['sleep', '3600']); raise ValueError('no')"
    text = why(opened(site, ASSIGNOR.replace("self.conf = conf", starts)), a_snapshot())
    named = (
        "no plan can be made with assignor mine: assignor 'mine' cannot be created: ValueError: no"
    )
    assert text.startswith(named)
    assert text.endswith("the group was not touched")
    assert not [each for each in psutil.process_iter() if _sleeps_alone(each)]


def _sleeps_alone(process: psutil.Process) -> bool:
    with suppress(psutil.Error):  # it has ended
        return process.ppid() == 1 and process.cmdline() == ["sleep", "3600"]
    return False


def test_a_plan_that_asks_no_one_starts_no_process(site: Path) -> None:
    with opened(site, ASSIGNOR) as others:
        others.assignors()
        assert not any(map(_is_of_a_plan, psutil.Process().children()))


A = Resource("a")
ANSWERS = (
    DescribeAssignorsReply(
        3, (ClientAssignor("mine", 0, 2, 1, 0, b"\x00\xff"),), ("other said nothing",)
    ),
    DescribeAssignorsReply(0, ()),
    ComputeAssignmentReply(7, None, "no luck"),
    ComputeAssignmentReply(
        7,
        Assignment(
            {"W1": frozenset({A, Resource("a", 0)}), "W2": frozenset()},
            {Resource("a", 1): 5},
            {Resource("a", 2): "needs tag gpu"},
            1,
            b"\x00",
            9,
        ),
    ),
)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda each: type(each).__name__)
def test_an_answer_is_read_as_it_was_written(
    answer: DescribeAssignorsReply | ComputeAssignmentReply,
) -> None:
    assert read(type(answer), msgpack.encode(answer)) == answer


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80",
        b"\xc1",
        b"\x90",
        b"\x91" * 100_000,
        b"\xdd\xff\xff\xff\xff",
        msgpack.encode(ANSWERS[0]).replace(b"mine", b"min\xff"),
        msgpack.encode(ANSWERS[3]).replace(b"needs tag gpu", b"needs tag gp\xff"),
        *(msgpack.encode(ANSWERS[3])[:length] for length in range(1, 60, 7)),
    ],
    ids=lambda data: f"{len(data)} bytes",
)
def test_an_answer_that_is_none_is_refused(data: bytes) -> None:
    for kind in (DescribeAssignorsReply, ComputeAssignmentReply):
        with pytest.raises(WrongResultError):
            read(kind, data)
