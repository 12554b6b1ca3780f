# pyright: basic
"""Topics with columns of their own, into a folder for each; and what a batch of them is."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as papq
import pytest

from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.spi.rows import COLUMNS_OF_TOPICS
from fairlead.runtime.pipeline.stores.topics import rows_of_topics
from fairlead_tests.kafka.pipes import Reading, envelope, run_connector, source_config
from fairlead_tests.kafka.schema_registry import SchemaRegistryServer, framed, record
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.tasks.memory_ledger import MemoryLedger

pytestmark = pytest.mark.spark

PLAIN = {"value_converter": "json", "value_converter_schemas_enable": "false"}


def apart(topics: Topics, topic: str, folder: Path, **given: str) -> dict[str, str]:
    """Return a config that reads the topics which begin with a name into folders."""
    named = {"topics_regex": f"{topic}[.].*", "metadata_columns": "topic"}
    config = source_config(topics.bootstrap, **named, **given)
    return {**config, "sink.path": f"{folder}/${{topic}}", "task.restart.budget": "0"}


def found(folder: Path, topic: str) -> dict[str, Any]:
    """Return the rows of each folder, by the end of its topic."""
    return {
        each.name.removeprefix(f"{topic}."): papq.read_table(each).to_pylist()
        for each in folder.glob(f"{topic}.*")
    }


def written(topics: Topics, topic: str, values: Mapping[str, Any]) -> None:
    for name, each in values.items():
        topics.write(topics.make(f"{topic}.{name}"), [each])


def test_each_topic_has_its_own_columns_and_types_in_its_folder(
    engine: Embedded, topics: Topics, topic: str, tmp_path: Path
) -> None:
    written(topics, topic, {"a": '{"id": 1, "price": 2.5}', "b": '{"id": "x", "tags": ["t"]}'})
    run_connector(engine, MemoryLedger(), apart(topics, topic, tmp_path / "plain", **PLAIN), 2)
    assert found(tmp_path / "plain", topic) == {
        "a": [{"id": 1, "price": 2.5}],
        "b": [{"id": "x", "tags": ["t"]}],
    }


def test_so_do_topics_of_envelopes(
    engine: Embedded, topics: Topics, topic: str, tmp_path: Path
) -> None:
    number = envelope([{"field": "id", "type": "int64"}], {"id": 1})
    word = envelope([{"field": "id", "type": "string"}], {"id": "x"})
    written(topics, topic, {"a": number, "b": word})
    run_connector(engine, MemoryLedger(), apart(topics, topic, tmp_path, value_converter="json"), 2)
    assert found(tmp_path, topic) == {"a": [{"id": 1}], "b": [{"id": "x"}]}


def test_so_do_topics_with_subjects_of_their_own(
    engine: Embedded,
    topics: Topics,
    topic: str,
    tmp_path: Path,
) -> None:
    registry = SchemaRegistryServer()
    kinds = {"a": record(("id", "long")), "b": record(("id", "string"), ("n", "int"))}
    rows = {"a": {"id": 1}, "b": {"id": "x", "n": 2}}
    for name, kind in kinds.items():
        number = registry.add(f"{topic}.{name}-value", json.dumps(kind))
        written(topics, topic, {name: framed(number, kind, rows[name])})
    url = {"value_converter_schema_registry_url": registry.url}
    config = apart(topics, topic, tmp_path, value_converter="avro", **url)
    try:
        run_connector(engine, MemoryLedger(), config, 2)
    finally:
        registry.down()
    assert found(tmp_path, topic) == {name: [row] for name, row in rows.items()}


def test_a_topic_without_records_has_its_columns_from_its_first_ones(
    engine: Embedded, topics: Topics, topic: str, tmp_path: Path
) -> None:
    written(topics, topic, {"a": '{"id": 1}'})
    topics.make(f"{topic}.b")
    reading = Reading(apart(topics, topic, tmp_path, **PLAIN))
    try:
        for name, value in (("b", None), ("b", '{"id": "x"}'), ("a", '{"id": 2}')):
            topics.write(f"{topic}.{name}", [value])
        rows: dict[str, list[Any]] = {}
        while sum(map(len, rows.values())) < 4:
            plan = reading.plan()
            table: Any = engine.run("test", partial(reading.take, plan))
            assert COLUMNS_OF_TOPICS in table.schema.metadata
            for name, own in rows_of_topics(table, "sink.path"):
                rows.setdefault(name[-1], []).extend(own.drop_columns(["_topic"]).to_pylist())
        assert rows["a"] == [{"id": 1}, {"id": 2}]
        assert rows["b"] in ([{"id": None}, {"id": "x"}], [{}, {"id": "x"}])
        reading.again()
        known = json.loads(reading.split[0]["task.kafka.topics"])
        schemas = {name[-1]: each["task.kafka.schema"] for name, each in known.items()}
        assert schemas == {"a": "`id` BIGINT", "b": "`id` STRING"}
    finally:
        reading.source.close()


def test_bad_records_of_each_topic_are_told_with_their_own_places(
    engine: Embedded, topics: Topics, topic: str, tmp_path: Path
) -> None:
    written(topics, topic, {"a": '{"id": 1}', "b": '{"id": "x"}'})
    config = apart(topics, topic, tmp_path, **PLAIN) | {
        "errors.tolerance": "all",
        "errors.deadletterqueue.path": str(tmp_path / "bad"),
    }
    reading = Reading(config)
    try:
        for name in "ab":
            topics.write(f"{topic}.{name}", ["no object"])
        bad: list[str] = []

        def job(spark: Any) -> list[str]:
            table = reading.take(reading.plan(), spark)
            assert COLUMNS_OF_TOPICS in table.schema.metadata
            rejects = reading.source.rejects()
            assert all(each.count() == each.frame.count() for each in rejects)
            found = [row for each in rejects for row in each.frame.toArrow().to_pylist()]
            return [dict(each["position"])["topic"][-1] for each in found]

        while len(bad) < 2:
            bad += engine.run("test", job)
        assert sorted(bad) == ["a", "b"]
    finally:
        reading.source.close()


def transformed(**keys: str) -> dict[str, str]:
    return {f"transforms.t.{key.replace('_', '.')}": each for key, each in keys.items()} | {
        "transforms": "t"
    }


def test_transforms_see_the_table_of_each_topic(
    engine: Embedded, topics: Topics, topic: str, tmp_path: Path
) -> None:
    written(topics, topic, {"a": '{"id": 1, "n": 2}', "b": '{"id": "x"}', "c": '{"id": null}'})
    config = apart(topics, topic, tmp_path, **PLAIN) | transformed(
        type="sql", query="SELECT *, typeof(id) AS kind FROM input WHERE id IS NOT NULL"
    )
    run_connector(engine, MemoryLedger(), config, 2)
    assert found(tmp_path, topic) == {
        "a": [{"id": 1, "n": 2, "kind": "bigint"}],
        "b": [{"id": "x", "kind": "string"}],
    }


def test_rows_that_a_transform_rejects_or_fails_for_are_bad_rows_of_their_topics(
    engine: Embedded, topics: Topics, topic: str, tmp_path: Path
) -> None:
    for name, values in {"a": [1, 2, 3], "b": [4, 0, 6]}.items():
        topics.write(topics.make(f"{topic}.{name}"), [f'{{"id": {each}}}' for each in values])
    letters = {"errors.tolerance": "all", "errors.deadletterqueue.path": str(tmp_path / "bad")}
    rules = {"expect_small": "id < 6", "on_violation": "dead-letter"}
    config = apart(topics, topic, tmp_path / "expect", **PLAIN) | letters
    run_connector(engine, MemoryLedger(), config | transformed(type="expect", **rules), 5)
    assert found(tmp_path / "expect", topic) == {
        "a": [{"id": 1}, {"id": 2}, {"id": 3}],
        "b": [{"id": 4}, {"id": 0}],
    }
    config = apart(topics, topic, tmp_path / "sql", **PLAIN) | letters
    failing = transformed(type="select", columns="_topic, 12 div id AS part")
    ledger = MemoryLedger()
    run_connector(engine, ledger, {**config, "name": "divided"} | failing, 5)
    assert found(tmp_path / "sql", topic) == {
        "a": [{"part": 12}, {"part": 6}, {"part": 4}],
        "b": [{"part": 3}, {"part": 2}],
    }
    parts = [each for each in (tmp_path / "bad").rglob("*.json") if "_fairlead" not in each.parts]
    bad = [json.loads(row) for each in parts for row in each.read_text().splitlines()]
    assert sorted(each["stage"] for each in bad) == ["transform", "transform"]
    assert sorted(json.loads(each["raw"])["id"] for each in bad) == [0, 6]
