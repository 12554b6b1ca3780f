# pyright: basic
"""Dead letters are retried: by a connector made for that, each once, with nothing guessed."""

import json
from pathlib import Path
from typing import Any

import pytest
from connectors.conftest import Run

from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.errors import LettersRefused
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import Reports

Config = dict[str, str]
QUEUE = "errors.deadletterqueue"


@pytest.fixture
def config(folders: Config, tmp_path: Path) -> Config:
    """A config that keeps bad rows."""
    return {
        **folders,
        "source.format": "csv",
        "source.schema": "n INT, s STRING",
        "sink.format": "json",
        "errors.tolerance": "all",
        f"{QUEUE}.path": str(tmp_path / "bad"),
    }


def rows(folder: Path) -> list[dict[str, Any]]:
    files = [each for each in folder.rglob("part-*.json") if "_fairlead" not in each.parts]
    found = [json.loads(line) for each in files for line in each.read_text().splitlines()]
    return sorted(found, key=repr)


def retry_of(config: Config, task_config: Config | None = None) -> Config:
    return dict(SparkPipeline.retry_config(config, task_config or {}, "c-retry"))


def failures(reports: Reports) -> list[str]:
    return [each.trace or each.reason for each in reports.statuses if each.state.value == "FAILED"]


def retry(run: Run, ledger: MemoryLedger, config: Config) -> None:
    ledger.logged.clear()
    assert failures(run(retry_of(config))) == []


