# pyright: basic
"""What `source.type=kafka` does before a task reads: looks, splits, judges offsets."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from fairlead.events.commits import Document
from fairlead.runtime.pipeline.connectors import pipeline_keys as keys
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.spi.context import AccessLimits, ExternalAccess, ProbeResult
from fairlead.runtime.pipeline.spi.errors import NotReady, OffsetRefused, SourceAway
from fairlead.runtime.pipeline.spi.offsets import SeekEnd
from fairlead.runtime.pipeline.stores.kafka.connection import client_settings
from fairlead.runtime.pipeline.stores.kafka.overrides import ALLOWED
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.pipes import Reading, source_config, source_type
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.no_plain_files import no_plain_files

NOWHERE = "127.0.0.1:1"
KIND = keys.SOURCE_TYPES.find("kafka")


def look(bootstrap: str, **given: str) -> ProbeResult:
    return KIND.probe(source_config(bootstrap, **given), ExternalAccess())


def due(kind: Any) -> bool:
    """Tell whether it asks to be split again, were it time to look."""
    kind._look_at = 0.0
    return bool(kind.needs_reconfiguration())


def test_partitions_are_dealt_to_tasks_and_new_ones_are_found(
    broker: Broker, topics: Topics
) -> None:
    topics.make("dealt.a", 3)
    kind = source_type(source_config(broker.bootstrap, topics_regex="dealt[.].*"))
    shares = [each["task.kafka.partitions"] for each in kind.split(2)]
    assert shares == ["dealt.a-0,dealt.a-2", "dealt.a-1"]
    assert not due(kind)
    topics.widen("dealt.a", 4)
    topics.make("dealt.b")
    assert due(kind)
    shares = [each["task.kafka.partitions"] for each in kind.split(9)]
    assert shares == ["dealt.a-0", "dealt.a-1", "dealt.a-2", "dealt.a-3", "dealt.b-0"]


def test_a_topic_that_is_not_there_is_waited_for(broker: Broker) -> None:
    kind = source_type(source_config(broker.bootstrap, topics="none,nil"))
    with pytest.raises(NotReady, match="there is no topic none,nil"):
        kind.split(1)
    (told,) = look(broker.bootstrap, topics="none,nil").warnings
    assert told == "source.topics: nil, none does not exist: the connector waits for it"
    (told,) = look(broker.bootstrap, topics_regex="n.ne").warnings
    assert told == "source.topics.regex: no topic matches yet: the connector waits for one"


def test_a_broker_that_does_not_answer_is_told_with_the_reason() -> None:
    began = time.monotonic()
    (told,) = look(NOWHERE, topics="t").warnings
    assert told.startswith(f"source.bootstrap.servers: {NOWHERE}: ")
    assert "Connection refused" in told
    assert time.monotonic() - began < 60


def test_a_password_that_is_wrong_is_an_error_that_does_not_tell_it(broker: Broker) -> None:
    given = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "topics": "none"}
    user = {"sasl_username": "reader", "sasl_password": "guess again"}
    told = look(broker.with_password, **given, **user).errors["source.security.protocol"]
    assert "Authentication failed" in told
    assert "guess" not in told
    right = look(broker.with_password, **given, sasl_username="reader", sasl_password="open sesame")
    assert right.errors == {}
    login = 'x.PlainLoginModule required username="reader" password="open sesame";'
    assert look(broker.with_password, **given, sasl_jaas_config=login).errors == {}


def test_secrets_are_passwords_and_no_setting_runs_a_program_or_takes_over() -> None:
    defined = KIND.keys()
    secrets = {each.name for each in defined if each.type.value == "PASSWORD"}
    registry = (".schema.registry.basic.auth.user.info", ".basic.auth.user.info")
    assert secrets == {
        "source.sasl.password",
        "source.sasl.jaas.config",
        "source.ssl.key.password",
        "source.ssl.truststore.password",
        "source.ssl.keystore.password",
        "source.ssl.keystore.key",
        *(f"source.{side}.converter{name}" for side in ("key", "value") for name in registry),
    }
    taken = {"fetch.max.bytes": "1000", "client.id": "me", "receive.buffer.bytes": "65536"}
    config = source_config(NOWHERE, topics="t")
    assert complaints_of(config, taken) == {}


def complaints_of(config: dict[str, str], overrides: dict[str, str]) -> Mapping[str, str]:
    """Return the errors of settings of librdkafka's, by their names."""
    prefix = "source.consumer.override."
    more = {f"{prefix}{name}": value for name, value in overrides.items()}
    told = SparkPipeline.validate(config | more).errors
    try:
        assert client_settings("source", config | more, prefix) is not None
        found = {}
    except ConfigInvalid as error:  # as a worker finds it in an old log
        found = dict(each.split(": ", 1) for each in str(error).split("; "))
    assert "; ".join(f"{key} {why}" for key, why in found.items()) == "".join(
        told.get("source.bootstrap.servers", ())
    )
    return {key.removeprefix(prefix): why for key, why in found.items()}


