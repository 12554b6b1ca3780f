"""The whole REST interface over the real logs of one group; only the actors are missing."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fairlead.projections.metrics.exposition import Exposition
from fairlead.projections.metrics.processes import RequestMetrics
from fairlead.runtime.config.secrets import Vault
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.commands.service import Service
from fairlead.runtime.interfaces.rest.reading.logs import NodeLogs
from fairlead.runtime.pipeline.connectors.plugins import Plugin, Plugins
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead_tests.rest.client import Client
from fairlead_tests.rest.gateway import FakeGateway
from fairlead_tests.rest.group_process import GroupProcess, running_group_process
from fairlead_tests.rest.plugins import Broken, Locked

KEY = bytes(range(32))


@dataclass
class RestApi:
    """A data folder with one group, its coordinator, and the REST interface over it."""

    data_dir: Path
    group: GroupProcess
    gateway: FakeGateway
    service: Service
    client: Client


def service_over(data_dir: Path, gateway: FakeGateway) -> Service:
    requests = RequestMetrics()
    plugins = Plugins((Plugin(SparkPipeline), Plugin(Locked), Plugin(Broken)), {})
    return Service(
        group_id="connect",
        cluster_id="a-cluster",
        version="1.2.3",
        logs=NodeLogs(data_dir),
        commands=gateway,
        find_plugins=lambda: plugins,
        vault=Vault(KEY),
        requests=requests,
        exposition=Exposition("1.2.3", requests),
        log_folder=data_dir,
        run_folder=data_dir / "run",
    )


@pytest.fixture(scope="session")
def group_process() -> Iterator[GroupProcess]:
    with running_group_process() as process:
        yield process


@pytest.fixture
def api(tmp_path: Path, group_process: GroupProcess) -> Iterator[RestApi]:
    with group_process.serving(tmp_path / "groups" / "connect") as group:
        gateway = FakeGateway(group)
        service = service_over(tmp_path, gateway)
        yield RestApi(tmp_path, group, gateway, service, Client(make_app(service)))
        service.logs.close()


@pytest.fixture
def client(api: RestApi) -> Client:
    return api.client
