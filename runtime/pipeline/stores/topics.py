# pyright: basic, reportAttributeAccessIssue=false
"""The rows of a batch by the topics of their records, where a target's name depends on the topic.

The name of a table or folder may have `${topic}`, or `${table}`: what stands behind the last dot of
the topic. A batch is one table all the same. Its metadata tell which columns each topic has, and
under which names, since two topics may give one name to two types (`COLUMNS_OF_TOPICS`).
"""

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa

from ..batches.topics import TOPIC, parts_of
from ..spi.errors import RowsRefused, SchemaRefused

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
    yield from parts_of(table)