@pytest.mark.parametrize(
    "name",
    [
        "plugin.library.paths",
        "ssl.engine.location",
        "ssl.providers",
        "ssl.crl.location",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.keytab",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.config",
        "group.id",
        "debug",
        "log_level",
        "log.queue",
        "statistics.interval.ms",
        "ssl.key.pem",
        "ssl.ca.pem",
        "ssl_ca",
        "request.required.acks",
        "enable.idempotence",
        "default.topic.config",
        "open_cb",
        "a.setting.of.later",
    ],
)
def test_a_setting_of_librdkafka_that_is_not_on_the_list_is_refused(name: str) -> None:
    config = source_config(NOWHERE, topics="t")
    refused = "is none of the settings that a config may make: leave it out"
    assert complaints_of(config, {name: "x"}) == {name: refused}


@pytest.mark.parametrize("value", ["2097151", "0x7fffffff", "-1", "999999999999", "x"])
def test_a_setting_that_takes_memory_has_a_maximum(value: str) -> None:
    config = source_config(NOWHERE, topics="t")
    told = complaints_of(config, {"queued.max.messages.kbytes": value})
    most = "must be a number, at most 262144: all tasks of a worker share its memory"
    assert told == {"queued.max.messages.kbytes": most}


def test_each_setting_that_is_taken_is_one_of_librdkafka_and_has_a_reason() -> None:
    words = {"broker.address.family": "any", "client.dns.lookup": "use_all_dns_ips"}
    words |= {"compression.codec": "none", "compression.type": "none", "partitioner": "random"}
    words |= dict.fromkeys(("ssl.cipher.suites",), "ALL")
    for name, why in ALLOWED.items():
        value = words.get(name, "true" if "enable" in name or "disable" in name else "5")
        told = ""
        try:
            Producer({name: value, "log_level": 0})
        except KafkaException as error:  # only the value may be wrong
            told = str(error)
        assert why
        assert "No such configuration property" not in told


FILES = (
    "source.ssl.ca.location",
    "source.ssl.certificate.location",
    "source.ssl.key.location",
    "source.ssl.truststore.location",
    "source.ssl.keystore.location",
)


@pytest.mark.parametrize("key", FILES)
def test_a_certificate_or_a_store_is_a_plain_file_within_what_a_connector_may_reach(
    key: str, tmp_path: Path
) -> None:
    config = source_config(NOWHERE, topics="t")
    for path, why in no_plain_files(tmp_path).items():
        told = f"{key}: {path} cannot be read: {why}"
        with pytest.raises(ConfigInvalid) as caught:
            client_settings("source", config | {key: str(path)}, "source.consumer.override.")
        assert str(caught.value) == told
        assert KIND.probe(config | {key: str(path)}, ExternalAccess()).errors == {
            "source.bootstrap.servers": told
        }
    reach = ExternalAccess(AccessLimits(paths=(str(tmp_path / "folder"),)))
    outside = config | {key: "/etc/passwd"}
    assert "is in none of the folders" in KIND.probe(outside, reach).errors[key]
    with pytest.raises(OffsetRefused, match="is in none of the folders"):
        KIND.seek(outside, reach, SeekEnd.LATEST, ())


def test_a_column_beside_the_value_that_there_is_not_is_told() -> None:
    config = source_config(NOWHERE, topics="t", metadata_columns="key,value")
    (told,) = SparkPipeline.validate(config).errors["source.metadata.columns"]
    assert told.endswith("there are key, topic, partition, offset, timestamp, headers, not value")


