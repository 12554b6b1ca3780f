"""A node that is started with the file of a Connect worker: what it tells, and what it hides."""

import json
import re
import sys
import urllib.request
from pathlib import Path

import psutil
import pytest

from fairlead_tests.cluster.node import eventually
from fairlead_tests.installed.service import NOOP, running

pytestmark = pytest.mark.cluster
FAIRLEAD = (sys.executable, "-m", "fairlead.runtime")
WORKER = """
# A list of host/port pairs to use for establishing the initial connection to the Kafka cluster.
bootstrap.servers=one.example:9093,two.example:9093
group.id=connect-cluster

key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=io.confluent.connect.avro.AvroConverter
key.converter.schemas.enable=true
value.converter.schema.registry.url=https://registry.example
value.converter.basic.auth.credentials.source=USER_INFO
value.converter.basic.auth.user.info=ann:hunter2

offset.storage.topic=connect-offsets
offset.storage.replication.factor=3
offset.storage.partitions=25
config.storage.topic=connect-configs
config.storage.replication.factor=3
status.storage.topic=connect-status
status.storage.replication.factor=3
offset.flush.interval.ms=10000
exactly.once.source.support=enabled
plugin.discovery=hybrid_warn

security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username="connect" \\
    password="hunter2";
ssl.truststore.location=/var/private/ssl/kafka.client.truststore.jks
ssl.truststore.password=hunter2
ssl.key.password=hunter2
ssl.endpoint.identification.algorithm=https
producer.security.protocol=SASL_SSL
producer.sasl.jaas.config=org.example.Login required password="hunter2";
producer.compression.type=zstd
consumer.ssl.keystore.key=hunter2
admin.sasl.oauthbearer.client.credentials.client.secret=hunter2

config.providers=file,vault
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
config.providers.vault.class=io.example.VaultConfigProvider
config.providers.vault.param.token=hunter2
config.providers.vault.param.uri=https://ann:hunter2@vault.example
connector.client.config.override.policy=Principal
metric.reporters=org.apache.kafka.common.metrics.JmxReporter
rest.extension.classes=org.example.BasicAuth
rest.advertised.listener=http
inter.worker.key.ttl.ms=60000
worker.sync.timeout.ms=3000
scheduled.rebalance.max.delay.ms=300000
"""
SECRET = "hunter2"
TOLD = [
    "of worker.properties, these keys have no meaning here: config.storage.topic,"
    " config.storage.replication.factor, status.storage.topic, status.storage.replication.factor,"
    " plugin.discovery, rest.extension.classes, rest.advertised.listener, inter.worker.key.ttl.ms,"
    " worker.sync.timeout.ms",
    "instead of config.storage.*, status.storage.*: configs, states and offsets are in the event"
    " log below data.dir",
    "instead of plugin.discovery: a plugin is scanned once, when it is added or has changed",
    "instead of rest.extension.classes: rest.authentication says who may call",
]


def test_a_workers_file_starts_a_node_which_shows_its_secrets_nowhere(tmp_path: Path) -> None:
    (tmp_path / "worker.properties").write_text(WORKER)
    output = tmp_path / "output"
    command = (*FAIRLEAD, "up", *NOOP, "--data-dir", "data", "--config", "worker.properties")
    with running(command, tmp_path) as node:
        eventually(lambda: " is up with " in output.read_text(), "the node is up")
        lines = output.read_text().splitlines()
        assert lines[: len(TOLD)] == [f"fairlead: {each}" for each in TOLD]
        (url,) = re.findall(r"REST on (http://[\d.:]+)", output.read_text())
        with urllib.request.urlopen(f"{url}/settings", timeout=120) as answer:
            text = answer.read().decode()
        commands = [" ".join(each.cmdline()) for each in psutil.Process(node.pid).children(True)]
    settings = {each["name"]: each["value"] for each in json.loads(text)["settings"]}
    hidden = {line.partition("=")[0] for line in WORKER.splitlines() if SECRET in line}
    assert {settings[key] for key in (hidden - {"    password"}) | {"sasl.jaas.config"}} == {
        "********"
    }
    assert settings["producer.compression.type"] == "zstd"
    written = [each.read_bytes() for each in (tmp_path / "data").rglob("*") if each.is_file()]
    told = [text.encode(), output.read_bytes(), *(each.encode() for each in commands)]
    assert [each for each in (*written, *told) if SECRET.encode() in each] == []
