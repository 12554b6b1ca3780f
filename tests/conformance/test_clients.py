"""Clients that others wrote for Kafka Connect work unchanged; all of them with one node."""
# pyright: basic

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fairlead_tests.cluster.node import Node, eventually
from fairlead_tests.cluster.remains import launch_fork, without_remains
from fairlead_tests.conformance.clients import NoClient, install, play

pytestmark = pytest.mark.cluster

REQUESTS = ("requests==2.32.3", "urllib3==2.2.3", "certifi", "idna", "charset-normalizer<4")
OLD_REQUESTS = ("requests==2.27.1", "urllib3==1.26.9", "certifi", "idna", "charset-normalizer<2.1")
CLASS = "SparkPipeline"
FULL_CLASS = "fairlead.runtime.connectors.spark_pipeline.SparkPipeline"
LIFE = ["RUNNING", "PAUSED", "RUNNING", "RUNNING"]
"""A connector's states: created, paused, resumed, restarted."""

KAFKA_CONNECT_PY = """
from kafka_connect import KafkaConnect
connect = KafkaConnect(url)
state = lambda: connect.get_connector_status(name)["connector"]["state"]
told["plugins"] = [each["class"] for each in connect.list_connector_plugins()]
named = {"name": name, **config}
told["errors"] = connect.validate_connector_config("SparkPipeline", named)["error_count"]
told["created"] = connect.create_connector({"name": name, "config": config})["name"]
until(lambda: [each["state"] for each in connect.get_connector_status(name)["tasks"]], ["RUNNING"])
told["life"] = [state()]
connect.pause_connector(name)
until(state, "PAUSED")
told["life"].append(state())
connect.resume_connector(name)
until(state, "RUNNING")
told["life"].append(state())
connect.restart_connector(name, include_tasks=True)
until(lambda: connect.get_connector_task_status(name, 0)["state"], "RUNNING")
connect.restart_connector_task(name, 0)
until(state, "RUNNING")
told["life"].append(state())
told["config"] = connect.update_connector(name, {**config, "mine": "1"})["config"]["mine"]
told["listed"] = list(connect.list_connectors(expand="status", pattern=name))
told["topics"] = connect.list_connector_topics(name)
connect.stop_connector(name)
until(state, "STOPPED")
told["tasks"] = connect.list_connector_tasks(name)
connect.delete_connector(name)
told["left"] = connect.list_connectors(pattern=name)
"""

KAFKACONNECT = """
from kafkaconnect.connect import Connect
connect = Connect(url)
state = lambda: json.loads(connect.status(name))["connector"]["state"]
told["plugins"] = [each["class"] for each in json.loads(connect.plugins())]
told["errors"] = json.loads(connect.validate("SparkPipeline", json.dumps(config)))["error_count"]
named = json.dumps({"name": name, **config})
told["created"] = json.loads(connect.validate_and_create(name, named))["name"]
until(lambda: [each["state"] for each in json.loads(connect.status(name))["tasks"]], ["RUNNING"])
told["life"] = [state()]
connect.pause(name)
until(state, "PAUSED")
told["life"].append(state())
connect.resume(name)
until(state, "RUNNING")
told["life"].append(state())
connect.restart(name)
until(state, "RUNNING")
told["life"].append(state())
told["listed"] = [each for each in json.loads(connect.list()) if each == name]
told["tasks"] = [each["id"]["task"] for each in json.loads(connect.tasks(name))]
told["removed"] = connect.remove(name)
told["left"] = connect.info(name).removeprefix(f"Resource {url}/")
"""

KAFKA_CONNECT_API = """
from kafka_connect_api.kafka_connect_api import Api, Cluster, Connector
cluster = Cluster(Api(url=url))
connector = Connector(cluster, name)
told["version"] = type(cluster.version).__name__
connector.config = config
told["exists"] = connector.exists()
until(lambda: [each.state for each in connector.tasks], ["RUNNING"])
told["life"] = [connector.state]
connector.pause()
until(lambda: connector.state, "PAUSED")
told["life"].append(connector.state)
connector.resume()
until(lambda: connector.state, "RUNNING")
told["life"].append(connector.state)
connector.restart()
connector.cycle_connector()
until(lambda: connector.state, "RUNNING")
told["life"].append(connector.state)
told["class"] = connector.connector_class
told["listed"] = name in cluster.connectors
logger = "fairlead.actors.transport.actor"
told["changed"] = [cluster.set_logger_log_level(logger, each) for each in ("ERROR", "INFO")]
told["root"] = cluster.root_logger["level"]
connector.delete()
told["left"] = [each for each in cluster.connectors if each == name]
"""

