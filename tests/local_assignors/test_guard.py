"""The guard of an assignor process keeps its log small, and ends with it what it has started."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
from actor_system import eventually, runs

from fairlead.runtime.assignors import guard

LEADER = """
import os, subprocess, sys, time
os.setpgid(0, 0)
for command in ([sys.executable, "-I", "-S", sys.argv[1], str(os.getpid()), sys.argv[2]],
                ["sleep", "600"]):
    print(subprocess.Popen(command, stdin=subprocess.DEVNULL).pid, flush=True)
time.sleep(600)
"""


def test_the_end_of_a_log_that_is_too_large_is_put_aside_and_writers_begin_anew(
    tmp_path: Path,
) -> None:
    log = tmp_path / "assignor.log"
    with log.open("ab", buffering=0) as writer:
        for text in (b"older", b"-", b"newer"):
            writer.write(text)
        guard.keep_small(log, 11)
        assert log.read_bytes() == b"older-newer"
        guard.keep_small(log, 5)
        writer.write(b"newest")
    found = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    assert found == {"assignor.log": b"newest", "assignor.log.1": b"newer"}
    assert {each.stat().st_mode & 0o077 for each in tmp_path.glob("*.1")} == {0}


def test_a_log_is_emptied_also_where_there_is_no_room_beside_it(tmp_path: Path) -> None:
    log = tmp_path / "assignor.log"
    log.write_bytes(b"too much")
    (tmp_path / "assignor.log.1").mkdir()
    guard.keep_small(log, 5)
    assert log.read_bytes() == b""


def test_a_log_that_is_not_there_is_no_trouble(tmp_path: Path) -> None:
    guard.keep_small(tmp_path / "assignor.log", 0)
    assert list(tmp_path.iterdir()) == []


def test_when_its_leader_is_killed_a_group_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LEADER, str(guard.__file__), str(tmp_path / "assignor.log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as leader:
        assert leader.stdout is not None
        others = [psutil.Process(int(leader.stdout.readline())) for _ in range(2)]
        assert {os.getpgid(each.pid) for each in others} == {leader.pid}
        leader.kill()
        eventually(lambda: not any(map(runs, others)), "guard and child are gone")
