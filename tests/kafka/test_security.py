# pyright: basic, reportPrivateImportUsage=false
"""TLS, SCRAM and ACLs against the broker: who is let in, and what is said to who is not."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.connectors import pipeline_keys as keys
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.spi.context import ExternalAccess
from fairlead.runtime.pipeline.spi.errors import SinkAway, SourceAway
from fairlead.runtime.pipeline.stores.kafka.cluster import LastError
from fairlead_tests.connectors.pipes import sink_of, source_of
from fairlead_tests.connectors.publish_once import FIRST, SinkLog
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.certificates import Authority
from fairlead_tests.kafka.pipes import LIMIT, Reading, sink_config, source_config
from fairlead_tests.kafka.topics import Topics

KIND = keys.SOURCE_TYPES.find("kafka")
PASSWORD = "open sesame"
SCRAM = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512"}

READER = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "reader",
    "sasl_password": PASSWORD,
}


def login(user: str, password: str) -> str:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return f'{module} required username="{user}" password="{password}";'


@pytest.fixture(scope="module")
def user(broker: Broker) -> str:
    """A user by SCRAM-SHA-512, with the password `PASSWORD`."""
    broker.let_in("scrambled", PASSWORD)
    return "scrambled"


def errors(bootstrap: str, topic: str, **given: str) -> Any:
    return KIND.probe(source_config(bootstrap, topics=topic, **given), ExternalAccess()).errors


def refusal(bootstrap: str, topic: str, **given: str) -> str:
    """Return why a task ends at once, for good."""
    config = source_config(bootstrap, topics=topic, **given)
    share = {"task.kafka.partitions": f"{topic}-0"}
    source = source_of(config | share, Resource("orders", 0))
    with pytest.raises(ConfigInvalid) as told:
        source.plan({}, LIMIT)
    return str(told.value)


def test_a_user_by_scram_reads_and_writes_over_tls_with_stores_of_javas_clients(
    broker: Broker, topics: Topics, topic: str, user: str, tmp_path: Path
) -> None:
    store = str(broker.authority.truststore(PASSWORD))
    trust = {"ssl_truststore_location": store, "ssl_truststore_type": "PKCS12"}
    known = {**SCRAM, "sasl_jaas_config": login(user, PASSWORD), **trust}
    config = sink_config(broker.encrypted, tmp_path, topic=topic, value_converter="string", **known)
    log = SinkLog(Resource(topic, 0))
    sink = sink_of(config | {"sink.ssl.truststore.password": PASSWORD}, log.task)
    log.acquire(sink, FIRST)
    log.write(sink, pa.table({"_value": ["a"]}))
    sink.close()
    assert topics.values(topic) == ["a"]
    pem = {"ssl_truststore_certificates": broker.authority.path.read_text()}
    parts = {"sasl_username": user, "sasl_password": PASSWORD}
    reading = Reading(source_config(broker.encrypted, topics=topic, **SCRAM, **parts, **pem))
    assert reading.read(1)["_value"].to_pylist() == ["a"]
    reading.source.close()


def test_a_wrong_password_and_a_strange_certificate_end_the_task_with_a_reason(
    broker: Broker, topic: str, user: str, tmp_path: Path
) -> None:
    trusted = {"ssl_truststore_location": str(broker.authority.path)}
    wrong = {**SCRAM, "sasl_jaas_config": login(user, "guess again")}
    told = refusal(broker.encrypted, topic, **wrong, **trusted)
    assert "Authentication failed" in told
    assert errors(broker.encrypted, topic, **wrong, **trusted).keys() == {
        "source.security.protocol"
    }
    strange = {"ssl_truststore_location": str(Authority(tmp_path).path)}
    right = {**SCRAM, "sasl_jaas_config": login(user, PASSWORD)}
    untrusted = refusal(broker.encrypted, topic, **right, **strange)
    assert "certificate verify failed" in untrusted
    for each in (told, untrusted):
        assert each.startswith(broker.encrypted)
        assert PASSWORD not in each
        assert "guess" not in each


def test_a_strange_certificate_is_the_configs_fault_however_early_it_is_seen() -> None:
    told = "ssl://broker:9093/bootstrap: error:0A000086:SSL routines::certificate verify failed"
    for code in (KafkaError._SSL, KafkaError._TRANSPORT):
        trouble = LastError()
        trouble(KafkaError(code, told))
        trouble(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
        late = KafkaError(KafkaError._TIMED_OUT)
        assert isinstance(trouble.reason(late, "broker:9093", SourceAway), ConfigInvalid)
    trouble(KafkaError(KafkaError._TRANSPORT, "Connection refused"))
    assert isinstance(trouble.reason(late, "broker:9093", SourceAway), SourceAway)


def test_a_client_shows_its_certificate_from_a_file_or_from_the_config(
    broker: Broker, topic: str
) -> None:
    pem = broker.authority.sign("client")
    private, _, rest = pem.read_text().partition("-----BEGIN CERTIFICATE")
    tls = {"security_protocol": "SSL", "ssl_truststore_location": str(broker.authority.path)}
    assert errors(broker.mutual, topic, **tls, ssl_keystore_location=str(pem)) == {}
    inline = {
        "ssl_keystore_key": private,
        "ssl_keystore_certificate_chain": f"-----BEGIN CERTIFICATE{rest}",
    }
    assert errors(broker.mutual, topic, **tls, **inline) == {}
    (told,) = errors(broker.mutual, topic, **tls, ssl_keystore_key="no secret").values()
    assert "no secret" not in told


def test_stores_that_cannot_be_used_are_told_by_their_key(broker: Broker, tmp_path: Path) -> None:
    jks = tmp_path / "store.jks"
    jks.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    locked = broker.authority.truststore(PASSWORD)
    key = "source.ssl.truststore.location"
    for path, why in (
        (jks, "is a JKS store, which only Java can read: convert it to PKCS12 by keytool"),
        (tmp_path / "none", "cannot be read: no such file or directory"),
        (locked, "or source.ssl.truststore.password does not open it"),
    ):
        found = errors(broker.encrypted, "t", **SCRAM, ssl_truststore_location=str(path))
        (told,) = found.values()
        assert told.startswith(f"{key}: {path} ")
        assert why in told


def test_keys_of_security_are_held_together_and_secrets_have_keys_of_their_own() -> None:
    config = source_config("127.0.0.1:1", topics="t", security_protocol="SASL_SSL")
    (told,) = SparkPipeline.validate(config).errors["source.sasl.mechanism"]
    assert "SASL_SSL needs one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512" in told
    override = "source.consumer.override.ssl.keystore.key"
    (told,) = SparkPipeline.validate(config | {override: "x"}).errors["source.bootstrap.servers"]
    assert "set source.ssl.keystore.key instead" in told
    javas = source_config("127.0.0.1:1", topics="t") | {
        "source.consumer.override.fetch.max.wait.ms": "100"
    }
    assert KIND.probe(javas, ExternalAccess()).errors == {}


def test_a_topic_that_the_user_may_not_read_is_waited_for_with_what_the_broker_says(
    broker: Broker, topics: Topics, topic: str
) -> None:
    deny(broker, topic, AclOperation.READ)
    topics.write(topic, ["a"])
    reading = Reading(source_config(broker.with_password, topics=topic, **READER))
    with pytest.raises(SourceAway, match=rf"topic {topic}: .*authorization failed"):
        reading.plan()
    reading.source.close()


def test_a_topic_that_the_user_may_not_write_is_waited_for_with_what_the_broker_says(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    deny(broker, topic, AclOperation.WRITE)
    given = {**READER, "value_converter": "string"}
    config = sink_config(broker.with_password, tmp_path, topic=topic, **given)
    log = SinkLog(Resource(topic, 0))
    sink = sink_of(config, log.task)
    log.acquire(sink, FIRST)
    with pytest.raises(SinkAway, match="authorization failed"):
        log.write(sink, pa.table({"_value": ["a"]}))
    sink.close()


def test_the_rights_that_the_page_of_kafka_names_are_enough_to_write_and_to_read(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    task, may = Resource(topic, 0), AclOperation
    transactions = f"fairlead.{task}"
    rights = [
        (ResourceType.TOPIC, topic, may.WRITE),
        (ResourceType.TOPIC, topic, may.READ),
        (ResourceType.TOPIC, topic, may.DESCRIBE_CONFIGS),
        (ResourceType.TRANSACTIONAL_ID, transactions, may.WRITE),
        (ResourceType.GROUP, transactions, may.READ),
    ]
    rules = [rule("User:reader", *each) for each in rights]
    others = rule("User:nobody", ResourceType.BROKER, "kafka-cluster", may.ALL)
    with allowed(broker, *rules, others):  # what anybody has rights on, others may not use
        given = {**READER, "value_converter": "string"}
        config = sink_config(broker.with_password, tmp_path, topic=topic, **given)
        log = SinkLog(task)
        for value in "ab":
            sink = sink_of(config, log.task)
            log.acquire(sink, FIRST)
            log.write(sink, pa.table({"_value": [value]}))
            sink.close()
    with allowed(broker, rule("User:reader", ResourceType.TOPIC, topic, may.READ), others):
        reading = Reading(source_config(broker.with_password, topics=topic, **READER))
        assert reading.read(2)["_value"].to_pylist() == ["a", "b"]
        reading.source.close()


def rule(
    who: str,
    kind: ResourceType,
    name: str,
    what: AclOperation,
    answer: AclPermissionType = AclPermissionType.ALLOW,
) -> AclBinding:
    return AclBinding(kind, name, ResourcePatternType.LITERAL, who, "*", what, answer)


@contextmanager
def allowed(broker: Broker, *rules: AclBinding) -> Generator[None]:
    """Have these rules in the context."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for answer in admin.create_acls([*rules]).values():
        answer.result(60)
    try:
        yield
    finally:
        filters = [
            AclBindingFilter(
                *(each.restype, each.name, each.resource_pattern_type, each.principal, each.host),
                *(each.operation, each.permission_type),
            )
            for each in rules
        ]
        for answer in admin.delete_acls(filters).values():
            answer.result(60)


def deny(broker: Broker, topic: str, operation: AclOperation) -> None:
    """Let everybody do everything with a topic, but for one thing that `reader` may not do."""
    found = [
        rule("User:*", ResourceType.TOPIC, topic, AclOperation.ALL),
        rule("User:reader", ResourceType.TOPIC, topic, operation, AclPermissionType.DENY),
    ]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for answer in admin.create_acls(found).values():
        answer.result(60)


def test_a_shadow_group_is_told_what_counts_and_nothing_is_read_from_it(
    topics: Topics, topic: str
) -> None:
    topics.write(topic, ["a", "b"])
    shadow = f"{topic}.shadow"
    reading = Reading(source_config(topics.bootstrap, topics=topic, group_id_shadow=shadow))
    assert reading.read(2)["_value"].to_pylist() == ["a", "b"]
    topics.wait_for_offset(shadow, topic, 2)
    reading.offsets.clear()
    reading.again()
    assert reading.read(2)["_value"].to_pylist() == ["a", "b"]
    reading.source.close()