def test_columns_are_known_beforehand_as_far_as_the_config_tells(broker: Broker) -> None:
    few = {"topics": "none", "metadata_columns": "key,offset"}
    assert look(broker.bootstrap, **few).columns.ddl == "_value STRING, _key STRING, _offset BIGINT"
    plain = {"value_converter": "json", "value_converter_schemas_enable": "false"}
    given = look(broker.bootstrap, **few, **plain, schema="day DATE").columns
    assert given.ddl == "day DATE, _key STRING, _offset BIGINT"
    assert look(broker.bootstrap, **few, value_converter="json").columns.ddl == ""


def test_columns_of_json_are_inferred_once_from_the_last_records(
    topics: Topics, topic: str
) -> None:
    plain = {"value_converter": "json", "value_converter_schemas_enable": "false"}
    config = source_config(topics.bootstrap, topics=topic, **plain)
    with pytest.raises(NotReady, match="no record is there to infer columns from"):
        source_type(config).split(1)
    topics.write(topic, ['{"n": 1, "s": "x"}', None, '{"n": 2, "f": {"b": true}}'])
    (share,) = source_type(config).split(1)
    assert share["task.kafka.schema"] == "`n` BIGINT, `s` STRING, `f` STRUCT<`b`: BOOLEAN>"
    topics.write(topic, ['{"later": 1}'] * 1000)
    kept = ({**config, **share},)
    assert [*source_type(config, kept).split(1)] == [share]


def test_offsets_that_people_set_are_those_of_partitions_that_are_read() -> None:
    config = source_config(NOWHERE, topics="a, b")
    place: Document = {"kafka_topic": "a", "kafka_partition": 0}
    KIND.check_offset(config, place, {"kafka_offset": 5})
    KIND.check_offset(config, place, {"kafka_offset": 5, "kafka_topic_id": "x"})
    KIND.check_offset(config, {"kafka_topic": "c", "kafka_partition": 0}, None)
    refused: list[tuple[Document, Document, str]] = [
        ({"kafka_offset": -1}, place, "must be 0 or more"),
        ({"offset": 1}, place, "kafka_offset is missing"),
        ({"kafka_offset": 1}, {"kafka_topic": "c", "kafka_partition": 0}, "this connector reads"),
        ({"kafka_offset": 1}, {"topic": "a"}, "kafka_topic is missing"),
    ]
    for offset, partition, why in refused:
        with pytest.raises(OffsetRefused, match=why):
            KIND.check_offset(config, partition, offset)


def test_offsets_of_a_time_and_of_both_ends_come_from_the_broker(
    topics: Topics, topic: str
) -> None:
    for minute in range(3):
        topics.write(topic, [str(minute)], timestamp=1_700_000_000_000 + 60_000 * minute)
    topics.cut(topic, 1)
    config = source_config(topics.bootstrap, topics=topic)

    def offset(to: Any) -> Any:
        ((partition, offset),) = KIND.seek(config, ExternalAccess(), to, [])
        assert partition == {"kafka_topic": topic, "kafka_partition": 0}
        assert offset is not None
        assert offset["kafka_topic_id"]
        return offset["kafka_offset"]

    assert offset(SeekEnd.EARLIEST) == 1
    assert offset(SeekEnd.LATEST) == 3
    assert offset(datetime.fromtimestamp(1_700_000_090, UTC)) == 2
    assert offset(datetime.fromtimestamp(1_800_000_000, UTC)) == 3


@pytest.mark.soak  # each run kills a broker under all pairs: tests/chaos/test_matrix.py
def test_a_broker_that_dies_is_waited_for_and_nothing_is_lost_or_doubled(
    broker: Broker, topics: Topics, topic: str
) -> None:
    topics.write(topic, ["a"])
    reading = Reading(source_config(broker.bootstrap, topics=topic))
    assert reading.read(1)["_value"].to_pylist() == ["a"]
    broker.kill()
    try:
        with pytest.raises(SourceAway, match=r"Connection refused|brokers are down"):
            reading.plan()
    finally:
        broker.up()
    topics.write(topic, ["b"])
    reading.again()
    assert reading.read(1)["_value"].to_pylist() == ["b"]
    reading.source.close()
