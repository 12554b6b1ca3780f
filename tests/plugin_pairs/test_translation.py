"""The config of a source and a sink connector as the config of a pipeline."""

import pytest

from fairlead.runtime.interfaces.replies.connectors import (
    ConfigInfo,
    ConfigInfos,
    ConfigValueInfo,
)
from fairlead.runtime.interfaces.rest.validation.connect_configs import refuse_ends
from fairlead.runtime.interfaces.rest.validation.second_plugins import (
    flaw_in_sink,
    flaws_beside,
    with_sink,
)
from fairlead.runtime.pipeline.connectors.plugin_pipeline import (
    PluginPipeline,
    as_pipeline,
    config_of_plugin,
    config_of_sink,
)
from fairlead.runtime.pipeline.plugins.host_names import name_in_host, owner_of, part_of
from fairlead.runtime.pipeline.spi.connector import Delivery
from fairlead.runtime.pipeline.spi.errors import LettersRefused

CONFIG = {
    "name": "copied",
    "connector.class": "FileStreamSource",
    "file": "/in",
    "topic": "lines",
    "tasks.max": "1",
    "errors.tolerance": "all",
    "exactly.once.support": "required",
    "sink.type": "connect",
    "sink.connector.class": "FileStreamSink",
    "sink.file": "/out",
    "sink.transforms": "hoist",
    "sink.transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
}
SQL = {
    "transforms": "mask,few",
    "transforms.mask.type": "org.apache.kafka.connect.transforms.MaskField$Value",
    "transforms.few.type": "sql",
    "transforms.few.query": "SELECT * FROM input",
}
WHOLE = {"name": "copied", "tasks.max": "1", "errors.tolerance": "all"}


def test_each_plugin_gets_its_own_keys_and_those_of_the_whole_connector() -> None:
    assert config_of_plugin(CONFIG) == {
        "connector.class": "FileStreamSource",
        "file": "/in",
        "topic": "lines",
        "exactly.once.support": "required",
        **WHOLE,
    }
    assert config_of_sink(CONFIG) == {
        "connector.class": "FileStreamSink",
        "file": "/out",
        "topics.regex": ".*",
        "transforms": "hoist",
        "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        **WHOLE,
    }
    odd = {**CONFIG, "sink.topics": "a", "sink.connect.config.type": "t", "sink.connect.url": "u"}
    given = config_of_sink(odd)
    assert (given["topics"], given["type"], given["connect.url"]) == ("a", "t", "u")
    assert "topics.regex" not in given


def test_the_pipeline_has_both_behind_prefixes_and_records_stay_in_the_host() -> None:
    made = as_pipeline(CONFIG)
    of_source = {f"source.connect.config.{k}": v for k, v in config_of_plugin(CONFIG).items()}
    of_sink = {f"sink.connect.config.{k}": v for k, v in config_of_sink(CONFIG).items()}
    own = {
        "connector.class": "fairlead.runtime.connectors.spark_pipeline.SparkPipeline",
        "source.type": "connect",
        "sink.type": "connect",
        "source.connect.held": "true",
    }
    assert made == {**own, **WHOLE, **of_source, **of_sink}
    assert as_pipeline(made) == made


def test_a_transform_of_fairlead_between_makes_rows_with_what_a_record_has_beside() -> None:
    made = as_pipeline({**CONFIG, **SQL, "source.metadata.columns": "_topic,partition"})
    assert "source.connect.held" not in made
    assert made["source.metadata.columns"] == "topic,partition,key,timestamp,headers"
    assert made["transforms"] == "few"
    assert made["source.connect.config.transforms"] == "mask"


def test_such_a_config_is_valid_and_its_promise_is_the_weaker_one() -> None:
    assert not PluginPipeline.validate(CONFIG).errors
    assert not PluginPipeline.validate({**CONFIG, **SQL}).errors
    promise = PluginPipeline.delivery_of(CONFIG)
    assert promise.delivery is Delivery.AT_LEAST_ONCE
    assert "with an upsert by key" in promise.why[0]
    with pytest.raises(LettersRefused):
        PluginPipeline.retry_config(CONFIG, {}, "again")
    PluginPipeline.check_offset(CONFIG, {"sink_topic": "t", "sink_partition": 0}, None)


