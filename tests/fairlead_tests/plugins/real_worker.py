"""A real distributed worker of Kafka Connect, on the same jars and properties as a plugin host."""

import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from fairlead.runtime.pipeline.plugins.setup import Installation
from fairlead_tests.java_peer import QUICK
from fairlead_tests.kafka.broker import free_ports
from fairlead_tests.kafka_clients.connect import until
from fairlead_tests.plugins.installed import java_here

SECONDS = 120.0


def topics_of(group: str) -> Mapping[str, str]:
    """Return the properties that a worker has about the topics of its group."""
    kinds = ("config", "offset", "status")
    topics = {f"{kind}.storage.topic": f"{group}-{kind}" for kind in kinds}
    replicas = {f"{kind}.storage.replication.factor": "1" for kind in kinds}
    partitions = {f"{kind}.storage.partitions": "1" for kind in kinds[1:]}
    return {**topics, **replicas, **partitions}


@contextmanager
def real_worker(
    installation: Installation, properties: Mapping[str, str], folder: Path
) -> Generator[tuple[httpx.Client, int]]:
    """Yield a client of its REST interface, and its process id."""
    (port,) = free_ports(1)
    listener = {"listeners": f"http://127.0.0.1:{port}", "rest.advertised.host.name": "127.0.0.1"}
    lines = [f"{key}={value}\n" for key, value in {**properties, **listener}.items()]
    (folder / "worker.properties").write_text("".join(lines))
    jars = (str(each) for each in (installation.folder / "connect").glob("*.jar"))
    command = [str(java_here().command), "-Xmx512m", *QUICK, "-cp", ":".join(jars)]
    command += ["org.apache.kafka.connect.cli.ConnectDistributed"]
    command += [str(folder / "worker.properties")]
    with (
        (folder / "worker.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=SECONDS) as client,
    ):
        try:
            until(lambda: process.poll() is not None or _serves(client), "the worker serves")
            assert process.poll() is None, (folder / "worker.log").read_text()[-2000:]
            yield client, process.pid
        finally:
            process.kill()


def _serves(client: httpx.Client) -> bool:
    try:
        return client.get("/connectors").is_success  # its herder answers, and has the group
    except httpx.TransportError:
        return False
