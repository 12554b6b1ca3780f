# pyright: basic
"""Settings of Spark SQL that a connector has for itself."""

import json
from pathlib import Path

import pytest
from connectors.conftest import Run

from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.engines.queries.allowed_settings import ALLOWED, flaw_in_setting
from fairlead.runtime.pipeline.engines.queries.query_check import QueryCheck

pytestmark = pytest.mark.spark

ZONE = "spark.conf.spark.sql.session.timeZone"


def config_of(folders: dict[str, str], **more: str) -> dict[str, str]:
    return {
        **folders,
        "source.format": "json",
        "source.schema": "n BIGINT",
        "sink.format": "json",
        "transforms": "t",
        "transforms.t.type": "sql",
        "transforms.t.query": "SELECT n, date_format(timestamp_seconds(n), 'HH') hour FROM input",
        **more,
    }


def test_a_connector_has_its_settings_and_its_neighbours_have_not(
    run: Run, folders: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "in" / "1.json").write_text('{"n": 0}\n')
    run(config_of(folders, **{ZONE: "Asia/Tokyo"}))
    (tmp_path / "in" / "2.json").write_text('{"n": 1}\n')
    run(config_of(folders, **{"transforms.t.query": "SELECT n, 'x' AS hour FROM input"}))
    (tmp_path / "in" / "3.json").write_text('{"n": 2}\n')
    run(config_of(folders, **{ZONE: "Asia/Kolkata"}))
    files = (tmp_path / "out").glob("part-*.json")
    found = sorted((json.loads(each.read_text()) for each in files), key=lambda each: each["n"])
    assert [each["hour"] for each in found] == ["09", "x", "05"]


def test_a_setting_that_is_not_a_connectors_is_refused_with_the_reason(
    run: Run, folders: dict[str, str], tmp_path: Path
) -> None:
    given = {
        "spark.conf.spark.executor.memory": "1g",
        "spark.conf.spark.sql.variable.substitute": "true",
        "spark.conf.spark.sql.files.ignoreCorruptFiles": "true",
        ZONE: "UTC",
    }
    errors = SparkPipeline.validate(config_of(folders, **given)).errors
    assert {key: len(told) for key, told in errors.items()} == dict.fromkeys(list(given)[:3], 1)
    assert "set on the node" in errors["spark.conf.spark.executor.memory"][0]
    (tmp_path / "in" / "1.json").write_text('{"n": 0}\n')
    reports = run(config_of(folders, **{ZONE: "Nowhere/Nothing"}))
    (told,) = {each.reason for each in reports.statuses if each.state.value == "FAILED"}
    assert told.startswith(f"{ZONE}: ")


def test_spark_says_which_settings_are_fixed_and_which_values_are_none(
    query_check: QueryCheck,
) -> None:
    flaws = query_check.flaws_in_settings(
        {
            "spark.sql.warehouse.dir": "/tmp/w",
            "spark.sql.shuffle.partitions": "many",
            "spark.sql.session.timeZone": "UTC",
        }
    )
    assert "fixed when the engine starts" in flaws["spark.sql.warehouse.dir"]
    assert "spark.sql.shuffle.partitions" in flaws["spark.sql.shuffle.partitions"]
    assert len(flaws) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.catalog.c", "java.lang.Object"),
        ("spark.sql.catalog.spark_catalog", "x.Y"),
        ("spark.sql.defaultCatalog", "c"),
        ("spark.sql.adaptive.customCostEvaluatorClass", "java.lang.Object"),
        ("spark.sql.streaming.checkpointFileManagerClass", "java.lang.Object"),
        ("spark.sql.extensions", "x.Y"),
        ("spark.sql.warehouse.dir", "/etc"),
        ("spark.sql.sources.useV1SourceList", ""),
        ("spark.sql.sources.default", "jdbc"),
        ("spark.sql.planChangeLog.level", "ERROR"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
        ("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY"),
        ("spark.sql.timestampType", "TIMESTAMP_NTZ"),
        ("spark.sql.variable.substitute", "true"),
        ("spark.sql.Shuffle.partitions", "2"),
        ("spark.sql.a.setting.of.later", "1"),
    ],
)
def test_a_setting_of_sql_that_is_not_on_the_list_is_refused(name: str, value: str) -> None:
    told = "it is none of the settings that a connector may have: leave it out"
    assert flaw_in_setting(name, value) == told


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [
        ("shuffle.partitions", "2000000000 0 -1 x 10001 0x10", "1 200 10000"),
        ("files.maxPartitionBytes", "1b 0 1k 100g", "1m 128MB 134217728 1g"),
        ("autoBroadcastJoinThreshold", "1g x -2", "-1 0 10m 67108864b"),
        ("session.timeZone", "../etc/passwd a;b", "UTC Asia/Tokyo GMT+2 +02:00"),
        ("ansi.enabled", "yes 1", "true FALSE"),
        ("parquet.compression.codec", "java.lang.Object", "zstd SNAPPY"),
        ("parquet.outputTimestampType", "INT64", "INT96 timestamp_millis"),
    ],
)
def test_a_setting_of_sql_has_values_that_do_no_harm(name: str, wrong: str, right: str) -> None:
    for value in wrong.split():
        assert (flaw_in_setting(f"spark.sql.{name}", value) or "").startswith("must be ")
    for value in right.split():
        assert flaw_in_setting(f"spark.sql.{name}", value) is None
    assert flaw_in_setting(f"spark.sql.{name}", None) is None  # a reference, for workers alone


def test_each_setting_of_sql_that_is_taken_is_one_of_sparks_and_has_a_reason(
    query_check: QueryCheck,
) -> None:
    values = {"spark.sql.session.timeZone": "UTC", "spark.sql.mapKeyDedupPolicy": "LAST_WIN"}
    values |= {"spark.sql.parquet.compression.codec": "zstd"}
    values |= {"spark.sql.parquet.outputTimestampType": "INT96"}
    for name, allowed in ALLOWED.items():
        of_kind = [each for each in ("true", "1", "1m") if not allowed.check(each)]
        values.setdefault(name, next(iter(of_kind), ""))
        assert allowed.why
    assert query_check.flaws_in_settings(values) == {}