@pytest.mark.spark
def test_rows_of_csv_arrive_once_the_transform_is_mended(
    run: Run, config: Config, ledger: MemoryLedger, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text('n,s\n1,x\n2 pieces,"y,\n""z"\n,\n3,4,5\nnone,""\n')
    assert failures(run(config)) == []
    assert rows(tmp_path / "out") == [{"n": 1, "s": "x"}, {}]
    mended = config | {
        "source.schema": "n STRING, s STRING",
        "transforms": "mend",
        "transforms.mend.type": "sql",
        "transforms.mend.query": "SELECT CAST(replace(n, ' pieces', '') AS INT) AS n, s FROM input",
    }
    retry(run, ledger, mended)
    assert rows(tmp_path / "out") == [{"n": 1, "s": "x"}, {"n": 2, "s": 'y,\n"z'}, {}]
    again = [(each["stage"], each["raw"], each["format"]) for each in rows(tmp_path / "bad-retry")]
    assert again == [
        ("source", "3,4,5", "csv"),
        ("transform", '{"n": "none", "s": ""}', "row"),
    ]
    assert [each["position"].get("file") for each in rows(tmp_path / "bad-retry")] == [
        f"{tmp_path}/in/a.csv",
        None,
    ]


@pytest.mark.spark
def test_a_new_letter_is_retried_and_none_a_second_time(
    run: Run, config: Config, ledger: MemoryLedger, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text("n,s\nx,1\n")
    config |= {"source.schema": "n STRING, s INT", "transforms": "e", "transforms.e.type": "expect"}
    config |= {"transforms.e.on.violation": "dead-letter", "transforms.e.expect.short": "n != 'x'"}
    assert failures(run(config)) == []
    first = dict(ledger.logged)
    mended = config | {"transforms.e.expect.short": "length(n) = 1"}
    retry(run, ledger, mended)
    of_retry = dict(ledger.logged)
    assert rows(tmp_path / "out") == [{"n": "x", "s": 1}]
    ledger.logged.clear()
    ledger.logged.update(first)
    (tmp_path / "in" / "b.csv").write_text("n,s\nyy,2\nx,3\n")
    assert failures(run(config)) == []
    ledger.logged.clear()
    ledger.logged.update(of_retry)
    assert failures(run(retry_of(mended))) == []
    assert [each["s"] for each in rows(tmp_path / "out")] == [1, 3, 2]


@pytest.mark.spark
def test_no_value_of_any_type_is_changed_on_its_way(
    run: Run, config: Config, ledger: MemoryLedger, tmp_path: Path
) -> None:
    row = {
        "i": 9007199254740993,
        "d": "12345678901234567890.123",
        "f": 0.1,
        "day": "2026-02-03",
        "at": "2026-02-03T04:05:06.123456+02:00",
        "local": "2026-02-03T04:05:06.654321",
        "s": "007",
        "list": [{"x": 1}, {"x": None}],
    }
    types = (
        "i BIGINT, d DECIMAL(38, 3), f DOUBLE, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, "
        "s STRING, list ARRAY<STRUCT<x: INT>>"
    )
    (tmp_path / "in" / "a.json").write_text(json.dumps(row) + "\n")
    config |= {"source.format": "json", "source.schema": types}
    assert failures(run(config)) == []
    plain = rows(tmp_path / "out")
    of_expect = {"transforms.t.type": "expect", "transforms.t.on.violation": "dead-letter"}
    of_expect |= {"transforms.t.expect.never": "false"}
    of_query = {
        "transforms.t.type": "sql",
        "transforms.t.query": "SELECT *, CAST(s || 'x' AS DATE) AS never FROM input",
    }
    for number, broken in enumerate((of_expect, of_query)):
        ledger.logged.clear()
        places = {
            "sink.path": f"{tmp_path}/out{number}",
            f"{QUEUE}.path": f"{tmp_path}/bad{number}",
        }
        assert failures(run({**config, **places, "transforms": "t", **broken})) == []
        assert rows(tmp_path / f"out{number}") == []
        retry(run, ledger, {**config, **places})
        assert rows(tmp_path / f"out{number}") == plain


def letter(**fields: Any) -> str:
    known = {"connector": "c", "task": 0, "stage": "source", "position": {"file": "/in/a"}}
    return json.dumps({**known, "reason": "bad", "time": "2026-01-01T00:00:00.000Z", **fields})


@pytest.mark.spark
def test_what_a_letter_has_lost_is_not_guessed(
    run: Run, config: Config, ledger: MemoryLedger, tmp_path: Path
) -> None:
    lines = {
        letter(format="csv", columns=["s", "n"], raw="x,1"): "",
        letter(format="csv", columns=["n"], raw="2"): "",
        letter(format="row", raw='{"n": 3}'): "",
        letter(connector="other", format="row", raw='{"n": 4}'): "",
        letter(format="csv", columns=["n", "s"], raw="\ufffd,1"): "stands for bytes",
        letter(format="csv", columns=["n", "t"], raw="5,1"): "has no column t",
        letter(format="row", raw='{"n": 6, "t": 1}'): "has no column t",
        letter(format="row", raw='{"n": 7} {"n": 8}'): "not a JSON object",
        letter(format="json", raw='{"n": 9}'): "its text is json, and source.format is csv",
        letter(raw='{"n": 10}'): "since a transform had changed it",
        letter(): "has no text",
    }
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "part.json").write_text("".join(f"{each}\n" for each in lines))
    made = retry_of(config) | {"source.schema.is.inferred": "true"}
    assert failures(run(made)) == []
    assert rows(tmp_path / "out") == [{"n": 1, "s": "x"}, {"n": 2}, {"n": 3}]
    refused = {each.get("raw"): each["reason"] for each in rows(tmp_path / "bad-retry")}
    expected = {json.loads(line).get("raw"): why for line, why in lines.items() if why}
    assert refused.keys() == expected.keys()
    for raw, why in expected.items():
        assert why in refused[raw]
    ledger.logged.clear()


def test_the_config_has_the_transforms_and_the_sink_and_the_letters_as_its_source(
    config: Config,
) -> None:
    del config["source.schema"]
    config |= {
        "source.glob": "*.csv",
        "source.separator": ";",
        "sink.adopt": "true",
        "errors.max.ratio": "0.1",
        "labels": "a=b",
    }
    config |= {"transforms": "t", "transforms.t.type": "select", "transforms.t.columns": "n"}
    config["transforms.t.columns"] = "user_metadata"
    made = retry_of(config, {"task.schema": "n INT"})
    same = config.keys() - {"source.glob", "sink.adopt", "errors.max.ratio"}
    same -= {"name", "source.path", "labels"}
    bad = config[f"{QUEUE}.path"]
    assert made == {
        **{key: config[key] for key in same},
        "name": "c-retry",
        "labels": "a=b, retry-of=c",
        "source.type": "dead-letters",
        "source.connector": "c",
        "source.path": bad,
        "source.schema": "n INT",
        "source.schema.is.inferred": "true",
        f"{QUEUE}.path": f"{bad}-retry",
    }
    assert SparkPipeline.validate(made).errors == {}
    again = dict(SparkPipeline.retry_config(made, {}, "c-retry-retry"))
    assert again["source.connector"] == "c-retry"
    assert again["source.path"] == f"{bad}-retry"
    assert SparkPipeline.validate(again).errors == {}


def kafka(**more: str) -> Config:
    keys = {"source.type": "kafka", "source.topics": "t", "source.bootstrap.servers": "h:1"}
    return {**keys, **{f"source.{key.replace('_', '.')}": value for key, value in more.items()}}


def test_letters_of_records_are_read_as_texts_or_as_json(config: Config) -> None:
    base = {key: value for key, value in config.items() if not key.startswith("source.")}
    made = retry_of({**base, **kafka()})
    assert made["source.schema"] == "_value STRING"
    assert "source.topics" not in made
    json_keys = kafka(value_converter="json", value_converter_schemas_enable="false", password="x")
    made = retry_of({**base, **json_keys}, {"task.kafka.schema": "n INT"})
    assert {key: made[key] for key in made if key.startswith("source.")} == {
        "source.type": "dead-letters",
        "source.path": config[f"{QUEUE}.path"],
        "source.connector": "c",
        "source.format": "json",
        "source.schema": "n INT",
        "source.schema.is.inferred": "true",
    }


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({f"{QUEUE}.path": ""}, f"{QUEUE}.path is not set"),
        ({f"{QUEUE}.path": "${env:X}"}, "which only workers resolve"),
        ({f"{QUEUE}.topic.name": "t"}, "do not say whose they are"),
        ({"source.schema": ""}, "its schema is not known before its first task has run"),
        ({"source.type": "jdbc"}, "rows of source.type=jdbc have no columns and no text"),
        (kafka(value_converter="avro"), "values of source.value.converter=avro cannot be read"),
        (kafka(value_converter="json"), "schemas.enable=true cannot be read"),
        (kafka(metadata_columns="key"), "source.metadata.columns adds columns to its rows"),
        (
            {"transforms.t.query": "SELECT input_file_name() AS f FROM input"},
            "transforms.t.query asks for the file of a row",
        ),
    ],
)
def test_it_is_said_why_letters_cannot_be_retried(config: Config, more: Config, told: str) -> None:
    with pytest.raises(LettersRefused, match=told.replace("$", r"\$")):
        retry_of(config | more)


def test_letters_lack_the_columns_that_folders_name(config: Config) -> None:
    with pytest.raises(LettersRefused, match="folders name columns of its rows"):
        retry_of(config, {"task.folder.columns": '["day"]'})
