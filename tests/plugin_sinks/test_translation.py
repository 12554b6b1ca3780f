"""The config of a sink connector with a source of fairlead's, as the config of a pipeline."""

import pytest

from fairlead.runtime.interfaces.replies.connectors import ConfigInfos
from fairlead.runtime.interfaces.rest.validation.connect_configs import refuse_ends
from fairlead.runtime.node.sampling.__main__ import pipeline_of
from fairlead.runtime.pipeline.connectors.plugin_pipeline import (
    PluginPipeline,
    as_pipeline,
    config_of_plugin,
)
from fairlead.runtime.pipeline.connectors.plugins import Plugin, find_plugins
from fairlead.runtime.pipeline.spi.connector import Delivery
from fairlead.runtime.pipeline.spi.errors import LettersRefused, OffsetRefused

CONFIG = {
    "name": "orders",
    "connector.class": "FileStreamSink",
    "file": "/out",
    "topics": "orders",
    "tasks.max": "2",
    "errors.tolerance": "all",
    "transforms": "big,hoist",
    "transforms.big.type": "sql",
    "transforms.big.query": "SELECT * FROM input WHERE n > 1",
    "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
    "transforms.hoist.field": "f",
    "source.type": "files",
    "source.path": "/in",
    "source.format": "json",
    "source.schema": "n BIGINT",
    "sink.key.columns": "n",
}
KAFKA = {
    "name": "copied",
    "connector.class": "FileStreamSink",
    "topics": "orders,returns",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "source.type": "kafka",
    "source.bootstrap.servers": "localhost:9092",
}
ENDS = {key: value for key, value in CONFIG.items() if key.startswith("source.")}


def test_the_plugin_gets_all_but_the_source_and_the_transforms_of_fairlead() -> None:
    assert config_of_plugin(CONFIG) == {
        "name": "orders",
        "connector.class": "FileStreamSink",
        "file": "/out",
        "topics": "orders",
        "tasks.max": "2",
        "errors.tolerance": "all",
        "transforms": "hoist",
        "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.hoist.field": "f",
    }


def test_the_pipeline_has_the_source_its_transforms_and_the_plugin_behind_a_prefix() -> None:
    made = as_pipeline(CONFIG)
    plugin = {f"sink.connect.config.{k}": v for k, v in config_of_plugin(CONFIG).items()}
    both = ("name", "tasks.max", "errors.tolerance")
    own = {
        "connector.class": "fairlead.runtime.connectors.spark_pipeline.SparkPipeline",
        "sink.type": "connect",
        "sink.key.columns": "n",
        "transforms": "big",
        "transforms.big.type": "sql",
        "transforms.big.query": "SELECT * FROM input WHERE n > 1",
        **ENDS,
        **{key: CONFIG[key] for key in both},
    }
    assert made == {**own, **plugin}
    assert as_pipeline(made) == made


def test_records_of_topics_are_bytes_unless_a_converter_of_the_source_is_named() -> None:
    made = as_pipeline(KAFKA)
    read = {key: made.get(key) for key in ("source.topics", "source.value.converter")}
    assert read == {"source.topics": "orders,returns", "source.value.converter": "bytes"}
    assert made["source.metadata.columns"] == "key,topic,partition,offset,timestamp,headers"
    assert made["sink.connect.is.raw"] == "true"
    rows = as_pipeline({**KAFKA, "source.value.converter": "json"})
    assert "sink.connect.is.raw" not in rows
    assert rows["source.topics"] == "orders,returns"


def test_topics_need_to_be_named_once() -> None:
    named = {key: value for key, value in KAFKA.items() if key != "topics"}
    named["source.topics"] = "orders"
    assert config_of_plugin(named)["topics"] == "orders"
    assert as_pipeline(named)["source.topics"] == "orders"


def test_such_a_config_is_valid_at_least_once_and_of_the_pipeline() -> None:
    assert not PluginPipeline.validate(CONFIG).errors
    assert find_plugins().of(CONFIG) == Plugin(PluginPipeline)
    promise = PluginPipeline.delivery_of(CONFIG)
    assert promise.delivery is Delivery.AT_LEAST_ONCE
    assert "put again after a failure" in promise.why[0]


def test_a_transform_of_fairlead_behind_one_of_kafkas_is_refused() -> None:
    config = {**CONFIG, "transforms": "hoist,big"}
    ((told,),) = PluginPipeline.validate(config).errors.values()
    assert "a transform of fairlead runs before those of Kafka Connect: put it before hoist" in told


