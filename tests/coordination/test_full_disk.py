"""Where the disk is nearly full a group refuses what can wait, and goes on with what cannot."""

from collections.abc import Generator
from pathlib import Path

import pytest

from fairlead.actors.messages.commands import CommandReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.work import CommitOffsets, CommitReply, ReportStatus, StatusUpdate
from fairlead.events.group import token_of
from fairlead.events.log.space import RESERVE_BYTES, Room, require_room, room_at
from fairlead.events.model import Commit, CommitId, Manifest, Resource, RunState
from fairlead_tests.coordination.office import HEARTBEAT_MS, SESSION_MS, Office, told

DISK = Path("/disk")
AMPLE, LOW, OUT = (Room(DISK, free) for free in (RESERVE_BYTES, RESERVE_BYTES - 1, 1 << 20))


@pytest.fixture
def office(tmp_path: Path) -> Generator[Office]:
    found = Office.at(tmp_path)
    found.put("A")
    found.asks(found.joining("W1"))
    found.compute("W1")
    found.beat("W1", owned=())
    found.asks(found.full("W1"))
    yield found
    found.close()


def refused(office: Office, name: str) -> CommandReply:
    (answer,) = office.put(name)
    assert isinstance(answer.reply, CommandReply)
    assert answer.reply.error is Error.COORDINATOR_NOT_AVAILABLE
    return answer.reply


@pytest.mark.parametrize("room", [LOW, OUT])
def test_a_command_is_refused_with_the_path_what_is_free_and_what_to_do(
    office: Office, room: Room
) -> None:
    office.coordinator.see_room(room, office.now)
    end = office.control.end
    assert refused(office, "B").message == (
        "nothing was changed: the disk of /disk is full but for its reserve of 16 MiB: free space"
        f" there, and all goes on by itself ({room.free_bytes} bytes are free)"
    )
    assert office.control.end == end
    office.coordinator.see_room(AMPLE, office.now)
    (answer,) = office.put("B")
    assert answer.reply.error is Error.NONE


@pytest.mark.parametrize("room", [LOW, OUT])
def test_no_batch_counts_and_each_is_asked_again_with_the_same_reason(
    office: Office, room: Room
) -> None:
    office.coordinator.see_room(room, office.now)
    token = token_of(office.group, "W1", Resource("A"))
    assert token is not None
    commit = Commit(CommitId("A", 0, token, 0), (), Manifest("/out", "s", 0, 0, 0), 0)
    (answer,) = office.send(CommitOffsets("connect", "W1", (commit,), (), 7))
    assert answer.reply == CommitReply((), 7, Error.COORDINATOR_NOT_AVAILABLE, room.why)
    assert office.offsets.end == 0
    assert LOW.why == OUT.why, "a reason that changed would be written again and again"


def test_members_come_go_and_report_from_the_reserve(office: Office) -> None:
    office.coordinator.see_room(LOW, office.now)
    office.asks(office.joining("W2"))
    assert office.group.members.keys() == {"W1", "W2"}
    token = token_of(office.group, "W1", Resource("A"))
    assert token is not None
    update = StatusUpdate(Resource("A"), token, RunState.RUNNING, office.now.wall_ms, "waits")
    office.send(ReportStatus("connect", "W1", (update,)))
    assert office.group.statuses[Resource("A")].reason == "waits"


def test_without_any_room_heartbeats_that_write_nothing_are_answered_and_nothing_is_written(
    office: Office,
) -> None:
    office.coordinator.see_room(OUT, office.now)
    end, group_end = office.control.end, office.group.end
    for _ in range(2 * SESSION_MS // HEARTBEAT_MS):
        said = office.beat("W1")
        said += office.passes(HEARTBEAT_MS)
        assert "W1" in told(said)
        assert office.asks(office.joining("W2")) == [], "a join would have to be written"
    assert (office.control.end, office.group.end) == (end, group_end)


def test_once_there_is_room_nobody_is_taken_for_lost_that_could_not_be_heard(
    office: Office,
) -> None:
    office.asks(office.joining("W2"))
    office.coordinator.see_room(OUT, office.now)
    office.passes(10 * SESSION_MS)
    office.coordinator.see_room(AMPLE, office.now)
    office.passes(SESSION_MS - 1)
    assert office.group.members.keys() == {"W1", "W2"}
    office.passes(2)
    assert office.group.members == {}


def test_what_was_decided_while_there_was_room_is_written() -> None:
    room = Room(DISK, RESERVE_BYTES // 4)
    assert not room.is_out
    require_room(room, entries=100, frames=100_000, into_reserve=True)


def test_the_room_of_a_log_is_known_also_when_all_its_folders_were_moved(tmp_path: Path) -> None:
    assert room_at(tmp_path / "groups" / "connect" / "control").free_bytes > 0
