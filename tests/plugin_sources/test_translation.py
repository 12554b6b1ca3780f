"""The config of a plugin with a sink of fairlead's, as that of a pipeline."""

import pytest

from fairlead.runtime.pipeline.connectors.plugin_pipeline import (
    PluginPipeline,
    answer_in,
    as_pipeline,
    config_of_plugin,
)
from fairlead.runtime.pipeline.connectors.plugins import Plugin, find_plugins
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.connector import Delivery
from fairlead.runtime.pipeline.spi.keys.plugin_source import SUPPORT

CLASS = "io.debezium.connector.postgresql.PostgresConnector"
UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
CONFIG = {
    "name": "orders",
    "connector.class": CLASS,
    "tasks.max": "1",
    "database.hostname": "db",
    "poll.interval.ms": "250",
    "transforms": "unwrap,paid",
    "transforms.unwrap.type": UNWRAP,
    "transforms.paid.type": "sql",
    "transforms.paid.query": "SELECT * FROM input WHERE paid",
    "sink.type": "files",
    "sink.path": "/data/orders",
    "sink.format": "parquet",
}


def test_the_plugin_gets_all_but_the_sink_and_fairleads_transforms() -> None:
    assert config_of_plugin(CONFIG) == {
        "name": "orders",
        "connector.class": CLASS,
        "tasks.max": "1",
        "database.hostname": "db",
        "poll.interval.ms": "250",
        "transforms": "unwrap",
        "transforms.unwrap.type": UNWRAP,
    }


def test_the_pipeline_gets_what_fairlead_knows_and_has_the_plugin_behind_a_prefix() -> None:
    made = as_pipeline(CONFIG)
    prefix = "source.connect.config."
    own = {key: value for key, value in made.items() if not key.startswith(prefix)}
    assert own == {
        "name": "orders",
        "connector.class": SparkPipeline.full_name,
        "tasks.max": "1",
        "poll.interval.ms": "250",
        "source.type": "connect",
        "transforms": "paid",
        "transforms.paid.type": "sql",
        "transforms.paid.query": "SELECT * FROM input WHERE paid",
        "sink.type": "files",
        "sink.path": "/data/orders",
        "sink.format": "parquet",
    }
    assert made == {**own, **{f"{prefix}{k}": v for k, v in config_of_plugin(CONFIG).items()}}
    assert as_pipeline(made) == made


def test_only_a_config_with_a_sink_is_a_pipeline() -> None:
    plugins = find_plugins()
    assert plugins.of(CONFIG) == Plugin(PluginPipeline)
    assert plugins.of({**CONFIG, "connector.class": "SparkPipeline"}) == plugins.find(
        "SparkPipeline"
    )
    assert not PluginPipeline.validate(CONFIG).errors


@pytest.mark.parametrize(
    ("change", "key", "told"),
    [
        ({"transforms": "paid,unwrap"}, "transforms", "put it before paid"),
        ({"sink.path": ""}, "sink.path", "a value is required"),
        ({"sink.pth": "/data"}, "sink.pth", "did you mean sink.path"),
        ({"sink.type": "lake"}, "sink.type", "no sink type lake is installed"),
        ({"source.metadata.columns": "lsn"}, "source.metadata.columns", "there are key, topic"),
    ],
)
def test_what_fairlead_knows_is_checked(change: dict[str, str], key: str, told: str) -> None:
    config = {**CONFIG, **change}
    found = PluginPipeline.validate(config).strict(as_pipeline(config)).errors
    assert [*found] == [key]
    assert told in " ".join(found[key])


TO_KAFKA = {
    "name": "orders",
    "connector.class": CLASS,
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "sink.type": "kafka",
    "sink.bootstrap.servers": "broker:9092",
}
SQL = {"transforms": "a", "transforms.a.type": "sql", "transforms.a.query": "SELECT * FROM input"}


def test_to_kafka_the_plugins_converters_write_unless_a_transform_makes_rows() -> None:
    assert as_pipeline(TO_KAFKA)["source.connect.records"] == "true"
    found = PluginPipeline.validate(TO_KAFKA)
    assert (found.errors, found.warnings) == ({}, ())
    rows = {**TO_KAFKA, **SQL, "sink.topic": "t", "sink.key.columns": "id"}
    assert "source.connect.records" not in as_pipeline(rows)
    found = PluginPipeline.validate(rows)
    assert found.errors == {}
    assert found.warnings[0].startswith("key.converter: no effect, since records become rows")


def test_one_topic_for_all_records_is_the_last_of_the_plugins_transforms() -> None:
    config = {**TO_KAFKA, "transforms": "unwrap", "transforms.unwrap.type": UNWRAP}
    made = as_pipeline({**config, "sink.topic": "all.orders"})
    prefix, router = "source.connect.config.", "transforms.fairlead-sink-topic."
    given = {key.removeprefix(prefix): each for key, each in made.items() if prefix in key}
    assert given == {
        **config_of_plugin(config),
        "transforms": "unwrap,fairlead-sink-topic",
        f"{router}type": "org.apache.kafka.connect.transforms.RegexRouter",
        f"{router}regex": ".*",
        f"{router}replacement": "all.orders",
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sink.key.columns", "id"),
        ("sink.topic.column", "topic"),
        ("sink.key.converter", "json"),
        ("sink.value.converter.schemas.enable", "true"),
        ("sink.value.converter.schema.registry.url", "http://registry:8081"),
        ("source.metadata.columns", "topic"),
    ],
)
def test_what_is_for_rows_is_refused_where_records_go_to_kafka(key: str, value: str) -> None:
    (told,) = PluginPipeline.validate({**TO_KAFKA, key: value}).errors.values()
    assert "leave it out" in told[0].lower()


@pytest.mark.parametrize(
    ("more", "delivery", "why"),
    [
        ({}, Delivery.AT_LEAST_ONCE, "has not said so yet"),
        ({"exactly.once.support": "required"}, Delivery.EXACTLY_ONCE, ""),
        ({SUPPORT: "supported"}, Delivery.EXACTLY_ONCE, ""),
        ({SUPPORT: "unsupported"}, Delivery.AT_LEAST_ONCE, "does not resume right behind"),
        ({SUPPORT: "undefined"}, Delivery.AT_LEAST_ONCE, "does not say whether"),
        ({SUPPORT: "failed a.B"}, Delivery.AT_LEAST_ONCE, "it failed a.B: its log says where"),
        (
            {SUPPORT: "unsupported", "exactly.once.support": "required"},
            Delivery.AT_LEAST_ONCE,
            "does not resume right behind",
        ),
    ],
)
def test_the_promise_is_what_the_plugin_says(
    more: dict[str, str], delivery: Delivery, why: str
) -> None:
    promise = PluginPipeline.delivery_of({**CONFIG, **more})
    assert promise.delivery is delivery
    assert why in "".join(promise.why)


def test_what_a_plugin_has_said_counts_for_the_config_that_it_was_asked_about() -> None:
    secret = {"database.password": "sealed"}
    task = {**as_pipeline({**CONFIG, "database.password": "again"}), SUPPORT: "supported"}
    assert answer_in(task, {**CONFIG, **secret}, ["database.password"]) == "supported"
    for change in ({"database.hostname": "other"}, {"slot.name": "one"}):
        assert answer_in(task, {**CONFIG, **secret, **change}, ["database.password"]) == ""
    assert answer_in(task, CONFIG, ()) == ""
    assert answer_in(as_pipeline(CONFIG), CONFIG, ()) == ""
