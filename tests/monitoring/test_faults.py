"""More alerts that are seen to fire on real faults and to end: those that no task has a part in."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from fairlead_tests.certificates import Authority
from fairlead_tests.cluster.remains import without_remains
from fairlead_tests.local_assignors.packages import install
from fairlead_tests.monitoring.prometheus_server import Prometheus, running_prometheus
from fairlead_tests.monitoring.watched_node import WatchedNode, watched_node

pytestmark = [pytest.mark.cluster, pytest.mark.soak]
WORKERS = tuple(f"w{number}" for number in range(1, 9))
NOOP = (
    "engine=noop",
    f"workers={len(WORKERS)}",
    "heartbeat.interval.ms=500",
    "session.timeout.ms=20000",
    "process.answer.timeout.ms=600000",
    "assignment.interval.ms=500",
    "worker.restart.backoff.ms=100",
    "worker.restart.backoff.max.ms=100",
    "group.local.assignors=faulty",
)
FAULTY = """
import time
from pathlib import Path

class Mine:
    name, minimum_version, maximum_version = "faulty", 0, 2
    def __init__(self, conf):
        pass
    def metadata(self, worker):
        return plain_metadata(worker)
    def assign(self, group):
        while Path("FOLDER/hangs").exists():
            time.sleep(0.05)
        if Path("FOLDER/fails").exists():
            raise LookupError("no idea")
        return counting.assign_deferred(group)
    def on_assignment(self, assignment):
        pass
