"""The real process, over real logs and without an actor system."""

import contextlib
import getpass
import json
import resource
import signal
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from rest.conftest import KEY

import fairlead
from fairlead.actors.transport.log_file import SAME_TEXT
from fairlead.runtime.security.proofs.entries import AccessEntry, EntryKind, changing_entries
from fairlead.runtime.security.proofs.passwords import digest_token, make_token
from fairlead.runtime.security.rights import Role
from fairlead_tests.actor_system import eventually
from fairlead_tests.rest.group_process import GroupProcess
from fairlead_tests.rest.process import TIMEOUT_SECONDS, arguments, ended, running

pytestmark = pytest.mark.xdist_group("rest-process")  # what they run is imported once

CONFIG = {"connector.class": "SparkPipeline", "source.path": "/in", "sink.path": "/out"} | {
    "source.format": "csv",
    "sink.format": "parquet",
}


@pytest.fixture
def data_dir(tmp_path: Path, group_process: GroupProcess) -> Iterator[Path]:
    """A data folder with a key and the logs of one group, which nobody serves."""
    (tmp_path / "run").mkdir()
    key = tmp_path / "run" / "key"
    key.touch(0o600)
    key.write_bytes(KEY)
    with group_process.serving(tmp_path / "groups" / "connect") as group:
        group.ask("configure", "a a-0")
    yield tmp_path
    assert not [each for each in psutil.process_iter() if str(tmp_path) in _words(each)]


def _words(process: psutil.Process) -> str:
    try:
        return " ".join([process.name(), *process.cmdline(), process.cwd()])
    except psutil.Error:
        return ""


def test_reads_work_and_commands_are_a_503_without_an_actor_system(data_dir: Path) -> None:
    with running(data_dir) as (process, client):
        assert client.get("/connectors").json() == ["a"]
        assert client.get("/connectors/a/status").json() == {
            "name": "a",
            "connector": {"state": "UNASSIGNED", "worker_id": "", "version": None},
            "tasks": [{"id": 0, "state": "UNASSIGNED", "worker_id": "", "version": None}],
            "type": "unknown",
        }
        told = (
            f"no node runs on {data_dir}: start one with `fairlead up`, or name its data.dir;"
            " nothing was changed"
        )
        refused = {"error_code": 503, "message": told}
        assert client.put("/connectors/b/config", json=CONFIG).json() == refused
        assert client.delete("/connectors/a").json() == refused
        assert client.get("/health").json() == {**refused, "status": "unhealthy"}
        assert client.get("/workers").json()["processes_known"] is False
        assert (
            'fairlead_log_end_offset{group="connect",log="control"}' in client.get("/metrics").text
        )
        root = client.get("/")
        told = root.json()
        assert told == {
            "version": "4.3.0",
            "commit": "unknown",
            "kafka_cluster_id": told["kafka_cluster_id"],
            "fairlead_version": fairlead.__version__,
        }
        assert root.headers["x-fairlead-version"] == fairlead.__version__
        claim = {"X-Forwarded-For": "192.0.2.7"}  # who asks is what the kernel says
        client.put("/admin/loggers/fairlead.x", json={"level": "WARN"}, headers=claim)
        told = f"the level of 'fairlead.x' is WARN now, by rest 127.0.0.1 ({getpass.getuser()})"
        assert told in (data_dir / "logs" / "rest.log").read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_SECONDS) == 0


def test_a_process_without_descriptors_says_so_a_few_times_and_answers_later(
    data_dir: Path,
) -> None:
    with running(data_dir) as (process, client), contextlib.ExitStack() as crowd:
        address = client.base_url.host, client.base_url.port or 0
        taken = psutil.Process(process.pid).num_fds()
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (taken + 10, taken + 10))
        for _ in range(100):
            crowd.enter_context(socket.create_connection(address))
        log = data_dir / "logs" / "rest.log"
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while "accept" not in log.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(2.5)  # it tries again each second, a hundred times
        assert log.read_text().count("accept() out of system resource") <= 3 * SAME_TEXT
        assert log.stat().st_mode & 0o777 == 0o600
        crowd.close()
        assert client.get("/connectors").json() == ["a"]


