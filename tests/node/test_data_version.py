"""A node is not run by a version that does not know its logs, nor half by one, half by another."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.actors.transport.ports import SystemAddress
from fairlead.events.catalogue import GENERATION
from fairlead.runtime.cluster import data_version
from fairlead.runtime.cluster.data_version import (
    LOADED,
    DataVersion,
    InstalledVersion,
    VersionSkewError,
    note_data_version,
    read_data_version,
    require_known_data,
    require_version_of_node,
)
from fairlead.runtime.cluster.run_folder import RunFolder
from fairlead.runtime.config.load import load_config
from fairlead.runtime.node.launcher.commands import FAILED, up
from fairlead_tests.power_cuts import PowerCuts

ADDRESS = SystemAddress("127.0.0.1", 9, bytes(32))


def note(data_dir: Path, version: str, generation: int) -> None:
    (data_dir / "run").mkdir(parents=True, exist_ok=True)
    content = {"version": version, "generation": generation}
    (data_dir / "run" / data_version.FILE).write_text(json.dumps(content))


def content(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def test_an_older_version_refuses_a_data_folder_before_it_touches_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    note(tmp_path, "9.8.0", GENERATION + 1)
    before = content(tmp_path)
    assert up(load_config(None, {}, [f"data.dir={tmp_path}", "engine=noop"])) == FAILED
    assert content(tmp_path) == before
    assert capfd.readouterr().err == (
        f"not started: {tmp_path} was last used by fairlead 9.8.0 (records of generation"
        f" {GENERATION + 1}), and this is fairlead {LOADED}, which knows them up to {GENERATION}:"
        " nothing was changed. Run 9.8.0 or a newer version again; or, to go back, put the backup"
        " in place that was made before the upgrade (`fairlead docs upgrade`)\n"
    )


def test_a_data_folder_that_cannot_be_made_is_told_with_what_examines_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    data_dir = tmp_path / "file" / "data"
    assert up(load_config(None, {}, [f"data.dir={data_dir}", "engine=noop"])) == FAILED
    assert capfd.readouterr().err == (
        f"not started: {data_dir.parent}: File exists. Nothing was changed; `fairlead doctor`"
        " examines the data folder\n"
    )


@pytest.mark.parametrize("generation", [1, GENERATION])
def test_data_of_an_older_version_or_of_the_same_records_is_used(
    tmp_path: Path, generation: int
) -> None:
    note(tmp_path, "99.0", generation)
    require_known_data(tmp_path)
    note_data_version(tmp_path)
    assert read_data_version(tmp_path) == DataVersion(LOADED, GENERATION)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": "9"}', '{"generation": "x"}'])
def test_a_note_that_cannot_be_read_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / data_version.FILE).write_text(text)
    require_known_data(tmp_path)
    assert read_data_version(tmp_path) is None


def test_the_note_outlives_a_power_cut(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with PowerCuts(tmp_path, False) as cuts:
        note_data_version(tmp_path)
        cuts.promise(True)
    for is_noted in cuts.replayed():
        assert (read_data_version(tmp_path) is not None) or not is_noted


def announce(data_dir: Path, version: str) -> RunFolder:
    folder = RunFolder(data_dir)
    folder.claim()
    folder.key()
    folder.announce(ADDRESS, "http://127.0.0.1:8083", "connect", version=version)
    return folder


def test_a_process_of_another_version_than_its_node_does_not_start(tmp_path: Path) -> None:
    folder = announce(tmp_path, LOADED)
    require_version_of_node(tmp_path)
    folder.announce(ADDRESS, "http://127.0.0.1:8083", "connect")  # a version that did not say
    require_version_of_node(tmp_path)
    folder.announce(ADDRESS, "http://127.0.0.1:8083", "connect", version="0.0.9")
    with pytest.raises(VersionSkewError, match=f"runs fairlead 0.0.9, and {LOADED} was installed"):
        require_version_of_node(tmp_path)
    rest = [sys.executable, "-m", "fairlead.runtime.interfaces.rest", "--data-dir", str(tmp_path)]
    ended = subprocess.run(rest, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert ended.stderr == (
        f"the REST process cannot start: the node runs fairlead 0.0.9, and {LOADED} was installed"
        " over it: restart the node (`fairlead down`, `fairlead up`); this process did not start,"
        " the others go on\n"
    )
    folder.release()


def test_a_node_notices_once_that_another_version_was_installed_over_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed = [LOADED, "", "9.8.0", "9.8.0", LOADED]
    monkeypatch.setattr(data_version, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(data_version, "installed_version", lambda: installed.pop(0))
    watch = InstalledVersion()
    assert [watch.look() for _ in range(4)] == [False, False, True, False]
    assert watch.skew == (
        f"the node runs fairlead {LOADED}, and 9.8.0 was installed over it: restart the node"
        " (`fairlead down`, `fairlead up`)"
    )
    assert (watch.look(), watch.skew) == (False, "")
