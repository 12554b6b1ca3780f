"""A key that is nearly a known one is taken for that one; any other is the user's own affair."""

import pytest

from fairlead.actors.misspelling import meant_by
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.installed import hint_by_last_part
from fairlead.runtime.pipeline.spi.config import MOST_SEARCHED, ConfigInvalid

GOOD = {
    "name": "c",
    "connector.class": "SparkPipeline",
    "source.format": "csv",
    "source.path": "/in",
    "sink.format": "parquet",
    "sink.path": "/out",
    "transforms": "late",
    "transforms.late.type": "sql",
    "transforms.late.query": "SELECT * FROM input",
}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("task.max", "tasks.max"),
        ("tasks.maxx", "tasks.max"),
        ("Tasks.Max", "tasks.max"),
        ("tasks_max", "tasks.max"),
        (" tasks.max", "tasks.max"),
        ("source.pahts", "source.path"),
        ("source.seperator", "source.separator"),
        ("poll.intervall.ms", "poll.interval.ms"),
        ("error.tolerence", "errors.tolerance"),
        ("sink.partitionby", "sink.partition.by"),
        ("sink.partition", "sink.partition.by"),
        ("source.min.age", "source.min.age.ms"),
        ("transform", "transforms"),
        ("transforms.lat.query", "transforms.late.query"),
        ("transform.late.qeury", "transforms.late.query"),
        ("source.options.encoding", "source.option.encoding"),
        ("sink_option.compression", None),
        ("sink.opton.compression", "sink.option.compression"),
    ],
)
def test_a_near_miss_names_the_key_that_was_meant(written: str, meant: str | None) -> None:
    validation = SparkPipeline.validate(GOOD | {written: "1"})
    assert validation.misspelt == ({written: meant} if meant else {})
    told = {written: (f"there is no such key: did you mean {meant}?",)} if meant else {}
    assert validation.strict(GOOD | {written: "1"}).errors == told


@pytest.mark.parametrize(
    "key",
    ["errors.log.level", "key.converter", "owner", "transforms.other.type", "source", "x"],
)
def test_any_other_unknown_key_is_taken_with_a_warning(key: str) -> None:
    validation = SparkPipeline.validate(GOOD | {key: "1"})
    assert (validation.errors, validation.misspelt) == ({}, {})
    assert validation.warnings == (f"unknown key {key}: it has no effect",)


def test_what_runs_already_goes_on_with_a_misspelt_key_and_a_warning() -> None:
    config = GOOD | {"task.max": "4"}
    assert SparkPipeline.config().check(config).errors == {}
    remark = "unknown key task.max: it has no effect; did you mean tasks.max?"
    assert remark in SparkPipeline.validate(config).remarks
    with pytest.raises(ConfigInvalid):  # and what is wrong stays wrong
        SparkPipeline.config().parse(config | {"tasks.max": "0"})


def test_a_megabyte_of_near_misses_costs_little() -> None:
    keys = {f"sourc.pth{number:05d}{'x' * 20}": "1" for number in range(25_000)}
    assert len(SparkPipeline.validate(GOOD | keys).warnings) >= len(keys) - MOST_SEARCHED
    assert SparkPipeline.validate(GOOD | {"source.path" * 100_000: "1"}).misspelt == {}


@pytest.mark.timeout(30)  # less than a search takes that grows with the square
def test_a_config_of_any_shape_is_validated_in_bounded_time() -> None:
    near = {f"source.format{'x' * 38}{number}": "1" for number in range(20_000)}
    long = {f"{name}{'x' * 500_000}": "1" for name in ("source.min.age.ms", "source.optio.")}
    dotted = {"transforms" + ".a" * 250_000: "1", "s" + "." * 500_000: "1"}
    many = {"transforms": ",".join(f"t{number}" for number in range(100_000))}
    for config in (near, long, dotted, many):
        SparkPipeline.validate(config)
    found = SparkPipeline.validate(many).errors["transforms"]
    assert found == ("100000 are given, and at most 100 taken",)


def test_a_key_with_many_more_separators_than_any_known_one_has_letters_is_not_looked_through() -> (
    None
):
    assert meant_by("tasks.max" + "_" * 20, ["max", "tasks.max"]) == "tasks.max"
    assert meant_by("tasks.max" + "_" * 21, ["max", "tasks.max"]) is None


def test_that_both_are_connectors_makes_two_classes_no_more_similar() -> None:
    known = ["FileStreamSourceConnector"]
    assert hint_by_last_part("NoSuchConnector", known) == ""
    meant = "did you mean FileStreamSourceConnector?"
    assert hint_by_last_part("org.files.FileStreamSorceConnector", known) == meant
    assert hint_by_last_part("FileStreamSorce", known) == meant
