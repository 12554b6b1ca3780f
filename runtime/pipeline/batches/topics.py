# pyright: basic, reportAttributeAccessIssue=false
"""Tables of several topics as one table that tells their columns, and back.

A batch is one table, whatever it has records of. Where two topics give one name to two types, the
second has another name there; a target for each topic gets the names that it has itself.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ..spi.rows import COLUMNS_OF_TOPICS, TYPE_CONFLICT

TOPIC: Final = "_topic"
"""The column with the topic of a record."""
_CONFLICT: Final = (
    "column {0} is {1} in records of {2} and {3} in those of {4}: a target has one type"
    " for each name, so have one for each topic (${{topic}} in the name of the table or folder, and"
    " source.metadata.columns=topic), or write these topics by connectors of their own"
)


def joined(parts: Sequence[tuple[str, Any]], hidden: str = "") -> Any:  # noqa: ANN401  # untyped
    """Return the rows of tables, each of one topic, as one table that tells their columns.

    A column is `hidden` from these. Raises `pa.ArrowException` if those of one topic differ.
    """
    types: dict[str, tuple[Any, str]] = {}
    """The type of each column, and the topic that it is from."""
    names: dict[str, dict[str, str]] = {}
    conflict, renamed = "", list[Any]()
    for topic, table in parts:
        of_topic = names.setdefault(topic, {})
        for column in table.schema:
            if column.name in of_topic:
                continue
            name = column.name
            kind, other = types.setdefault(name, (column.type, topic))
            if kind != column.type:
                conflict = conflict or _CONFLICT.format(name, column.type, topic, kind, other)
                name = f"{name} ({topic})"
                types[name] = column.type, topic
            of_topic[column.name] = name
        renamed.append(table.rename_columns([of_topic[each] for each in table.column_names]))
    shown = {topic: {**own} for topic, own in names.items()}
    for own in shown.values():
        own.pop(hidden, None)
    metadata = {COLUMNS_OF_TOPICS: json.dumps(shown).encode()}
    metadata |= {TYPE_CONFLICT: conflict.encode()} if conflict else {}
    whole = pa.concat_tables(renamed, promote_options="default")
    return whole.replace_schema_metadata(metadata)


def parts_of(table: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401  # as above
    """Yield each topic of a table with its rows, in their order, and with its own columns."""
    topics = table[TOPIC].cast(pa.string())
    found = pc.unique(topics).to_pylist()
    told = json.loads((table.schema.metadata or {}).get(COLUMNS_OF_TOPICS, "{}"))
    for topic in found:
        is_of_topic = pc.is_null(topics) if topic is None else pc.equal(topics, topic)
        rows = table if len(found) == 1 else table.filter(is_of_topic)
        own = {name: column for column, name in told.get(str(topic), {}).items()}
        kept = rows.select([each for each in rows.column_names if each in own]) if own else rows
        yield topic, kept.rename_columns([own.get(each, each) for each in kept.column_names])