def test_keys_without_an_effect_are_told() -> None:
    converter = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}
    told = PluginPipeline.validate({**CONFIG, **converter, "consumer.override.group.id": "x"})
    assert [each.partition(":")[0] for each in told.warnings][-2:] == [
        "value.converter",
        "consumer.override.group.id",
    ]
    raw = {**KAFKA, **converter, "consumer.override.max.poll.records": "9"}
    assert not [each for each in PluginPipeline.validate(raw).warnings if "no effect" in each]


@pytest.mark.parametrize(
    ("partition", "offset", "told"),
    [
        ({"sink_topic": "t", "sink_partition": 0}, {"sink_offset": 7}, ""),
        ({"sink_topic": "t", "sink_partition": 0}, None, ""),
        ({"sink_topic": "t", "sink_partition": 0}, {"sink_offset": -1}, "from 0 on"),
        ({"sink_topic": "t"}, {"sink_offset": 7}, "sink_topic and sink_partition"),
        ({"root": "/in", "path": "a", "odd": 1}, {"size": 1}, "odd"),
    ],
    ids=["of records", "removed", "negative", "half", "of the source"],
)
def test_offsets_of_records_and_of_the_source_are_checked(
    partition: dict[str, str | int], offset: dict[str, int] | None, told: str
) -> None:
    if not told:
        PluginPipeline.check_offset(CONFIG, partition, offset)
        return
    with pytest.raises(OffsetRefused, match=told):
        PluginPipeline.check_offset(CONFIG, partition, offset)


def test_letters_are_retried_by_the_same_plugin_with_their_folder_as_its_source() -> None:
    again = PluginPipeline.retry_config(
        {**CONFIG, "errors.deadletterqueue.path": "/letters", "errors.max.ratio": "0.5"},
        {},
        "again",
    )
    kept = {key: value for key, value in CONFIG.items() if not key.startswith("source.")}
    assert again == {
        **kept,
        "name": "again",
        "errors.deadletterqueue.path": "/letters-retry",
        "source.type": "dead-letters",
        "source.path": "/letters",
        "source.connector": "orders",
        "source.format": "json",
        "source.schema": "n BIGINT",
        "source.schema.is.inferred": "false",
        "labels": "retry-of=orders",
    }
    assert not PluginPipeline.validate(again).errors


def test_letters_of_topics_are_bytes_of_their_own_topics_once_more_also_of_a_retry() -> None:
    config = {
        **KAFKA,
        "errors.deadletterqueue.topic.name": "bad",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    again = PluginPipeline.retry_config(config, {}, "again")
    assert config_of_plugin(again) == {
        **{key: value for key, value in config.items() if not key.startswith("source.")},
        "name": "again",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "bad-retry",
        "errors.deadletterqueue.bootstrap.servers": "localhost:9092",
        "labels": "retry-of=copied",
    }
    assert not PluginPipeline.validate(again).errors
    made = as_pipeline(again)
    assert (made["source.topics"], made["sink.connect.is.raw"]) == ("bad", "true")
    third = PluginPipeline.retry_config(again, {}, "third")
    assert as_pipeline(third)["source.topics"] == "bad-retry"
    assert config_of_plugin(third)["topics"] == "orders,returns"


def test_a_sample_has_the_rows_of_the_source_before_what_runs_in_the_plugins_jvm() -> None:
    said: list[str] = []
    assert pipeline_of(CONFIG, said.append) == as_pipeline(CONFIG)
    assert said == ["transforms: rows are as they are before hoist, which a plugin's JVM runs"]


def test_letters_of_bytes_in_a_folder_are_not_retried_for_they_lack_them() -> None:
    with pytest.raises(LettersRefused, match=r"set errors.deadletterqueue.topic.name and"):
        PluginPipeline.retry_config({**KAFKA, "errors.deadletterqueue.path": "/x"}, {}, "again")


@pytest.mark.parametrize(
    ("kind", "config", "told"),
    [
        ("source", {"source.type": "files"}, "leave source.type out, and give a sink.type"),
        (
            "sink",
            {
                "source.type": "files",
                "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            },
            "elects its leader from the members of its consumer group",
        ),
        ("sink", {"source.type": "files", "source.path": "${vault:a:b}"}, "${env:NAME}"),
    ],
    ids=["source", "iceberg", "reference"],
)
def test_an_end_that_a_plugin_cannot_have_is_refused_with_the_way_that_works(
    kind: str, config: dict[str, str | None], told: str
) -> None:
    infos = refuse_ends(ConfigInfos("A", 0, [], []), kind, config, ["vault"])
    (flaw,) = (each.value.errors[0] for each in infos.configs if each.value)
    assert told in flaw
