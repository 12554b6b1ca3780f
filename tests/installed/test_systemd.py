"""The unit for systemd: systemd's own tools find nothing wrong, and a node runs as it says."""

import ctypes.util
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.runtime.config.load import load_config
from fairlead_tests.installed import sandbox
from fairlead_tests.installed.sandbox import read_unit
from fairlead_tests.installed.service import NOOP, listening, running

HOUSE = Path(__file__).parents[2]
FOLDER = HOUSE / "deploy" / "systemd"
UNIT = FOLDER / "fairlead.service"
PROGRAM = Path(sys.prefix) / "bin" / "fairlead"
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze: apt install systemd"
)


def run(*command: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@needs_systemd
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "fairlead.service"
    unit.write_text(UNIT.read_text().replace("/opt/fairlead/bin/fairlead", str(PROGRAM)))
    verified = run("systemd-analyze", "verify", "--man=no", unit)
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")


@needs_systemd
def test_the_service_is_exposed_to_little() -> None:
    judged = run("systemd-analyze", "security", "--offline=true", "--threshold=30", UNIT)
    assert judged.returncode == 0, judged.stdout
    assert "Overall exposure level for fairlead.service: 1." in judged.stdout


@pytest.mark.skipif(shutil.which("systemd-sysusers") is None, reason="needs systemd-sysusers")
def test_its_user_can_be_made() -> None:
    made = run("systemd-sysusers", "--dry-run", FOLDER / "fairlead.sysusers")
    assert (made.returncode, "fairlead" in made.stdout + made.stderr) == (0, True)


def test_the_settings_of_the_service_are_valid() -> None:
    config = load_config(FOLDER / "fairlead.toml", {}, ())
    assert (config.group_id, config.workers) == ("connect", 2)


def test_a_stop_may_take_longer_than_the_workers_may() -> None:
    service = read_unit(UNIT)
    assert int(service["TimeoutStopSec"][0]) > 60, "`down` waits for that long"
    assert service["KillMode"] == ["mixed"]


def test_a_secret_of_the_service_is_read_where_systemd_puts_it() -> None:
    text = UNIT.read_text()
    assert "${dir:/run/credentials/fairlead.service:db-password}" in text
    assert "#LoadCredential=db-password:" in text


@needs_systemd
@pytest.mark.cluster
@pytest.mark.skipif(
    ctypes.util.find_library("seccomp") is None, reason="needs libseccomp, which has the filter"
)
def test_a_node_runs_with_the_calls_that_the_unit_allows(tmp_path: Path) -> None:
    words = shlex.split(read_unit(UNIT)["ExecStart"][0])
    places = {
        "/opt/fairlead/bin/fairlead": str(PROGRAM),
        "/etc/fairlead/fairlead.toml": str(FOLDER / "fairlead.toml"),
        "/var/lib/fairlead": str(tmp_path / "data"),
    }
    start = [places.get(word, word) for word in words]
    command = [sys.executable, sandbox.__file__, str(UNIT), *start, *NOOP]
    variables = {"NOTIFY_SOCKET": f"@fairlead-{os.getpid()}", "WATCHDOG_USEC": "3000000"}
    with (
        listening(variables["NOTIFY_SOCKET"]) as reports,
        running(command, tmp_path, **variables) as node,
    ):
        ready = reports.wait_for("READY")
        reports.wait_for("WATCHDOG")
        node.send_signal(signal.SIGTERM)
        reports.wait_for("STOPPING")
        assert node.wait(60) == 0
    assert ready["STATUS"].startswith("group connect is up with 1 worker; REST on http://127.0.0.1")
    lines = (tmp_path / "output").read_text().splitlines()
    assert [line for line in lines if " ERROR " in line or "Traceback" in line] == []
    assert lines[-1] == "the node is down (SIGTERM)"
