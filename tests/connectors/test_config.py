"""A config is checked as Connect checks it, and told in the shape of Connect's reply."""

import pytest
from msgspec import to_builtins

from fairlead.actors.settings import SettingType, at_least
from fairlead.events.model import Resource
from fairlead.runtime.interfaces.replies.building.validations import describe_validation
from fairlead.runtime.pipeline.connectors.error_keys import ERRORS, tolerance_of
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.config import ConfigDef, ConfigInvalid, Definition, Importance
from fairlead.runtime.pipeline.spi.context import Context

DEFINITIONS = ConfigDef(
    (
        Definition(
            "size",
            SettingType.INT,
            "How many.",
            default=3,
            importance=Importance.HIGH,
            validator=at_least(1),
        ),
        Definition(
            "secret", SettingType.PASSWORD, "Whisper it.", importance=Importance.HIGH, required=True
        ),
    ),
    prefixes=("option.",),
)
GOOD = {
    "name": "c",
    "connector.class": "SparkPipeline",
    "source.format": "csv",
    "source.path": "/in",
    "sink.format": "parquet",
    "sink.path": "/out",
}


def test_the_reply_has_the_shape_of_connects() -> None:
    config = {"size": "0", "secret": "hush", "option.any": "x", "sizes": "1"}
    validation = DEFINITIONS.check(config)
    assert (validation.warnings, validation.misspelt) == ((), {"sizes": "size"})
    reply = to_builtins(describe_validation("c", validation))
    assert (reply["name"], reply["error_count"], reply["groups"]) == ("c", 1, ["Common"])
    assert isinstance(reply["configs"], list)
    assert reply["configs"][0] == {
        "definition": {
            "name": "size",
            "type": "INT",
            "required": False,
            "default_value": "3",
            "importance": "HIGH",
            "documentation": "How many.",
            "group": "Common",
            "order_in_group": 0,
            "width": "MEDIUM",
            "display_name": "size",
            "dependents": (),
        },
        "value": {
            "name": "size",
            "value": "0",
            "recommended_values": (),
            "errors": ("Invalid value 0 for configuration size: Value must be at least 1",),
            "visible": True,
        },
    }
    assert "hush" not in str(reply)


NO_NUMBER = [
    "Not a number of type INT",
    "Value must be non-null",
]


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("x", NO_NUMBER),
        ("", NO_NUMBER),
        ("1.5", NO_NUMBER),
        ("1_0", NO_NUMBER),
        ("99999999999", NO_NUMBER),
        ("2147483648", NO_NUMBER),
        ("2147483647", []),
        ("-2147483649", NO_NUMBER),
        ("-2147483648", ["Value must be at least 1"]),
        ("0", ["Value must be at least 1"]),
        (" +1 ", []),
    ],
)
def test_everything_that_is_wrong_is_told_at_once_in_the_words_of_connect(
    text: str, errors: list[str]
) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        DEFINITIONS.parse({"size": text})
    given = ("null" if each == NO_NUMBER[1] else text for each in errors)
    told = [
        f"Invalid value {value} for configuration size: {each}"
        for value, each in zip(given, errors, strict=True)
    ]
    missing = 'Missing required configuration "secret" which has no default value.'
    assert str(caught.value) == "; ".join([*told, missing])


def test_a_value_that_the_worker_resolves_is_not_judged_before() -> None:
    config = {"size": "${env:SIZE}", "secret": "x"}
    assert DEFINITIONS.check(config).errors == {}
    with pytest.raises(ConfigInvalid, match="size: Not a number"):
        DEFINITIONS.parse(config)


def test_a_pipeline_needs_a_source_and_a_sink() -> None:
    assert SparkPipeline.validate(GOOD).errors == {}
    assert set(SparkPipeline.validate({}).errors) == {*GOOD}


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"sink.path": "/in/out"}, "sink.path"),
        ({"sink.path": "/out/../in"}, "sink.path"),
        ({"sink.path": "s3://bucket"}, "sink.path"),
        ({"sink.path": "/lake/${topic}/../../in"}, "sink.path"),
        ({"sink.path": "/lake/${topic}", "sink.format": "json"}, "sink.path"),
        ({"sink.path": "/lake/${topic}", "sink.partition.by": "a"}, "sink.path"),
        (
            {"sink.path": "/lake/${table}", "sink.option.compression": "gzip"},
            "sink.path",
        ),
        ({"errors.deadletterqueue.path": "/bad/${topic}"}, "errors.deadletterqueue.path"),
        ({"source.format": "xls"}, "source.format"),
        ({"sink.mode": "overwrite"}, "sink.mode"),
        ({"tasks.max": "0"}, "tasks.max"),
        ({"poll.interval.ms": "3600001"}, "poll.interval.ms"),
        (
            {"transforms": "a,a", "transforms.a.type": "sql", "transforms.a.query": "x"},
            "transforms",
        ),
        ({"transforms": "a", "transforms.a.type": "sql"}, "transforms.a.query"),
        ({"transforms": "a", "transforms.a.type": "drop"}, "transforms.a.type"),
        ({"transforms": "a", "transforms.a.type": "select"}, "transforms.a.columns"),
    ],
)
def test_each_error_stands_under_the_key_to_change(changes: dict[str, str], key: str) -> None:
    assert set(SparkPipeline.validate(GOOD | changes).errors) == {key}


def test_every_key_says_what_it_means() -> None:
    assert [
        each.name for each in SparkPipeline.config().definitions if not each.documentation
    ] == []


@pytest.mark.parametrize(
    ("path", "flaw"),
    [("in", "must be an absolute path"), ("/i\0n", "must not hold a NUL: no path has one")],
)
def test_a_folder_that_no_system_can_have_is_refused(path: str, flaw: str) -> None:
    for key in ("source.path", "sink.path"):
        (told,) = SparkPipeline.config().check(GOOD | {key: path}).errors[key]
        assert flaw in told


def test_a_source_folder_with_two_slashes_is_refused_since_spark_would_find_no_file_of_it() -> None:
    (told,) = (
        SparkPipeline.config().check(GOOD | {"source.path": "//data/in"}).errors["source.path"]
    )
    assert "must begin with one slash" in told
    assert not SparkPipeline.config().check(GOOD | {"source.path": "///data/in"}).errors


@pytest.mark.parametrize(
    ("given", "bisected"),
    [
        ({}, 0),
        ({"errors.tolerance": "none", "errors.bisect.max": "7"}, 0),
        ({"errors.tolerance": "all"}, 100),
        ({"errors.tolerance": "all", "errors.bisect.max": "7"}, 7),
        ({"errors.tolerance": "all", "errors.bisect.max": "0"}, 0),
    ],
)
def test_bad_rows_are_searched_for_only_where_they_are_tolerated(
    given: dict[str, str], bisected: int
) -> None:
    context = Context(Resource("c", 0), print)
    found = tolerance_of(context, given, ConfigDef(ERRORS).parse(given))
    assert (found.most_searched, found.max_ratio, found.queue) == (bisected, 1.0, "")