def test_keys_without_an_effect_are_told_or_refused() -> None:
    json = "org.apache.kafka.connect.json.JsonConverter"
    keys = {"value.converter": json, "sink.header.converter": json, "sink.consumer.override.x": "1"}
    told = [each for each in PluginPipeline.validate({**CONFIG, **keys}).warnings if "no e" in each]
    assert [each.partition(": no effect")[0] for each in told] == [
        "value.converter, sink.header.converter",
        "sink.consumer.override.x",
    ]
    flaws = PluginPipeline.validate({**CONFIG, "sink.key.columns": "id"}).errors
    assert "with its own key" in flaws["sink.key.columns"][0]
    flaws = PluginPipeline.validate({**CONFIG, "source.metadata.columns": "key"}).errors
    assert "a record goes as it is" in flaws["source.metadata.columns"][0]


@pytest.mark.parametrize(
    ("config", "key", "told"),
    [
        ({"sink.errors.tolerance": "all"}, "sink.errors.tolerance", "for the whole connector"),
        ({"sink.name": "a"}, "sink.name", "for the whole connector"),
        ({"sink.transforms.a.type": "select"}, "sink.transforms.a.type", "name it in transforms"),
        ({"sink.topics.regex": "("}, "sink.topics.regex", "no regular expression"),
        ({"sink.topics": "${vault:a}"}, "sink.topics", "${env:NAME}"),
    ],
)
def test_keys_that_a_sink_cannot_have_there_are_refused(
    config: dict[str, str | None], key: str, told: str
) -> None:
    ((name, flaw),) = flaws_beside(config, ["vault"]).items()
    assert name == key
    assert told in flaw


def test_a_class_that_cannot_be_the_sink_is_refused() -> None:
    assert "it is missing" in flaw_in_sink("", "", "", "")
    assert flaw_in_sink("A", "sink", "not allowed", "") == "not allowed"
    assert "is called A here; did you mean B" in flaw_in_sink("A", "", "", "did you mean B")
    assert "names a sink" in flaw_in_sink("A", "source", "", "")
    assert "elects its leader" in flaw_in_sink("a.IcebergSinkConnector", "sink", "", "")
    assert not flaw_in_sink("A", "sink", "", "")


def test_what_a_plugin_says_of_its_keys_has_the_names_of_the_user() -> None:
    def value(name: str, *errors: str) -> ConfigInfo:
        return ConfigInfo(None, ConfigValueInfo(name, None, (), errors, visible=True))

    said = [
        value("name", "of both"),
        value("file", "Invalid value null for configuration file: no", 'Missing "file"', "odd"),
        value("type"),
    ]
    source = ConfigInfos("S", 0, ["Common"], [value("file")])
    found = with_sink(source, lambda _: ConfigInfos("T", 4, ["Sink"], said), CONFIG)
    assert [each.value and (each.value.name, each.value.errors) for each in found.configs] == [
        ("file", ()),
        (
            "sink.file",
            (
                "Invalid value null for configuration sink.file: no",
                'Missing "sink.file"',
                "sink.file: odd",
            ),
        ),
        ("sink.connect.config.type", ()),
    ]
    assert (found.error_count, found.groups) == (3, ["Common", "Sink"])


def test_references_of_providers_are_for_the_sink_as_for_the_source() -> None:
    config = {"sink.type": "connect", "sink.password": "${vault:a:b}"}
    infos = ConfigInfos("A", 0, [], [])
    assert refuse_ends(infos, "source", config, ["vault"]) == infos


def test_a_sink_has_a_name_of_its_own_in_a_host() -> None:
    name = name_in_host("orders", "sink")
    assert (owner_of(name), part_of(name)) == ("orders", "sink")
    assert name_in_host("orders", "") == owner_of("orders") == "orders"