def test_a_port_that_is_taken_is_told_in_a_line(data_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        told = ended("--data-dir", str(data_dir), "--listener", url)
    assert told == (
        1,
        b"",
        f"the REST process cannot start: cannot listen at {url}: Address already in use; free"
        " the port, or choose another with `listeners`\n",
    )


def test_a_folder_without_a_key_is_told_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "run" / "key"
    assert ended(*arguments(tmp_path)) == (
        1,
        b"",
        f"the REST process cannot start: the cluster's key cannot be read from {path} (No such"
        " file or directory): `fairlead up` makes it when the node is first started\n",
    )


def with_entries_behind_its_end(sound: bytes) -> bytes:
    """Have the leaves of LMDB's file point behind its end, but for that which names the tables."""
    damaged, page_bytes, leaf, header, is_table = bytearray(sound), 4096, 2, 16, 2
    for page in range(2 * page_bytes, len(sound), page_bytes):
        flags, lower = struct.unpack_from("<HH", damaged, page + 10)
        places = range(page + header, page + lower if flags == leaf else 0, 2)
        nodes = [struct.unpack_from("<H", damaged, place)[0] for place in places]
        if not any(
            struct.unpack_from("<H", damaged, page + node + 4)[0] & is_table for node in nodes
        ):
            for place in places:
                struct.pack_into("<H", damaged, place, 0xFFF0)
    return bytes(damaged)


def test_a_log_that_ends_the_process_is_checked_by_the_next_one_and_answered_with_the_way_out(
    data_dir: Path,
) -> None:
    pages = data_dir / "groups" / "connect" / "control" / "data.mdb"
    sound = pages.read_bytes()
    pages.write_bytes(with_entries_behind_its_end(sound))
    with running(data_dir) as (process, client):
        with pytest.raises(httpx.RemoteProtocolError):
            client.get("/connectors")
        assert -process.wait(TIMEOUT_SECONDS) in {signal.SIGABRT, signal.SIGBUS, signal.SIGSEGV}
    (data_dir / "logs" / "rest.log").unlink()
    with running(data_dir) as (process, client):
        for path in ("/connectors", "/connectors/a/status", "/groups/connect"):
            told = client.get(path)
            message = told.json()["message"]
            assert (told.status_code, "control is damaged: checking it ended in" in message) == (
                503,
                True,
            )
            assert "`fairlead log verify` checks the logs. Stop the node, " in message
        assert client.get("/").status_code == 200
        assert "the last REST process crashed" in (data_dir / "logs" / "rest.log").read_text()
    pages.write_bytes(sound)
    (data_dir / "logs" / "rest.log").unlink()
    with running(data_dir) as (_, client):
        assert client.get("/connectors").json() == ["a"]


def test_a_process_asks_for_tokens_that_it_reads_again_and_answers_when_no_log_can_be_written(
    data_dir: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    token = make_token()
    headers = {"Authorization": f"Bearer {token}"}
    with running(data_dir, "--access", "authentication=token") as (process, client):
        assert client.get("/connectors", headers=headers).status_code == 401
        entry = AccessEntry("ci", EntryKind.TOKEN, Role.VIEWER, digest_token(token))
        with changing_entries(data_dir) as entries:
            entries["ci"] = entry
        assert client.get("/connectors", headers=headers).json() == ["a"]
        assert client.delete("/connectors/a", headers=headers).status_code == 403
        assert client.get("/health/live").status_code == 200
        audit = data_dir / "logs" / "audit.log"
        eventually(lambda: audit.read_text().count("\n") == 2, "both refusals are in the audit log")
        full = (0, resource.RLIM_INFINITY)  # as a full disk: no file grows
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, full)
        assert [client.get("/connectors").status_code for _ in range(3)] == [401] * 3
        assert client.get("/connectors", headers=headers).json() == ["a"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_SECONDS) == 0
    audited = audit.read_text().splitlines()
    assert [json.loads(each)["status"] for each in audited] == [401, 403]
    assert capfd.readouterr().err == ""
    assert token not in (data_dir / "logs" / "rest.log").read_text()
