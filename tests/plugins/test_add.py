"""`fairlead plugins add` has Connect's own classes look what is in a plugin."""

from pathlib import Path

import pytest

from fairlead.runtime.interfaces.cli.main import main
from fairlead.runtime.pipeline.plugins import setup
from fairlead_tests.plugins.installed import CONNECT_FILE, QUICK, fetched, installation

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("plugins")]
SET = f"plugin.host.java.options={QUICK.java_options}"
FILE_STREAM = "org.apache.kafka.connect.file.FileStream"


def test_what_a_scan_finds_in_a_plugin_is_told_when_it_is_added_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installation()
    (jar,) = fetched(CONNECT_FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    assert main(["plugins", "add", str(jar), "--trust", "--name", "files", "--set", SET]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "plugin files added, with 1 files",
        f"sink {FILE_STREAM}SinkConnector 4.3.0",
        f"source {FILE_STREAM}SourceConnector 4.3.0",
    ]
    monkeypatch.setattr(setup, "home", lambda: tmp_path / "nothing")  # nothing can be scanned now
    assert main(["plugins", "list"]) == 0
    told = capsys.readouterr()
    assert f"{FILE_STREAM}SinkConnector" in told.out
    assert told.err == ""
