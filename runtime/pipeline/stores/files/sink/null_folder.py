# pyright: basic
"""Partition values without a folder of their own: bytes, which are refused, and two texts.

Spark and Hive write the empty text, the text `__HIVE_DEFAULT_PARTITION__` and null to one folder,
and read them as null. All readers expect that, so it stays; but there is a warning, since the
values of these rows change.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, StringType, StructType

from ....batches.counting import RowAggregates
from ....engines.spelling import quoted
from ....spi.errors import SchemaRefused
from .. import keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"
"""The name of the folder for null."""
_LOST: Final = "lost"


def refuse_bytes(schema: StructType, folders: Sequence[str]) -> None:
    """Raise `SchemaRefused` for BINARY partition columns, which would be read as text."""
    names = {each.lower() for each in folders}
    for each in schema.fields:
        if isinstance(each.dataType, BinaryType) and each.name.lower() in names:
            raise SchemaRefused(
                f"column {quoted(each.name)} of {keys.SINK_PARTITION_BY} is BINARY, and bytes "
                "cannot name a folder. Nothing was written: convert it to text by a transform "
                "(hex, base64), or remove it there"
            )


class NullFolderCounter:
    """Counts the rows of each batch whose folder means null, and warns once."""

    def __init__(self, folders: Sequence[str], warn: Callable[[str], None]) -> None:
        """Watch the partition columns, whose names are case insensitive."""
        self._folders = frozenset(each.lower() for each in folders)
        self._warn = warn
        self._has_warned = False
        self._aggregates: RowAggregates | None = None
        """Counts the rows of the batch; None: there is nothing to count."""

    def watch(self, rows: "DataFrame") -> "DataFrame":
        """Return the rows of a batch with the count added to their plan."""
        self._aggregates = None
        if self._has_warned or not self._folders:
            return rows
        is_lost = [
            sf.col(quoted(each.name)).isin("", NULL_FOLDER)
            for each in rows.schema.fields
            if isinstance(each.dataType, StringType) and each.name.lower() in self._folders
        ]
        if not is_lost:
            return rows
        self._aggregates = RowAggregates()
        return self._aggregates.on(rows, sf.count_if(reduce(or_, is_lost)).alias(_LOST))

    def warn(self) -> None:
        """Warn about the rows of the batch, after it was written."""
        aggregates, self._aggregates = self._aggregates, None
        found = int(aggregates.values.get(_LOST) or 0) if aggregates else 0
        if found:
            self._has_warned = True
            self._warn(
                f"{found} rows of a batch have an empty text, or the text {NULL_FOLDER}, in a "
                f"column of {keys.SINK_PARTITION_BY}: they were written to the folder of null, "
                "and are read as null. If that matters, change the text by a transform; this "
                "warning is not repeated"
            )
