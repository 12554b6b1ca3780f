"""Files of real Connect workers start a node as they are."""

from pathlib import Path

import pytest

from fairlead.runtime.config.connect_worker import describe_passed_over
from fairlead.runtime.config.load import Loaded, load_with_sources
from fairlead.runtime.config.sources import ConfigError

DISTRIBUTED = """
bootstrap.servers=localhost:9092
group.id=connect-cluster
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=true
value.converter.schemas.enable=true
offset.storage.topic=connect-offsets
offset.storage.replication.factor=1
config.storage.topic=connect-configs
config.storage.replication.factor=1
status.storage.topic=connect-status
status.storage.replication.factor=1
status.storage.partitions=5
offset.flush.interval.ms=10000
listeners=HTTP://:8083
rest.advertised.host.name=
rest.advertised.port=8083
rest.advertised.listener=
plugin.path=/usr/local/share/java,/usr/local/share/kafka/plugins
"""
"""What Kafka's connect-distributed.properties sets, its commented lines among it."""

STANDALONE = """
bootstrap.servers=localhost:9092
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
offset.storage.file.filename=/tmp/connect.offsets
offset.flush.interval.ms=10000
plugin.discovery=hybrid_warn
"""

OPERATOR = """
bootstrap.servers=my-kafka-bootstrap:9093
rest.port=8083
rest.advertised.host.name=my-connect-0.my-connect.svc
rest.advertised.port=8083
security.protocol=SASL_SSL
ssl.truststore.location=/tmp/kafka/cluster.truststore.p12
ssl.truststore.password=${strimzifile:/tmp/password:p}
ssl.truststore.type=PKCS12
ssl.endpoint.identification.algorithm=HTTPS
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
producer.sasl.mechanism=SCRAM-SHA-512
consumer.security.protocol=SASL_SSL
admin.security.protocol=SASL_SSL
admin.listeners=http://localhost:8083
config.providers=strimzienv
config.providers.strimzienv.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
config.providers.strimzienv.param.allowlist.pattern=.*
client.rack=zone-a
exactly.once.source.support=enabled
topic.creation.enable=true
connector.client.config.override.policy=All
metric.reporters=org.apache.kafka.common.metrics.JmxReporter
rest.extension.classes=org.example.BasicAuth
access.control.allow.origin=https://ui.example
access.control.allow.methods=GET,POST
response.http.headers.config=add X-XSS-Protection: 1; mode=block
scheduled.rebalance.max.delay.ms=60000
worker.unsync.backoff.ms=300000
confluent.license=
listeners.https.ssl.endpoint.identification.algorithm=
listeners.https.ssl.allow.dn.changes=false
"""
"""What an operator for Kubernetes, and sites that are hardened, write."""


def loaded(folder: Path, text: str) -> Loaded:
    file = folder / "worker.properties"
    file.write_text(text)
    return load_with_sources(file, {}, ())


@pytest.mark.parametrize(
    ("text", "passed_over"),
    [
        (
            DISTRIBUTED,
            [
                *("config.storage.topic", "config.storage.replication.factor"),
                *("status.storage.topic", "status.storage.replication.factor"),
                *("status.storage.partitions", "rest.advertised.listener"),
            ],
        ),
        (STANDALONE, ["offset.storage.file.filename", "plugin.discovery"]),
        (
            OPERATOR,
            [
                *("rest.port", "rest.extension.classes", "worker.unsync.backoff.ms"),
                "confluent.license",
                "listeners.https.ssl.endpoint.identification.algorithm",
                "listeners.https.ssl.allow.dn.changes",
            ],
        ),
    ],
    ids=["distributed", "standalone", "operator"],
)
def test_the_file_of_a_connect_worker_starts_a_node(
    tmp_path: Path, text: str, passed_over: list[str]
) -> None:
    given = loaded(tmp_path, text)
    assert list(given.passed_over) == passed_over
    keys = {line.partition("=")[0] for line in text.splitlines() if "=" in line}
    assert {*given.sources, *passed_over} == keys


def test_what_there_is_instead_is_told_once_for_all_its_keys(tmp_path: Path) -> None:
    assert describe_passed_over(loaded(tmp_path, DISTRIBUTED).passed_over) == [
        "these keys have no meaning here: config.storage.topic, config.storage.replication.factor,"
        " status.storage.topic, status.storage.replication.factor, status.storage.partitions,"
        " rest.advertised.listener",
        "instead of config.storage.*, status.storage.*: configs, states and offsets are in the"
        " event log below data.dir",
    ]
    lines = describe_passed_over(loaded(tmp_path, OPERATOR).passed_over)
    assert "instead of rest.port: listeners has the port" in lines


def test_a_setting_of_the_node_with_connects_name_is_the_nodes(tmp_path: Path) -> None:
    given = loaded(tmp_path, OPERATOR)
    config = given.config
    assert (config.client_rack, config.scheduled_rebalance_max_delay_ms) == ("zone-a", 60_000)
    assert config.place() == "my-connect-0.my-connect.svc:8083"
    assert config.admin_listeners == "http://localhost:8083"
    assert "admin.listeners" not in config.worker_properties()


def test_a_misspelt_key_of_a_nodes_own_is_still_refused_with_the_one_that_is_meant(
    tmp_path: Path,
) -> None:
    file = tmp_path / "worker.properties"
    file.write_text(f"{DISTRIBUTED}listners=http://:1\nssl.keystore.locaton=/a\n")
    with pytest.raises(ConfigError) as refused:
        load_with_sources(file, {}, ())
    assert refused.value.problems == (
        f"unknown setting 'listners' (from file {file}): did you mean listeners?",
        f"unknown setting 'ssl.keystore.locaton' (from file {file}): did you mean"
        " ssl.keystore.location?",
    )
