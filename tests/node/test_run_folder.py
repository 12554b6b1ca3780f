"""What a run folder tells is told of its own node, and of no copy of it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.actors.actor import Door
from fairlead.events.log.owner import process_of
from fairlead.runtime.node.processes import NodeProcess, ProcessFiles
from fairlead.runtime.node.run_folder import NoNodeError, RunFolder
from fairlead.runtime.worker.tie import Tie

DOOR = Door("127.0.0.1", 9, bytes(32))


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A folder on which this process says that it runs a node."""
    folder = RunFolder(tmp_path / "data")
    folder.claim()
    folder.announce(DOOR, "http://127.0.0.1:8083", "connect")
    return tmp_path / "data"


def test_a_node_is_found_in_its_own_folder_alone(data_dir: Path, tmp_path: Path) -> None:
    assert RunFolder(data_dir).node().process == process_of(os.getpid())
    copy = shutil.copytree(data_dir, tmp_path / "copy")
    with pytest.raises(NoNodeError, match=f"no node runs on {copy}"):
        RunFolder(copy).node()
    assert RunFolder(data_dir.rename(tmp_path / "moved")).node().pid == os.getpid()


def test_a_pid_that_is_another_s_by_now_is_no_node(data_dir: Path) -> None:
    note = data_dir / "run" / "node.json"
    note.write_text(note.read_text().replace(process_of(os.getpid()).started, "of long ago"))
    with pytest.raises(NoNodeError):
        RunFolder(data_dir).node()


def test_the_processes_of_a_copied_folder_are_not_its_own(data_dir: Path, tmp_path: Path) -> None:
    mine = NodeProcess("worker", "w1", process_of(os.getpid()), "m1", "i1")
    ProcessFiles(data_dir / "run").write(mine)
    assert ProcessFiles(data_dir / "run").read() == [mine]
    copy = shutil.copytree(data_dir, tmp_path / "copy")
    assert ProcessFiles(copy / "run").read() == []


def test_a_tie_is_cut_when_its_process_ends() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        tie = Tie(process.pid)
        assert not tie.is_cut
        process.kill()
        process.wait()
        assert tie.is_cut
    assert not Tie(None).is_cut
