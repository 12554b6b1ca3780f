"""The steps of an import that is killed at each call: nothing is lost, and never do both run."""

from collections.abc import Callable
from pathlib import Path

import pytest
from cli.conftest import in_each_pause

from fairlead.runtime.interfaces.cli.importing.moving import ConnectorMover, ImportOutcome
from fairlead.runtime.interfaces.cli.importing.old_connect import KeptConfigs, OldConnectSide
from fairlead.runtime.interfaces.cli.importing.record import ImportRecord, RecordHead
from fairlead.runtime.interfaces.cli.importing.sides import ImportSide
from fairlead.runtime.interfaces.cli.importing.steps import CannotGoOn, ImportStep
from fairlead.runtime.interfaces.cli.output.printing import Failed, Unreachable
from fairlead.runtime.interfaces.cli.requests.client import RefusedByCluster
from fairlead.runtime.interfaces.replies.connectors import ConfigChange
from fairlead_tests.cli.two_sides import (
    FakeNode,
    FakeSide,
    Killed,
    World,
    two_sides,
    two_sides_of_old,
)

HEAD = RecordHead("connect@kafka", "node")
MOST_CALLS = 500
STATES = ("RUNNING", "PAUSED", "STOPPED")


class Clock:
    """A clock that a pause moves on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        in_each_pause(monkeypatch, self.sleep)
        monkeypatch.setattr("time.monotonic", lambda: self.now)
        monkeypatch.setattr("os.fsync", lambda _: None)  # what dies here is no machine

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def once(
    there: ImportSide, here: FakeNode, path: Path, *, is_back: bool = False, may_idle: bool = False
) -> ImportOutcome:
    """Run one command for the connector."""
    record = ImportRecord(path, HEAD)
    with record.writing():
        mover = ConnectorMover(
            there, here, record, lambda _: None, patience_seconds=60, may_idle=may_idle
        )
        return (mover.take_back if is_back else mover.bring)("numbers", {})


def killed_anywhere(
    tmp_path: Path, run: Callable[[World, Path], None], after: Callable[[World, Path], None]
) -> int:
    """Kill a command at each of its calls, and do something after each; return how many."""
    for kill_at in range(MOST_CALLS):
        world, path = World(), tmp_path / f"{kill_at}.jsonl"
        world.kill_at = kill_at
        try:
            run(world, path)
        except Killed:
            world.kill_at = -1
            after(world, path)
            continue
        return kill_at
    raise AssertionError("the command does not end")


def assert_each_once(world: World) -> None:
    assert world.read == [*range(len(world.read))], "each number is read once, in order"


@pytest.mark.parametrize("was", STATES)
@pytest.mark.parametrize("shares", [True, False], ids=["same topic", "another topic"])
@pytest.mark.parametrize("then", ["goes on", "returns"])
def test_an_import_that_is_killed_anywhere_goes_on_or_returns(
    was: str, shares: bool, then: str, tmp_path: Path
) -> None:
    sides: dict[Path, tuple[FakeSide, FakeNode]] = {}

    def run(world: World, path: Path) -> None:
        sides[path] = two_sides(world, was, share_offsets=shares)
        assert once(*sides[path], path).step is ImportStep.MOVED

    def after(world: World, path: Path) -> None:
        there, here = sides[path]
        if then == "returns":
            once(there, here, path, is_back=True)
            assert (there.state, here.state) == (was, "")
        else:
            assert once(there, here, path).step is ImportStep.MOVED
            assert (there.state, here.state) == ("STOPPED", was)
        there.status("numbers"), here.status("numbers")
        assert_each_once(world)

    assert killed_anywhere(tmp_path, run, after) > 20


@pytest.mark.parametrize("was", STATES)
@pytest.mark.parametrize("shares", [True, False], ids=["same topic", "another topic"])
def test_a_return_that_is_killed_anywhere_goes_on(was: str, shares: bool, tmp_path: Path) -> None:
    sides: dict[Path, tuple[FakeSide, FakeNode]] = {}

    def run(world: World, path: Path) -> None:
        if path not in sides:
            kill_at, world.kill_at = world.kill_at, -1
            sides[path] = two_sides(world, was, share_offsets=shares)
            once(*sides[path], path)
            world.calls, world.kill_at = 0, kill_at
        there, here = sides[path]
        assert once(there, here, path, is_back=True).step is ImportStep.RETURNED
        assert (there.state, here.state) == (was, "")
        there.status("numbers")
        assert_each_once(world)

    assert killed_anywhere(tmp_path, run, run) > 10


@pytest.mark.parametrize("shares", [True, False], ids=["same topic", "another topic"])
def test_one_that_fails_here_is_returned_wherever_the_import_is_killed(
    shares: bool, tmp_path: Path
) -> None:
    sides: dict[Path, tuple[FakeSide, FakeNode]] = {}

    def run(world: World, path: Path) -> None:
        world.fails_here = True
        if path not in sides:
            sides[path] = two_sides(world, "RUNNING", share_offsets=shares)
        there, here = sides[path]
        outcome = once(there, here, path)
        assert outcome.step is ImportStep.RETURNED
        assert outcome.reason == "it is FAILED here"
        assert (there.state, here.state) == ("RUNNING", "")
        assert_each_once(world)

    assert killed_anywhere(tmp_path, run, run) > 30


def test_one_that_commits_nothing_in_time_is_returned_unless_it_may_be_idle(tmp_path: Path) -> None:
    world = World(is_idle=True)
    there, here = two_sides(world, "RUNNING", share_offsets=True)
    outcome = once(there, here, tmp_path / "a.jsonl")
    assert (outcome.step, there.state, here.state) == (ImportStep.RETURNED, "RUNNING", "")
    assert outcome.reason.startswith("it has run here for 60 s and committed no offset")
    outcome = once(there, here, tmp_path / "a.jsonl", may_idle=True)
    assert (outcome.step, there.state, here.state) == (ImportStep.MOVED, "STOPPED", "RUNNING")
    assert outcome.reason == "it has committed nothing yet"


def test_nothing_is_started_here_while_it_runs_there_again(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "a.jsonl"
    there, here = two_sides(world, "RUNNING", share_offsets=True)
    once(there, here, path)
    once(there, here, path, is_back=True)
    record = ImportRecord(path, HEAD)
    with record.writing():
        record.add("numbers", ImportStep.STOPPING, was="RUNNING")
        record.add("numbers", ImportStep.STARTING)
    here.create("numbers", {})
    with pytest.raises(CannotGoOn, match="it is RUNNING"):
        once(there, here, path)
    assert here.state == "STOPPED"


def test_one_that_somebody_resumes_there_meanwhile_is_stopped_again(tmp_path: Path) -> None:
    sides: dict[Path, tuple[FakeSide, FakeNode]] = {}

    def run(world: World, path: Path) -> None:
        sides[path] = two_sides(world, "RUNNING", share_offsets=False)
        once(*sides[path], path)

    def resume(world: World, path: Path) -> None:
        there, here = sides[path]
        if not ImportRecord(path, HEAD).place("numbers").has_run:
            there.start("numbers", "RUNNING")
            there.status("numbers")
            assert once(there, here, path).step is ImportStep.MOVED
            assert_each_once(world)

    assert killed_anywhere(tmp_path, run, resume) > 20


def test_what_the_node_refuses_is_returned_and_a_node_that_starts_is_waited_for(
    tmp_path: Path,
) -> None:
    world, path = World(), tmp_path / "a.jsonl"
    there, here = two_sides(world, "RUNNING", share_offsets=True)
    here.refuses = RefusedByCluster("no more", {"error_code": 400, "message": "no more"})
    outcome = once(there, here, path)
    assert (outcome.step, outcome.reason) == (ImportStep.RETURNED, "no more")
    assert (there.state, here.state) == ("RUNNING", "")
    here.refuses = RefusedByCluster("it starts", {"error_code": 503, "message": "it starts"})
    with pytest.raises(Unreachable, match="it starts; the same command goes on from here"):
        once(there, here, path)
    assert (there.state, ImportRecord(path, HEAD).place("numbers").is_returning) == (
        "STOPPED",
        False,
    )
    here.refuses = None
    assert once(there, here, path).step is ImportStep.MOVED


def test_one_whose_config_has_changed_since_it_was_created_here_is_returned(
    tmp_path: Path,
) -> None:
    def run(world: World, path: Path) -> None:
        sides[path] = two_sides(world, "RUNNING", share_offsets=True)
        once(*sides[path], path)

    def change(_: World, path: Path) -> None:
        there, here = sides[path]
        if ImportRecord(path, HEAD).place("numbers").step is ImportStep.CREATED:
            here.changes = [ConfigChange("file", "a", "b")]
            outcome = once(there, here, path)
            reasons.add(outcome.reason)
            assert (outcome.step, there.state, here.state) == (ImportStep.RETURNED, "RUNNING", "")

    sides: dict[Path, tuple[FakeSide, FakeNode]] = {}
    reasons: set[str] = set()
    killed_anywhere(tmp_path, run, change)
    assert reasons == {"its config there is another one than here, in file"}


def test_offsets_that_do_not_stand_still_there_are_not_taken(tmp_path: Path) -> None:
    there, here = two_sides(World(), "RUNNING", share_offsets=True)
    there.late_reads = MOST_CALLS
    outcome = once(there, here, tmp_path / "a.jsonl")
    assert (outcome.step, outcome.reason) == (
        ImportStep.RETURNED,
        "after 60 s it is STOPPED there and not there here",
    )


def test_one_that_somebody_has_taken_back_by_hand_is_let_go(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "a.jsonl"
    there, here = two_sides(world, "RUNNING", share_offsets=False)
    once(there, here, path)
    there.state, there.tasks = "RUNNING", 1
    with pytest.raises(CannotGoOn, match="there, too: stop it on one"):
        once(there, here, path)
    here.state, here.tasks = "", 0
    with pytest.raises(CannotGoOn, match="somebody has deleted it here: --back"):
        once(there, here, path)
    outcome = once(there, here, path, is_back=True)
    assert (outcome.step, there.state, here.state) == (ImportStep.RETURNED, "RUNNING", "")
    assert outcome.reason == "it ran there already, from its offsets there"


def test_one_that_was_deleted_here_gives_its_offsets_back_all_the_same(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "a.jsonl"
    there, here = two_sides(world, "RUNNING", share_offsets=False)
    once(there, here, path)
    here.status("numbers")
    here.state, here.tasks = "", 0
    once(there, here, path, is_back=True)
    there.status("numbers")
    assert (there.state, here.state) == ("RUNNING", "")
    assert_each_once(world)


@pytest.mark.parametrize("was", STATES[:2])
def test_a_connect_that_stops_nothing_gives_and_gets_connectors_wherever_it_is_killed(
    was: str, tmp_path: Path
) -> None:
    sides: dict[Path, tuple[OldConnectSide, FakeSide, FakeNode]] = {}

    def run(world: World, path: Path) -> None:
        folder = path.with_suffix(".configs")
        sides[path] = there, runs, here = two_sides_of_old(world, was, KeptConfigs(folder))
        assert once(there, here, path).step is ImportStep.MOVED
        assert (runs.state, here.state) == ("", was)
        (file,) = folder.glob("*")
        assert file.stat().st_mode & 0o777 == 0o600
        assert once(there, here, path, is_back=True).step is ImportStep.RETURNED
        assert (runs.state, here.state, [*folder.glob("*")]) == (was, "", [])
        assert_each_once(world)

    def return_it(world: World, path: Path) -> None:
        there, runs, here = sides[path]
        once(there, here, path, is_back=True)
        assert (runs.state in {was, "RUNNING"}, here.state) == (True, "")
        runs.status("numbers")
        assert_each_once(world)

    assert killed_anywhere(tmp_path, run, return_it) > 60


def test_a_connector_that_does_not_stop_there_is_left_as_it_was(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "a.jsonl"
    there, here = two_sides(world, "RUNNING", share_offsets=True)
    there.ignores_orders = True
    outcome = once(there, here, path)
    assert outcome.step is ImportStep.RETURNED
    assert outcome.reason == ("after 60 s it is RUNNING there and not there here")


def test_a_record_is_of_one_import_and_one_process_and_a_torn_line_is_no_step(
    tmp_path: Path,
) -> None:
    path = tmp_path / "deep" / "a.jsonl"
    record = ImportRecord(path, HEAD)
    with record.writing():
        record.add("a", ImportStep.STOPPING, was="PAUSED")
        with pytest.raises(Failed, match="another import writes"), record.writing():
            pass
    assert path.stat().st_mode & 0o777 == 0o600
    with path.open("ab") as file:
        file.write(b'{"connector":"a","step":"stopp')
    again = ImportRecord(path, HEAD)
    assert (again.place("a").step, again.place("a").was) == (ImportStep.STOPPING, "PAUSED")
    with again.writing():
        again.add("a", ImportStep.STOPPED, offsets=[])
    assert len(path.read_bytes().splitlines()) == 3
    assert ImportRecord(path, HEAD).place("a").step is ImportStep.STOPPED
    with pytest.raises(Failed, match="from another Connect or to another cluster"):
        ImportRecord(path, RecordHead("connect@kafka", "other"))
