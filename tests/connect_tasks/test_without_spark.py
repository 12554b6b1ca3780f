# pyright: basic
"""A node whose connectors are all of Kafka Connect's own classes starts no JVM of Spark."""

from pathlib import Path

import psutil
import pytest

from fairlead.runtime.cluster.node_files import OFF, UP, read_engines
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.plugins.connect_node import ONE_REPLICA, ConnectNode, connect_node, until
from fairlead_tests.plugins.installed import CONNECT_FILE, installation, plugin_path

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.soak,
    pytest.mark.xdist_group("connect_tasks"),
]


def _engine(node: ConnectNode) -> str:
    return read_engines(node.data_dir / "run")[""].state


def _jvms_of_spark(node: ConnectNode) -> list[int]:
    return [each.pid for each in node.processes("org.apache.spark")]


def test_spark_is_started_when_a_connector_needs_it(broker: Broker, tmp_path: Path) -> None:
    installation()
    plugins = plugin_path(tmp_path / "plugins", CONNECT_FILE)
    source = tmp_path / "in.txt"
    source.write_text("a\n")
    read = {"connector.class": "FileStreamSource", "file": str(source), "topic": "no.spark"}
    with connect_node(tmp_path / "node", broker.bootstrap, plugins) as node:
        node.create("no-spark", {**read, **ONE_REPLICA})
    with connect_node(tmp_path / "node", broker.bootstrap, plugins) as node:
        node.runs("no-spark")
        assert (_engine(node), _jvms_of_spark(node)) == (OFF, [])
        assert "fairlead_engine_up{" not in node.rest.get("/metrics").text
        assert "JVM" not in node.rest.get("/health").text
        landing = tmp_path / "landing"
        landing.mkdir()
        (landing / "one.csv").write_text("id,name\n1,x\n")
        config = {
            "connector.class": "SparkPipeline",
            "source.type": "files",
            "source.path": str(landing),
            "source.format": "csv",
            "sink.type": "files",
            "sink.path": str(tmp_path / "copy"),
            "sink.format": "parquet",
            "transforms": "more",
            "transforms.more.type": "sql",
            "transforms.more.query": "SELECT *, 1 AS one FROM input",
        }
        node.create("needs-spark", config)
        until(lambda: _engine(node) == UP, "the engine is up")
        until(lambda: [*(tmp_path / "copy").glob("*.parquet")], "the rows have arrived")
        assert all(map(psutil.pid_exists, _jvms_of_spark(node)))
