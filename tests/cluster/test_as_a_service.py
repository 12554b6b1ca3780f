"""A node of a service manager: it reports its state; and one that is detached from its terminal."""

import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil
import pytest

from fairlead_tests.actor_system import runs
from fairlead_tests.cluster.remains import environment_in
from fairlead_tests.installed.service import NOOP, listening, running

pytestmark = pytest.mark.cluster
FAIRLEAD = (sys.executable, "-m", "fairlead.runtime")


def fairlead(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a folder to its end."""
    return subprocess.run(
        [*FAIRLEAD, *words],
        cwd=folder,
        env=environment_in(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_service_reports_ready_what_hangs_and_its_end(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    command = (*FAIRLEAD, "up", *NOOP, "--data-dir", "data")
    variables = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "3000000"}
    with listening(address) as reports, running(command, tmp_path, **variables) as node:
        ready = reports.wait_for("READY")
        assert ready["STATUS"].startswith("group connect is up with 1 worker; REST on http://127.")
        assert "EXTEND_TIMEOUT_USEC" in reports.messages[0]
        reports.wait_for("WATCHDOG")
        children = psutil.Process(node.pid).children(recursive=True)
        (rest,) = (each for each in children if "fairlead: rest" in " ".join(each.cmdline()))
        rest.suspend()
        reports.wait_for("STATUS", "REST")
        assert [each for each in children if "NOTIFY_SOCKET" in each.environ()] == []
        reports.drop()
        before = len(reports.messages)
        for _ in range(2):  # one each second, in which the watchdog would be told
            status = reports.wait_for("STATUS", "REST (pid")["STATUS"]
            assert status.endswith("after 30 s it is killed and restarted")
        assert [each for each in reports.messages[before:] if "WATCHDOG" in each] == []
        rest.resume()
        reports.wait_for("STATUS", "group connect is up")
        reports.wait_for("WATCHDOG")
        node.send_signal(signal.SIGTERM)
        reports.wait_for("STOPPING")
        assert node.wait(60) == 0
    assert [each for each in children if runs(each)] == []


def test_a_detached_node_is_ready_when_the_command_ends(tmp_path: Path) -> None:
    started = fairlead(tmp_path, "up", "--detach", *NOOP, "--data-dir", "data")
    try:
        assert (started.returncode, started.stdout) == (0, "")
        match = re.search(r"REST on (\S+), data in (\S+); `fairlead down` ends it", started.stderr)
        assert match, started.stderr
        with urllib.request.urlopen(match[1], timeout=60) as answer:
            assert answer.status == 200
        again = fairlead(tmp_path, "up", "--detach", *NOOP, "--data-dir", "data")
        assert again.returncode == 1
        assert again.stderr.startswith(f"not started: a node already runs on {tmp_path}/data")
    finally:
        ended = fairlead(tmp_path, "down", "--data-dir", "data")
    assert (ended.returncode, ended.stderr) == (0, "the node is down\n")
    output = (tmp_path / "data" / "logs" / "up.out").read_text()
    assert output.splitlines()[-1] == "the node is down (SIGTERM)"
    assert (tmp_path / "data" / "logs" / "up.out").stat().st_mode & 0o077 == 0


def test_a_detached_node_that_cannot_begin_says_why(tmp_path: Path) -> None:
    (tmp_path / "data" / "run" / "version.json").mkdir(parents=True)
    ended = fairlead(tmp_path, "up", "--detach", *NOOP, "--data-dir", "data")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert re.fullmatch(
        r"the node has ended: .*version.json.*; what was done before stays\n", ended.stderr
    )


def test_a_detached_node_does_not_log_to_where_nobody_reads(tmp_path: Path) -> None:
    ended = fairlead(tmp_path, "up", "--detach", "--log", "stdout")
    assert (ended.returncode, ended.stderr) == (
        2,
        "fairlead: with --detach nobody reads standard output: leave out --log stdout\n",
    )
    assert [each.name for each in tmp_path.iterdir()] == []
