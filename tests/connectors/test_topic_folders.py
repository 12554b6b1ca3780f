# pyright: basic
"""A folder of parquet files for each topic, as one sink: its columns, its commits, its names."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pyarrow.parquet as papq
import pytest

from fairlead.events.commits import Commit, CommitId
from fairlead.runtime.pipeline.batches.batch import Batch, Target
from fairlead.runtime.pipeline.connectors import pipeline_keys as keys
from fairlead.runtime.pipeline.spi.connector import Pace, Pipeline
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.errors import BadInput, RowsRefused, SchemaRefused
from fairlead.runtime.pipeline.spi.rows import COLUMNS_OF_TOPICS, TYPE_CONFLICT
from fairlead.runtime.pipeline.spi.sink import TaskOwnership
from fairlead.runtime.pipeline.spi.source import BatchPlan, Limit
from fairlead.runtime.pipeline.stores.files.sink.sink_type import FilesSinkType
from fairlead.runtime.pipeline.stores.files.sink.topic_folders import TopicFolderSink
from fairlead_tests.connectors.sinks import FIRST, SECOND, TASK, Log, claimed

ORDERS, CLIENTS = "shop.orders", "shop.clients"
ROWS = (
    {"_topic": ORDERS, "id": 1, "price": 2.5},
    {"_topic": CLIENTS, "id": 7, "name": "Ann"},
    {"_topic": ORDERS, "id": 2, "price": None},
)
COLUMNS = {ORDERS: ["_topic", "id", "price"], CLIENTS: ["_topic", "id", "name"]}


def table(*rows: Mapping[str, Any], columns: Mapping[str, Sequence[str]] = COLUMNS) -> Any:
    told = {topic: {each: each for each in names} for topic, names in columns.items()}
    names = dict.fromkeys(name for row in rows for name in row)
    made = pa.table({name: [row.get(name) for row in rows] for name in names})
    return made.replace_schema_metadata({COLUMNS_OF_TOPICS: json.dumps(told).encode()})


def sink_at(path: str, **more: str) -> TopicFolderSink:
    given = claimed(Path(path), "a", None, sink_format="parquet", **more)
    settings = keys.task_keys_of(given).parse(given)
    made = FilesSinkType.sink(Context(TASK, print, cluster_id="a"), given, settings)
    assert isinstance(made, TopicFolderSink)
    return made


def write(sink: TopicFolderSink, rows: Any, log: Log, token: Any = FIRST) -> Commit:
    """Stage a batch, and commit it."""
    batch = log.last.batch + 1 if log.last and log.last.token == token else 0
    commit_id = CommitId(*TASK, token, batch)
    made = Commit(commit_id, (), sink.stage(rows, commit_id, rows.nbytes), rows.num_rows)
    log.last = commit_id
    return made


def begin(sink: TopicFolderSink, log: Log, token: Any = FIRST) -> None:
    sink.acquire(TaskOwnership(TASK, token, log.last, None, log.place))


def found(root: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each folder that a reader would take for a table."""
    files = [each for each in root.rglob("part-*.parquet") if "_fairlead" not in each.parts]
    folders = sorted({each.parent for each in files})
    return {str(each.relative_to(root)): papq.read_table(each).to_pylist() for each in folders}


@pytest.mark.parametrize(
    ("inside", "root", "clients", "orders"),
    [
        ("${topic}", "", CLIENTS, ORDERS),
        ("day=1/${table}/rows", "day=1", "clients/rows", "orders/rows"),
        ("of-${table}", "", "of-clients", "of-orders"),
    ],
)
def test_each_topic_has_a_folder_with_its_own_columns(
    tmp_path: Path, inside: str, root: str, clients: str, orders: str
) -> None:
    log, sink = Log(), sink_at(f"{tmp_path}/{inside}")
    begin(sink, log)
    made = write(sink, table(*ROWS), log)
    assert Path(made.manifest.root) == tmp_path / root
    assert (tmp_path / root / "_fairlead").is_dir()
    assert found(tmp_path) == {}
    assert (made.manifest.rows, made.manifest.files) == (3, 2)
    for _ in range(2):
        sink.publish(made.manifest, made.commit_id, 0)
        assert found(tmp_path / root) == {
            clients: [{"id": 7, "name": "Ann"}],
            orders: [{"id": 1, "price": 2.5}, {"id": 2, "price": None}],
        }


def test_a_batch_that_was_committed_is_published_whole_by_another_process(tmp_path: Path) -> None:
    log, path = Log(), f"{tmp_path}/${{topic}}"
    sink = sink_at(path)
    begin(sink, log)
    made = write(sink, table(*ROWS), log)
    lost = write(sink, table(*ROWS), log)
    other = sink_at(path)
    log.last = made.commit_id
    begin(other, log, SECOND)
    other.publish(made.manifest, made.commit_id, 0)
    other.sweep(TASK, FIRST)
    assert {topic: len(rows) for topic, rows in found(tmp_path).items()} == {CLIENTS: 1, ORDERS: 2}
    assert not (tmp_path / lost.manifest.staging).exists()