KAFKA_CONNECT_CLI = """
from kafka_connect import kafka_connect as connect
state = lambda: connect.get_connector(url, name)["state"]
tasks = lambda: [each["state"] for each in connect.list_connector_tasks(url, name)]
told["created"] = connect.create_connector(url, name, config)["name"]
until(tasks, ["RUNNING"])
told["life"] = [state()]
connect.pause_connector(url, name)
until(lambda: (state(), tasks()), ("PAUSED", ["PAUSED"]))
told["life"].append(state())
connect.resume_connector(url, name)
until(lambda: (state(), tasks()), ("RUNNING", ["RUNNING"]))
told["life"].append(state())
connect.restart_connector(url, name)
connect.restart_connector_task(url, name, 0)
until(state, "RUNNING")
told["life"].append(state())
told["config"] = connect.update_connector(url, name, {**config, "mine": "1"})["config"]["mine"]
until(lambda: connect.health_check(url), 0)
told["listed"] = [each["connector"] for each in connect.list_connectors(url)]
connect.delete_all_connectors(url, name)
told["left"] = connect.list_connectors(url)
"""

HEALTHCHECK = """
import requests
from kafka_connect_healthcheck.health import Health
health = Health(url, None, ["FAILED"], "", 0, ["CONNECTOR", "TASK"])
told["empty"] = health.get_health_result()["healthy"]
requests.post(f"{url}/connectors", json={"name": name, "config": config}).raise_for_status()
paused = Health(url, None, ["PAUSED"], "", 0, ["CONNECTOR", "TASK"])
tasks = lambda: [each["state"] for each in health.get_connector_health(name)["tasks"]]
until(tasks, ["RUNNING"])
requests.put(f"{url}/connectors/{name}/pause").raise_for_status()
failures = lambda: [each["type"] for each in paused.get_health_result()["failures"]]
until(failures, ["connector", "task"])
told["healthy"] = [health.get_health_result()["healthy"], paused.get_health_result()["healthy"]]
requests.delete(f"{url}/connectors/{name}").raise_for_status()
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The REST interface of a node whose tasks do nothing."""
    home = tmp_path_factory.mktemp("node")
    with without_remains() as nodes:
        settings = (f"data.dir={home / 'data'}", "workers=1", "listeners=http://127.0.0.1:0")
        module = "fairlead_tests.cluster.up_process"
        process = launch_fork(home, module, "up", *settings, "engine=noop")
        nodes.append(Node(home, process))
        process.stdin.close()
        process.stdout.close()
        eventually(lambda: " is up with " in (home / "stderr").read_text(), "the node is up")
        yield json.loads((home / "data" / "run" / "node.json").read_text())["rest"]


@pytest.mark.parametrize(
    ("requirements", "script", "told"),
    [
        (
            ("kafka-connect-py==1.0.0", "click<9", *REQUESTS),
            KAFKA_CONNECT_PY,
            {
                "plugins": [FULL_CLASS, "fairlead.MemberConnector"],
                "errors": 0,
                "created": "c",
                "life": LIFE,
                "config": "1",
                "listed": ["c"],
                "topics": {"c": {"topics": []}},
                "tasks": [],
                "left": [],
            },
        ),
        pytest.param(
            ("kafkaconnect==1.3.1", *REQUESTS),
            KAFKACONNECT,
            {
                "plugins": [FULL_CLASS, "fairlead.MemberConnector"],
                "errors": 1,
                "created": "c",
                "life": LIFE,
                "listed": ["c"],
                "tasks": [0],
                "removed": "",
                "left": "connectors/c not found.",
            },
            marks=pytest.mark.soak,
        ),
        (
            ("kafka-connect-api==0.5.10", *REQUESTS),
            KAFKA_CONNECT_API,
            {
                "version": "str",
                "exists": True,
                "life": LIFE,
                "class": CLASS,
                "listed": True,
                "changed": [["fairlead.actors.transport.actor"]] * 2,
                "root": "INFO",
                "left": [],
            },
        ),
        pytest.param(
            ("kafka-connect-cli==0.2.5", *OLD_REQUESTS),
            KAFKA_CONNECT_CLI,
            {"created": "c", "life": LIFE, "config": "1", "listed": ["c"], "left": []},
            marks=pytest.mark.soak,
        ),
        pytest.param(
            ("kafka-connect-healthcheck==0.3.0", *REQUESTS),
            HEALTHCHECK,
            {"empty": True, "healthy": [True, False]},
            marks=pytest.mark.soak,
        ),
    ],
    ids=lambda each: each[0].partition("==")[0] if isinstance(each, tuple) else "",
)
def test_an_unchanged_client_plays_the_life_of_a_connector(
    url: str, tmp_path: Path, requirements: Sequence[str], script: str, told: dict[str, object]
) -> None:
    try:
        installed = install(*requirements)
    except NoClient as error:
        pytest.skip(str(error))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("n\n1\n")
    config = {"connector.class": CLASS, "source.format": "csv", "sink.format": "json"}
    config |= {"source.path": f"{tmp_path}/in", "sink.path": f"{tmp_path}/out"}
    assert json.loads(play(installed, script, url, "c", json.dumps(config))) == told
