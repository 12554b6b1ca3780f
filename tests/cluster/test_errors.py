"""Hostile messages, internal errors, damaged logs and full disks: said clearly, and survived."""

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from fairlead.actors.messages.commands import (
    CommandReply,
    CompactHistory,
    CompactionProgress,
    CompactionState,
    DescribeCompaction,
)
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import PutConnector
from fairlead.actors.transport.actor import Failure
from fairlead.events.log.reader import LogReader
from fairlead_tests.cluster.node import GROUP, Node, eventually
from fairlead_tests.cluster.remains import NotStartedError, Starts

pytestmark = pytest.mark.cluster

NONSENSE: tuple[object, ...] = ("nonsense", 42, {"group": GROUP}, ("a", "tuple"), Failure("?"))
BROKEN = PutConnector(GROUP, "broken", cast("Any", 5))
OWN_MOUNTS = ["unshare", "--user", "--map-root-user", "--mount"]
ON_A_SMALL_DISK = [
    *OWN_MOUNTS,
    "sh",
    "-c",
    'mkdir -p data && mount -t tmpfs -o size=40m tmpfs data && exec "$@"',
    "sh",
]


def entries(node: Node) -> int:
    """How many entries the control log holds, all of them checked."""
    node.forget_log()
    with LogReader.open(node.data_dir / "groups" / GROUP / "control", GROUP) as reader:
        return reader.verify().entries


def test_what_a_group_does_not_understand_does_not_end_it(start_node: Starts) -> None:
    node = start_node(workers=["w1"])
    node.settles("w1")
    pid = node.pid(f"group {GROUP}")
    answers = [node.ask(node.group_address, each) for each in NONSENSE]
    assert answers == [
        Failure(f"a group does not understand {type(each).__name__}") for each in NONSENSE
    ]
    stranger = Heartbeat(GROUP, "m", 3, "i", 1)
    assert node.ask(node.group_address, stranger).error is Error.UNKNOWN_MEMBER_ID
    node.put("numbers", 2)
    node.runs_tasks("numbers", 2, "w1")
    assert node.pid(f"group {GROUP}") == pid


@pytest.mark.soak
def test_what_a_supervisor_does_not_understand_does_not_end_it(start_node: Starts) -> None:
    node = start_node(workers=["w1"])
    pid = node.pid("supervisor supervisor")
    assert node.ask(node.supervisor, 42) == Failure("no order of mine: int")
    assert node.pid("supervisor supervisor") == pid


def test_an_error_within_a_group_ends_its_process_once_and_leaves_the_log_intact(
    start_node: Starts,
) -> None:
    node = start_node(workers=["w1"])
    node.put("numbers", 2)
    node.runs_tasks("numbers", 2, "w1")
    pid, end = node.pid(f"group {GROUP}"), node.group().end
    assert not isinstance(node.once(node.group_address, BROKEN), CommandReply)
    eventually(lambda: node.pids(f"group {GROUP}") not in ([], [pid]), "there is another")
    node.put("letters", 2)
    node.runs_tasks("letters", 2, "w1")
    assert node.view().groups[0].restarts == 1
    assert node.log().count("the group ends on") == 1
    assert all(deed.is_begin for deed in node.deeds())
    assert entries(node) == node.group().end > end


@pytest.mark.soak
def test_a_worker_that_can_not_begin_is_tried_again_until_it_can(start_node: Starts) -> None:
    node = start_node(workers=["w1", "w2"])
    node.put("numbers", 2)
    node.runs_tasks("numbers", 2, "w1", "w2")
    node.forget_log()
    log = node.data_dir / "groups" / GROUP / "control"
    aside = log.with_name("aside")
    log.rename(aside)
    node.hit("worker w2")
    eventually(lambda: node.view().workers[1].restarts >= 3, "it was started again and again")
    aside.rename(log)
    node.settles("w1", "w2")
    assert "NoLogError" in node.log()


def test_a_node_does_not_start_on_a_missing_or_damaged_log_and_says_why(start_node: Starts) -> None:
    node = start_node(workers=["w1"])
    node.settles("w1")  # a log without entries may be made anew
    assert node.end() == 0
    logs = node.data_dir / "groups" / GROUP
    (logs / "offsets").rename(logs / "aside")
    with pytest.raises(NotStartedError, match="/offsets was there and is gone"):
        start_node(workers=["w1"])
    assert not (logs / "offsets").exists()
    (logs / "aside").rename(logs / "offsets")
    with (logs / "control" / "data.mdb").open("r+b") as file:
        file.write(os.urandom(64 << 10))
    with pytest.raises(NotStartedError) as told:
        start_node(workers=["w1"])
    assert "Error" in str(told.value)


def _can_mount(folder: Path) -> bool:
    command = [*OWN_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except OSError:
        return False


def test_on_a_full_disk_a_group_refuses_commands_clearly_and_lives_on_until_there_is_space(
    start_node: Starts, tmp_path: Path
) -> None:
    if not _can_mount(tmp_path):
        pytest.skip("a small disk needs a mount namespace, which is not to be had here")
    node = start_node(workers=["w1"], disk=ON_A_SMALL_DISK)
    node.put("numbers", 2)
    node.runs_tasks("numbers", 2, "w1")
    pid, member = node.pid(f"group {GROUP}"), [*node.group().members]
    filler = node.data_dir / "filler"
    for left, seconds in ((8 << 20, 0), (0, 12)):
        leave(filler, left)
        refused = node.ask(node.group_address, put(left))
        assert isinstance(refused, CommandReply)
        assert refused.error is Error.COORDINATOR_NOT_AVAILABLE
        assert "/data/groups/connect/control is full" in refused.message
        assert f"({left} bytes are free)" in refused.message
        assert compact(node) == (CompactionState.STOPPED, 0)
        time.sleep(seconds)
        assert [*node.group().members] == member, "heartbeats go on"
    assert node.pid(f"group {GROUP}") == pid, "and nothing had to be restarted"
    filler.unlink()
    node.put("letters", 2)
    node.settles("w1")
    group = node.group()
    assert group.connectors.keys() == {"numbers", "letters"}
    assert [*group.members] == member
    assert entries(node) == node.group().end
    assert compact(node)[0] is CompactionState.DONE
    assert node.end() == 0


def compact(node: Node) -> tuple[CompactionState, int]:
    """Have the group compact its history; return how that ended, and what was trimmed."""
    node.ask(node.group_address, CompactHistory(GROUP, None, 1, None, "user ann", "r-1"))
    while True:
        progress = node.ask(node.group_address, DescribeCompaction(GROUP))
        assert isinstance(progress, CompactionProgress)
        if progress.state is not CompactionState.RUNNING:
            return progress.state, progress.trimmed


def leave(filler: Path, left: int) -> None:
    """Have a file take all of the disk but so many bytes."""
    space = os.statvfs(filler.parent)
    with suppress(OSError), filler.open("ab", buffering=0) as file:
        missing = space.f_bavail * space.f_frsize - left
        while missing > 0:
            missing -= file.write(bytes(min(missing, 1 << 20)))


def put(number: int) -> PutConnector:
    """One of many connectors."""
    return PutConnector(GROUP, f"c{number}", {"name": f"c{number}", "tasks.max": "1"})