"""
OWN_MOUNTS = ("unshare", "--user", "--map-root-user", "--mount")
DISK = 'mkdir -p data && mount -t tmpfs -o size=1100m,nr_inodes=2000 tmpfs data && exec "$@"'


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WatchedNode, Prometheus]]:
    folder = tmp_path_factory.mktemp("watched")
    source = FAULTY.replace("FOLDER", str(folder))
    with watched_node(folder, *NOOP) as (node, prometheus):
        install(node.folder / "site", source, "faulty = shop_rules:Mine")
        node.up()
        node.node.put("numbers", 16)
        node.node.settles(*WORKERS)
        yield node, prometheus


@contextmanager
def frozen(node: WatchedNode, *titles: str) -> Iterator[None]:
    """Stop processes as a machine without time for them does, and let them go on at the end."""
    pids = [node.node.hit(title, signal.SIGSTOP) for title in titles]
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_a_group_whose_process_hangs_is_told_of_until_it_answers(
    watched: tuple[WatchedNode, Prometheus],
) -> None:
    node, prometheus = watched
    with frozen(node, "group connect"):
        prometheus.fires("FairleadProcessSilent")
        prometheus.fires("FairleadGroupSilent")
        deadline = time.monotonic() + 120
        while "FairleadRestErrors" not in prometheus.firing():
            assert time.monotonic() < deadline
            assert httpx.get(f"{node.url}/health", timeout=60).is_server_error
    for name in ("FairleadProcessSilent", "FairleadGroupSilent", "FairleadRestErrors"):
        prometheus.ends(name)


def test_a_worker_that_hangs_and_the_loss_of_all_are_told_of_until_they_are_back(
    watched: tuple[WatchedNode, Prometheus],
) -> None:
    node, prometheus = watched
    node.node.settles(*WORKERS)
    with frozen(node, "worker w1"):
        node.node.put("letters", 24)
        (stuck,) = prometheus.fires("FairleadRebalanceStuck")
        assert stuck["state"] == "reconciling"
        with frozen(node, *(f"worker {name}" for name in WORKERS[1:])):
            prometheus.fires("FairleadNoWorkers")
    for name in ("FairleadNoWorkers", "FairleadRebalanceStuck"):
        prometheus.ends(name)


def test_workers_that_die_all_at_once_are_a_storm_until_they_stay(
    watched: tuple[WatchedNode, Prometheus],
) -> None:
    node, prometheus = watched
    node.node.settles(*WORKERS)
    for _ in range(3):
        for name in WORKERS:
            node.node.hit(f"worker {name}")
    prometheus.fires("FairleadRebalanceStorm")
    prometheus.ends("FairleadRebalanceStorm")


@pytest.mark.parametrize(
    ("deed", "name"), [("hangs", "FairleadGroupSlow"), ("fails", "FairleadAssignorFails")]
)
def test_an_assignor_that_hangs_or_fails_is_told_of_until_it_is_well(
    watched: tuple[WatchedNode, Prometheus], deed: str, name: str
) -> None:
    node, prometheus = watched
    node.node.settles(*WORKERS)
    trigger = node.folder.parent / deed
    trigger.touch()
    node.node.put(deed, 2)
    prometheus.fires(name)
    trigger.unlink()
    prometheus.ends(name)


def test_many_refused_requests_are_told_of_until_there_are_no_more(
    watched: tuple[WatchedNode, Prometheus],
) -> None:
    node, prometheus = watched
    with httpx.Client(base_url=node.url, headers={"Host": "elsewhere:8083"}) as client:
        deadline = time.monotonic() + 120
        while "FairleadLoginsRefused" not in prometheus.firing():
            assert time.monotonic() < deadline
            for _ in range(50):
                assert client.get("/connectors").status_code == httpx.codes.FORBIDDEN
    prometheus.ends("FairleadLoginsRefused")


def test_a_disk_short_of_bytes_or_of_inodes_is_told_of_until_there_is_room(tmp_path: Path) -> None:
    with watched_node(tmp_path, "engine=noop", "workers=1") as (node, prometheus):
        node.up(*OWN_MOUNTS, "sh", "-c", DISK, "sh")
        node.node.root = Path(f"/proc/{node.node.launcher.pid}/root")
        prometheus.comes("up == 1")
        assert "FairleadDiskLow" not in prometheus.firing()
        large = node.node.data_dir / "large"
        large.write_bytes(bytes(300 << 20))
        (low,) = [each for each in prometheus.fires("FairleadDiskLow") if each["folder"] == "data"]
        assert "B are free on the disk of" in low["summary"]
        large.unlink()
        small = node.node.data_dir / "small"
        small.mkdir()
        with suppress(OSError):
            for number in range(2000):
                (small / str(number)).touch()
        for each in [*small.iterdir()][:20]:
            each.unlink()
        prometheus.fires("FairleadInodesLow")
        for each in small.iterdir():
            each.unlink()
        prometheus.ends("FairleadDiskLow")
        prometheus.ends("FairleadInodesLow")


def test_nodes_of_two_versions_and_a_server_without_nodes_are_told_of(tmp_path: Path) -> None:
    with (
        without_remains() as nodes,
        running_prometheus(tmp_path / "watches", []) as prometheus,
    ):
        prometheus.fires("FairleadNotWatched")
        one, two = (
            WatchedNode(tmp_path / name, nodes, ("engine=noop", "workers=1"))
            for name in ("one", "two")
        )
        info = two.folder / "site" / "fairlead_connect-99.0.dist-info"
        info.mkdir(parents=True)
        text = "Metadata-Version: 2.1\nName: fairlead-connect\nVersion: 99.0\n"
        (info / "METADATA").write_text(text)
        one.up()
        two.up()
        prometheus.watch([one.address, two.address])
        prometheus.ends("FairleadNotWatched")
        (skew,) = prometheus.fires("FairleadVersionSkew")
        assert skew["summary"] == "Nodes run 2 versions of fairlead"
        prometheus.watch([one.address])
        prometheus.ends("FairleadVersionSkew")


def test_a_certificate_that_ends_is_told_of_until_there_is_a_new_one(tmp_path: Path) -> None:
    authority, keystore = Authority(), tmp_path / "server.pem"
    authority.issue(ends=timedelta(days=1)).write(keystore)
    settings = ("engine=noop", "workers=1", f"ssl.keystore.location={keystore}")
    scrape = {
        "scheme": "https",
        "tls_config": {"ca_file": str(authority.write(tmp_path / "ca.pem"))},
        "authorization": {"credentials_file": str(tmp_path / "token")},
    }
    with without_remains() as nodes:
        node = WatchedNode(
            tmp_path / "home", nodes, (*settings, "rest.authentication=token"), "https"
        )
        command = [sys.executable, "-m", "fairlead.runtime", "auth", "token", "add", "prometheus"]
        command += ["--role", "viewer", "--data-dir", str(node.folder / "data")]
        token = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        (tmp_path / "token").write_text(token)
        with running_prometheus(tmp_path / "p", [node.address], scrape=scrape) as prometheus:
            node.up()
            (alert,) = prometheus.fires("FairleadCertificateEnds")
            assert (alert["listener"], alert["severity"]) == ("rest", "page")
            authority.issue(ends=timedelta(days=90)).write(keystore)
            prometheus.ends("FairleadCertificateEnds")
            prometheus.ends("FairleadCertificateExpires")
            prometheus.comes("up == 1")
