# pyright: basic, reportAttributeAccessIssue=false
"""The rows of a batch by the topics of their records, where a target's name depends on the topic.

The name of a table or folder may have `${topic}`, or `${table}`: what stands behind the last dot of
the topic. A batch is one table all the same. Its metadata tell which columns each topic has, and
under which names, since two topics may give one name to two types (`COLUMNS_OF_TOPICS`).
"""

import json
from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from ..spi.errors import RowsRefused, SchemaRefused
from ..spi.rows import COLUMNS_OF_TOPICS

TOPIC: Final = "_topic"
"""The column with the topic of a record."""
_TARGETS: Final = ("sink.path", "sink.table.name.format")
_IN_NAMES: Final = ("${topic}", "${table}")


def depends_on_topic(name: str) -> bool:
    """Return whether there is a target for each topic."""
    return any(each in name for each in _IN_NAMES)


def has_target_for_each_topic(config: Mapping[str, str]) -> bool:
    """Return whether the sink of a config has a table or a folder for each topic."""
    return any(depends_on_topic(config.get(each, "")) for each in _TARGETS)


def name_of_topic(name: str, topic: str) -> str:
    """Return the name of a topic's target."""
    return name.replace("${topic}", topic).replace("${table}", topic.rpartition(".")[2])


def rows_of_topics(table: pa.Table, key: str) -> Iterator[tuple[str, pa.Table]]:
    """Yield each topic with its rows, in their order, and with its own columns.

    Raises `SchemaRefused` or `RowsRefused`, which name the key of the target, if rows do not tell
    their topics.
    """
    if TOPIC not in table.column_names:
        raise SchemaRefused(
            f"rows have no column {TOPIC} that tells their topic: set {key} without ${{topic}} and "
            "${table}, or have the column (source.metadata.columns=topic, or a transform)"
        )
    topics = table[TOPIC].cast(pa.string())
    if topics.null_count:
        raise RowsRefused(
            f"a row has no {TOPIC}, on which {key} depends: give it one by a transform. Nothing of "
            "the batch was written"
        )
    found = pc.unique(topics).to_pylist()
    for topic in found:
        rows = table if len(found) == 1 else table.filter(pc.equal(topics, topic))
        yield topic, _with_own_columns(topic, rows)


def _with_own_columns(topic: str, rows: pa.Table) -> pa.Table:
    told = (rows.schema.metadata or {}).get(COLUMNS_OF_TOPICS)
    if told is None:
        return rows
    own = {name: column for column, name in json.loads(told)[topic].items()}
    kept = rows.select([each for each in rows.column_names if each in own])
    return kept.rename_columns([own[each] for each in kept.column_names])
