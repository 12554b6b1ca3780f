# pyright: basic
"""Transforms by Connect's names, from a config to files."""

import json
from pathlib import Path

import pytest
from connectors.conftest import Run

from fairlead.events.model import RunState

pytestmark = pytest.mark.spark


def test_a_chain_of_connects_transforms_changes_rows_on_their_way(
    folders: dict[str, str], run: Run, tmp_path: Path
) -> None:
    lines = [
        {"id": 1, "who": {"name": "Ann", "card": "1234"}, "ms": 0},
        {"id": 2, "who": None, "ms": None},
    ]
    (tmp_path / "in" / "a.json").write_text("".join(json.dumps(each) + "\n" for each in lines))
    package = "org.apache.kafka.connect.transforms."
    config = folders | {
        "source.format": "json",
        "sink.format": "json",
        "transforms": "flat, mask, when, tag, key, known",
        "transforms.flat.type": f"{package}Flatten$Value",
        "transforms.flat.delimiter": "_",
        "transforms.mask.type": f"{package}MaskField$Value",
        "transforms.mask.fields": "who_card",
        "transforms.mask.replacement": "****",
        "transforms.when.type": f"{package}TimestampConverter$Value",
        "transforms.when.field": "ms",
        "transforms.when.target.type": "string",
        "transforms.when.format": "yyyy-MM-dd",
        "transforms.tag.type": "InsertField",
        "transforms.tag.static.field": "from",
        "transforms.tag.static.value": "here",
        "transforms.key.type": "ValueToKey",
        "transforms.key.fields": "id",
        "transforms.known.type": "expect",
        "transforms.known.on.violation": "drop",
        "transforms.known.expect.named": "who_name IS NOT NULL",
    }
    reports = run(config)
    assert [each.trace for each in reports.statuses if each.trace] == []
    found = [
        json.loads(line)
        for file in sorted((tmp_path / "out").glob("*.json"))
        for line in file.read_text().splitlines()
    ]
    first = {"id": 1, "ms": "1970-01-01", "who_card": "****", "who_name": "Ann", "from": "here"}
    assert found == [first | {"_key": {"id": 1}}]
    assert [(each.rows_in, each.manifest.rows) for each in reports.commits] == [(2, 1)]


def test_a_violated_rule_fails_the_task_and_nothing_counts(
    folders: dict[str, str], run: Run, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text("n\n1\n-1\n")
    config = folders | {
        "source.format": "csv",
        "sink.format": "json",
        "transforms": "q",
        "transforms.q.type": "expect",
        "transforms.q.expect.positive": "n > 0",
    }
    reports = run(config)
    (failed,) = (each for each in reports.statuses if each.state is RunState.FAILED)
    assert "1 of 2 rows violate positive (n > 0)" in failed.trace
    assert (reports.commits, list((tmp_path / "out").glob("*.json"))) == ([], [])
