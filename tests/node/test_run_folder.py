"""What a run folder tells is told of its own node, and of no copy of it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.actors.transport.ports import SystemAddress
from fairlead.events.log.process import ProcessId, process_of
from fairlead.runtime.cluster.node_files import spark_folder, write_private
from fairlead.runtime.cluster.run_folder import NoNodeError, RunFolder
from fairlead.runtime.config.load import load_config
from fairlead.runtime.node.launcher.commands import OK, UNREACHABLE, down
from fairlead.runtime.node.process_files import NodeProcess, ProcessFiles

ADDRESS = SystemAddress("127.0.0.1", 9, bytes(32))


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A folder on which this process says that it runs a node."""
    folder = RunFolder(tmp_path / "data")
    folder.claim()
    folder.announce(ADDRESS, "http://127.0.0.1:8083", "connect")
    return tmp_path / "data"


def test_what_a_former_run_left_of_its_workers_and_engine_is_gone_once_a_node_claims(
    tmp_path: Path,
) -> None:
    folder = RunFolder(tmp_path)
    folder.claim()
    folder.metrics.mkdir()
    left = [folder.metrics / "w1.db", folder.path / "engine.json"]
    for each in left:
        each.touch()
    kept = folder.path / "kept"
    kept.touch()
    folder.release()
    again = RunFolder(tmp_path)
    left[1].touch()
    again.claim()
    assert [each.exists() for each in (*left, kept)] == [False, False, True]
    again.release()


def test_a_folder_that_is_released_is_held_open_no_longer(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.claim()
    lock = folder._lock  # pyright: ignore[reportPrivateUsage]
    assert os.fstat(lock).st_ino == (folder.path / "lock").stat().st_ino
    folder.release()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(lock)


def test_a_file_that_a_process_has_left_half_written_keeps_nobody_from_writing_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "key.json"
    path.with_suffix(".new").write_bytes(b"hal")
    write_private(path, b"whole")
    assert [
        (each.name, each.read_bytes(), each.stat().st_mode & 0o777) for each in tmp_path.iterdir()
    ] == [("key.json", b"whole", 0o600)]


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


def test_down_ends_what_is_left_of_a_node_whose_first_process_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = load_config(None, {}, [f"data.dir={tmp_path / 'data'}"])
    files = ProcessFiles(tmp_path / "data" / "run")
    with sleeping() as orphan, sleeping() as engine, sleeping() as bystander:
        member = NodeProcess("worker", "w1", process_of(orphan.pid), "m1", "i1")
        files.write(replace(member, engine=process_of(engine.pid)))
        files.write(NodeProcess("group", "g", ProcessId(bystander.pid, "another with its pid")))
        assert down(config) == OK
        assert (orphan.wait(), engine.wait(), bystander.poll()) == (-9, -9, None)
    assert f"killed the others: worker w1 (pid {orphan.pid})" in capsys.readouterr().err
    assert [each.member_id for each in files.read()] == ["m1"], "its end is still to be reported"
    assert down(config) == UNREACHABLE


def test_down_ends_nothing_while_a_node_is_starting(
    data_dir: Path,
) -> None:
    with sleeping() as process:
        started = NodeProcess("group", "g", process_of(process.pid))
        ProcessFiles(data_dir / "run").write(started)
        (data_dir / "run" / "node.json").unlink()
        command = [sys.executable, "-m", "fairlead.runtime", "down", "--data-dir", str(data_dir)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (ended.returncode, process.poll()) == (1, None)
    assert "a node is just starting on " in ended.stderr


@contextmanager
def sleeping() -> Generator[subprocess.Popen[bytes]]:
    """Run a process that does nothing."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def test_the_files_of_a_jvm_are_their_owners_alone_also_where_they_once_were_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "cache" / "spark" / "w1").mkdir(parents=True)
    for each in ("cache", "cache/spark", "cache/spark/w1"):
        (tmp_path / each).chmod(0o755)
    folders = [spark_folder(tmp_path, name) for name in ("w1", "w2")]
    assert folders == [tmp_path / "cache" / "spark" / name for name in ("w1", "w2")]
    made = [tmp_path / "cache", tmp_path / "cache" / "spark", *folders]
    assert [each.stat().st_mode & 0o777 for each in made] == [0o700] * 4