def test_two_topics_of_one_folder_share_its_columns_and_lose_no_file(tmp_path: Path) -> None:
    log, sink = Log(), sink_at(f"{tmp_path}/${{table}}")
    begin(sink, log)
    rows = [{"_topic": topic, "id": at} for at, topic in enumerate(("a.x", "b.x"))]
    made = write(
        sink, table(*rows, columns={"a.x": ["_topic", "id"], "b.x": ["_topic", "id"]}), log
    )
    sink.publish(made.manifest, made.commit_id, 0)
    assert found(tmp_path) == {"x": [{"id": 0}, {"id": 1}]}


def test_a_column_that_a_topic_gets_is_for_its_folder_alone(tmp_path: Path) -> None:
    first = table({"_topic": ORDERS, "id": 1}, columns={ORDERS: ["_topic", "id"]})
    wider = table(ROWS[0], columns=COLUMNS)
    other = table({"_topic": CLIENTS, "id": "x"}, columns={CLIENTS: ["_topic", "id"]})
    log, path = Log(), f"{tmp_path}/${{topic}}"
    sink = sink_at(path)
    begin(sink, log)
    for each in (first, other):
        made = write(sink, each, log)
        sink.publish(made.manifest, made.commit_id, 0)
    with pytest.raises(SchemaRefused, match=rf"{ORDERS} have no column `price` DOUBLE"):
        sink.stage(wider, CommitId(*TASK, FIRST, 9), 1)
    may = sink_at(path, sink_auto_evolve="true")
    begin(may, log, SECOND)
    made = write(may, wider, log, SECOND)
    may.publish(made.manifest, made.commit_id, 1)
    rows = found(tmp_path)
    assert rows[CLIENTS] == [{"id": "x"}]
    assert {each["id"] for each in rows[ORDERS]} == {1}
    assert len(rows[ORDERS]) == 2


@pytest.mark.parametrize(
    "topic", ["..", ".", "a/b", "_fairlead", "", "t" * 256, "a\0b", "../a"], ids=ascii
)
def test_a_topic_that_names_no_folder_is_refused_with_its_row(tmp_path: Path, topic: str) -> None:
    log, sink = Log(), sink_at(f"{tmp_path}/lake/${{topic}}")
    begin(sink, log)
    rows = table({"_topic": topic, "id": 1}, columns={topic: ["_topic", "id"]})
    with pytest.raises(RowsRefused, match="of a row names no folder by"):
        write(sink, rows, log)
    assert [each.name for each in tmp_path.iterdir()] == ["lake"]


def test_rows_without_a_topic_are_refused_with_what_helps(tmp_path: Path) -> None:
    log, sink = Log(), sink_at(f"{tmp_path}/${{topic}}")
    begin(sink, log)
    with pytest.raises(SchemaRefused, match=r"source\.metadata\.columns=topic"):
        write(sink, pa.table({"id": [1]}), log)
    with pytest.raises(RowsRefused, match=r"no _topic, on which sink\.path depends"):
        write(sink, pa.table({"id": [1], "_topic": pa.nulls(1, pa.string())}), log)


def test_two_types_of_one_name_are_for_sinks_that_keep_topics_apart(tmp_path: Path) -> None:
    rows = pa.table({"_topic": ["a", "b"], "id": [1, None], "id (b)": [None, "x"]})
    told = {"a": {"_topic": "_topic", "id": "id"}, "b": {"_topic": "_topic", "id": "id (b)"}}
    marked = {COLUMNS_OF_TOPICS: json.dumps(told).encode(), TYPE_CONFLICT: b"two types"}
    rows = rows.replace_schema_metadata(marked)
    log, sink = Log(), sink_at(f"{tmp_path}/${{topic}}")
    begin(sink, log)
    source = MagicMock()
    source.table.return_value = source.read.return_value = rows
    source.rejects.return_value = ()
    source.blame.return_value, source.narrow.return_value = None, False
    pipeline = Pipeline(source, (), sink, Pace(Limit(1, 1, 1)))
    commit_id = CommitId(*TASK, FIRST, 0)
    batch = Batch(pipeline, Target(sink), BatchPlan((rows,), (), 1, 2), commit_id)
    staged = batch.run_held()
    assert staged is not None
    sink.publish(staged.manifest, commit_id, 0)
    assert found(tmp_path) == {"a": [{"id": 1}], "b": [{"id": "x"}]}

    other = MagicMock(parts_topics=False)
    together = replace(batch, pipeline=replace(pipeline, sink=other))
    with pytest.raises(BadInput, match="two types"):
        together.run(MagicMock())
    with pytest.raises(BadInput, match="two types"):
        together.run_held()
