"""Where the disk is nearly full a group refuses what can wait, and goes on with what cannot."""

from collections.abc import Generator
from pathlib import Path

import pytest

from fairlead.actors.messages.commands import CommandReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import CommitOffsets, CommitReply, ReportStatus, StatusUpdate
from fairlead.events.commits import Commit, CommitId, Manifest
from fairlead.events.group import token_of
from fairlead.events.log.space import RESERVE_BYTES, DiskSpace, disk_space_at, require_space
from fairlead.events.model import Resource, RunState
from fairlead_tests.coordination.driver import HEARTBEAT_MS, SESSION_MS, CoordinatorDriver, told

DISK = Path("/disk")
AMPLE, LOW, OUT = (DiskSpace(DISK, free) for free in (RESERVE_BYTES, RESERVE_BYTES - 1, 1 << 20))


@pytest.fixture
def driver(tmp_path: Path) -> Generator[CoordinatorDriver]:
    found = CoordinatorDriver.at(tmp_path)
    found.put("A")
    found.asks(found.joining("W1"))
    found.compute("W1")
    found.beat("W1", owned=())
    found.asks(found.full("W1"))
    yield found
    found.close()


def refused(driver: CoordinatorDriver, name: str) -> CommandReply:
    (answer,) = driver.put(name)
    assert isinstance(answer.reply, CommandReply)
    assert answer.reply.error is Error.COORDINATOR_NOT_AVAILABLE
    return answer.reply


@pytest.mark.parametrize("space", [LOW, OUT])
def test_a_command_is_refused_with_the_path_what_is_free_and_what_to_do(
    driver: CoordinatorDriver, space: DiskSpace
) -> None:
    driver.coordinator.set_disk_space(space, driver.now)
    end = driver.control.end
    assert refused(driver, "B").message == (
        "nothing was changed: the disk of /disk is full but for its reserve of 16 MiB: free space"
        f" there, and all goes on by itself ({space.free_bytes} bytes are free)"
    )
    assert driver.control.end == end
    driver.coordinator.set_disk_space(AMPLE, driver.now)
    (answer,) = driver.put("B")
    assert answer.reply.error is Error.NONE


@pytest.mark.parametrize("space", [LOW, OUT])
def test_no_batch_counts_and_each_is_asked_again_with_the_same_reason(
    driver: CoordinatorDriver, space: DiskSpace
) -> None:
    driver.coordinator.set_disk_space(space, driver.now)
    token = token_of(driver.group, "W1", Resource("A"))
    assert token is not None
    commit = Commit(CommitId("A", 0, token, 0), (), Manifest("/out", "s", 0, 0, 0), 0)
    (answer,) = driver.send(CommitOffsets("connect", "W1", (commit,), (), 7))
    assert answer.reply == CommitReply((), 7, Error.COORDINATOR_NOT_AVAILABLE, space.why)
    assert driver.offsets.end == 0
    assert LOW.why == OUT.why, "a reason that changed would be written again and again"


def test_members_come_go_and_report_from_the_reserve(driver: CoordinatorDriver) -> None:
    driver.coordinator.set_disk_space(LOW, driver.now)
    driver.asks(driver.joining("W2"))
    assert driver.group.members.keys() == {"W1", "W2"}
    token = token_of(driver.group, "W1", Resource("A"))
    assert token is not None
    update = StatusUpdate(Resource("A"), token, RunState.RUNNING, driver.now.wall_ms, "waits")
    driver.send(ReportStatus("connect", "W1", (update,)))
    assert driver.group.statuses[Resource("A")].reason == "waits"


def test_without_any_room_heartbeats_that_write_nothing_are_answered_and_nothing_is_written(
    driver: CoordinatorDriver,
) -> None:
    driver.coordinator.set_disk_space(OUT, driver.now)
    end, group_end = driver.control.end, driver.group.end
    for _ in range(2 * SESSION_MS // HEARTBEAT_MS):
        said = driver.beat("W1")
        said += driver.passes(HEARTBEAT_MS)
        assert "W1" in told(said)
        assert driver.asks(driver.joining("W2")) == [], "a join would have to be written"
    assert (driver.control.end, driver.group.end) == (end, group_end)


def test_once_there_is_room_nobody_is_taken_for_lost_that_could_not_be_heard(
    driver: CoordinatorDriver,
) -> None:
    driver.asks(driver.joining("W2"))
    driver.coordinator.set_disk_space(OUT, driver.now)
    driver.passes(10 * SESSION_MS)
    driver.coordinator.set_disk_space(AMPLE, driver.now)
    driver.passes(SESSION_MS - 1)
    assert driver.group.members.keys() == {"W1", "W2"}
    driver.passes(2)
    assert driver.group.members == {}


@pytest.mark.parametrize("space", [AMPLE, LOW])
def test_a_look_at_the_disk_extends_no_session_where_room_never_ran_out(
    driver: CoordinatorDriver, space: DiskSpace
) -> None:
    driver.passes(SESSION_MS - 1)
    driver.coordinator.set_disk_space(space, driver.now)
    driver.passes(2)
    assert driver.group.members == {}


def test_what_was_decided_while_there_was_room_is_written() -> None:
    space = DiskSpace(DISK, RESERVE_BYTES // 4)
    assert not space.is_out
    require_space(space, entries=100, frames=100_000, into_reserve=True)


def test_the_room_of_a_log_is_known_also_when_all_its_folders_were_moved(tmp_path: Path) -> None:
    assert disk_space_at(tmp_path / "groups" / "connect" / "control").free_bytes > 0
