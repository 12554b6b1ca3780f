"""A cluster's key is for its owner only, and never made anew without a word."""

import shutil
from pathlib import Path

import pytest

from fairlead.events.entries.codec import CONTROL
from fairlead.events.log.writer import GroupLog
from fairlead.runtime.cluster.identity import cluster_id
from fairlead.runtime.cluster.run_folder import (
    KeyRefusedError,
    RunFolder,
    folder_mode_warnings,
    read_key,
)
from fairlead.runtime.config.load import load_config
from fairlead.runtime.node.launcher.commands import FAILED, up


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A data folder with a key, and a log that belongs to it."""
    data_dir = tmp_path / "data"
    folder = RunFolder(data_dir)
    folder.claim()
    folder.key()
    folder.release()
    GroupLog.open_writer(data_dir / "groups" / "connect" / "control", "connect", CONTROL).close()
    return data_dir


def test_a_lost_key_is_not_replaced_beside_logs(
    data_dir: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    key = data_dir / "run" / "key"
    key.unlink()
    with pytest.raises(KeyRefusedError, match="is gone, and there are logs that it belongs to"):
        RunFolder(data_dir).key()
    assert up(load_config(environ={}, overrides=[f"data.dir={data_dir}"])) == FAILED
    told = capfd.readouterr().err
    assert f"not started: the cluster's key {key} is gone" in told
    assert "from a backup" in told
    assert "fairlead up --new-key" in told
    assert not key.exists()


def test_a_lost_key_is_replaced_on_demand_and_one_that_is_there_never(data_dir: Path) -> None:
    folder = RunFolder(data_dir)
    before = folder.key()
    assert folder.key(may_replace=True) == before
    (data_dir / "run" / "key").unlink()
    assert folder.key(may_replace=True) != before
    assert folder.key() == folder.key()


def test_the_key_of_another_cluster_is_refused_beside_logs_unless_somebody_takes_it(
    data_dir: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, folder = data_dir / "run" / "key", RunFolder(data_dir)
    before = folder.key()
    path.write_bytes(b"x" * 32)
    with pytest.raises(KeyRefusedError, match="Put the key of the logs back from a backup"):
        folder.key()
    with pytest.raises(KeyRefusedError, match="Put the key of the logs back from a backup"):
        read_key(path)
    assert up(load_config(environ={}, overrides=[f"data.dir={data_dir}"])) == FAILED
    told = capfd.readouterr().err
    assert f"not started: the key {path} is of cluster {cluster_id(b'x' * 32)}, and the" in told
    assert f"logs beside it are of cluster {cluster_id(before)}" in told
    path.write_bytes(before)
    assert folder.key() == before
    path.write_bytes(b"x" * 32)
    assert folder.key(may_replace=True) == folder.key() == read_key(path) == b"x" * 32


def test_a_data_folder_without_logs_is_of_any_cluster(data_dir: Path) -> None:
    shutil.rmtree(data_dir / "groups")
    (data_dir / "run" / "key").write_bytes(b"x" * 32)
    assert RunFolder(data_dir).key() == b"x" * 32
    GroupLog.open_writer(data_dir / "groups" / "connect" / "control", "connect", CONTROL).close()
    assert RunFolder(data_dir).key() == b"x" * 32


def test_a_folder_of_a_release_that_did_not_note_its_cluster_is_of_the_key_in_it(
    data_dir: Path,
) -> None:
    (data_dir / "cluster.id").unlink()
    key = RunFolder(data_dir).key()
    assert (data_dir / "cluster.id").read_text() == cluster_id(key)


def test_logs_that_were_restored_without_their_key_are_refused(data_dir: Path) -> None:
    shutil.rmtree(data_dir / "run")
    with pytest.raises(KeyRefusedError):
        RunFolder(data_dir).key()


def test_a_new_folder_gets_a_key(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "new")
    folder.claim()
    assert len(folder.key()) == 32
    folder.release()
    assert folder_mode_warnings(tmp_path / "new") == []


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644, 0o666, 0o601])
def test_a_key_that_others_can_use_is_refused(
    data_dir: Path, mode: int, capfd: pytest.CaptureFixture[str]
) -> None:
    key = data_dir / "run" / "key"
    key.chmod(mode)
    with pytest.raises(KeyRefusedError, match=f"chmod 600 {key}"):
        RunFolder(data_dir).key()
    assert up(load_config(environ={}, overrides=[f"data.dir={data_dir}"])) == FAILED
    assert f"(mode {mode:04o})" in capfd.readouterr().err


@pytest.mark.parametrize("content", [b"", b"x" * 31, b"x" * 33])
def test_a_damaged_key_is_refused(data_dir: Path, content: bytes) -> None:
    key = data_dir / "run" / "key"
    key.write_bytes(content)
    with pytest.raises(KeyRefusedError, match=f"{key} holds {len(content)} bytes"):
        RunFolder(data_dir).key()


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o777, 0o711])
def test_a_folder_that_others_can_look_into_is_warned_of(data_dir: Path, mode: int) -> None:
    assert folder_mode_warnings(data_dir) == []
    data_dir.chmod(mode)
    (data_dir / "run").chmod(mode)
    told = folder_mode_warnings(data_dir)
    assert [f"chmod 700 {each}" for each in (data_dir, data_dir / "run")] == [
        each.rpartition(": ")[2] for each in told
    ]


def test_the_clusters_key_is_copied_at_the_first_start_and_no_other_one_is_taken(
    tmp_path: Path,
) -> None:
    folder, source = RunFolder(tmp_path / "new"), tmp_path / "cluster.key"
    folder.claim()
    folder.copy_key(b"c" * 32, source)
    assert folder.key() == b"c" * 32
    folder.copy_key(b"c" * 32, source)
    with pytest.raises(KeyRefusedError, match=f"cluster.key.file = {source} is another key than"):
        folder.copy_key(b"d" * 32, source)
    with pytest.raises(KeyRefusedError, match=f"{source} holds 31 bytes"):
        folder.copy_key(b"d" * 31, source, may_replace=True)
    assert folder.key() == b"c" * 32
    folder.copy_key(b"d" * 32, source, may_replace=True)
    assert folder.key(may_replace=True) == folder.key() == b"d" * 32
    folder.release()


def test_the_clusters_key_comes_to_logs_only_as_the_key_that_they_belong_to(
    data_dir: Path, tmp_path: Path
) -> None:
    folder, path, source = RunFolder(data_dir), data_dir / "run" / "key", tmp_path / "cluster.key"
    before = folder.key()
    path.unlink()
    with pytest.raises(KeyRefusedError, match="is gone, and there are logs that it belongs to"):
        folder.copy_key(b"d" * 32, source)
    assert not path.exists()
    folder.copy_key(before, source)
    assert folder.key() == before


def test_a_clusters_key_that_others_may_read_is_refused(
    data_dir: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "cluster.key"
    source.write_bytes((data_dir / "run" / "key").read_bytes())
    source.chmod(0o604)
    told = [f"data.dir={data_dir}", f"cluster.key.file={source}"]
    assert up(load_config(environ={}, overrides=told)) == FAILED
    assert f"not started: other users may read or change {source}" in capfd.readouterr().err


def test_a_node_of_another_cluster_does_not_start(
    data_dir: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "cluster.key"
    source.touch(0o600)
    source.write_bytes(b"d" * 32)
    told = [f"data.dir={data_dir}", f"cluster.key.file={source}"]
    assert up(load_config(environ={}, overrides=told)) == FAILED
    assert f"not started: cluster.key.file = {source} is another" in capfd.readouterr().err
