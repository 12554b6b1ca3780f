# pyright: basic
"""Values that name no folder of their own: bytes, which are refused, and two texts.

Spark and Hive have one folder for these and for null, and read null. That is what users of Spark
know, and what any reader of such folders makes of them, so it stays so. It is told, since the rows
are not what they were.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, StringType, StructType

from ....batches.counting import Passing
from ....spark.spelling import quoted
from ....spi.errors import SchemaRefused
from .. import keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"
"""What the folder of null is called."""
_LOST: Final = "lost"


def refuse_bytes(schema: StructType, folders: Sequence[str]) -> None:
    """Raise `SchemaRefused` for bytes that are to name folders: they would be read as a text."""
    names = {each.lower() for each in folders}
    for each in schema.fields:
        if isinstance(each.dataType, BinaryType) and each.name.lower() in names:
            raise SchemaRefused(
                f"column {quoted(each.name)} of {keys.SINK_PARTITION_BY} is BINARY, and no folder "
                "is named by bytes. Nothing was written: make a text of it by a transform (hex, "
                "base64), or leave it out there"
            )


class LostTexts:
    """Counts the rows of batches that have such texts, until the first ones were told."""

    def __init__(self, folders: Sequence[str], warn: Callable[[str], None]) -> None:
        """Take the columns that become folders, by names in any case."""
        self._folders = frozenset(each.lower() for each in folders)
        self._warn = warn
        self._is_told = False
        self._passing: Passing | None = None
        """What looks at the rows of the batch; None: there is nothing to look for."""

    def watch(self, rows: "DataFrame") -> "DataFrame":
        """Return the rows of a batch, which are looked at as they pass."""
        self._passing = None
        if self._is_told or not self._folders:
            return rows
        is_lost = [
            sf.col(quoted(each.name)).isin("", NULL_FOLDER)
            for each in rows.schema.fields
            if isinstance(each.dataType, StringType) and each.name.lower() in self._folders
        ]
        if not is_lost:
            return rows
        self._passing = Passing()
        return self._passing.on(rows, sf.count_if(reduce(or_, is_lost)).alias(_LOST))

    def tell(self) -> None:
        """Warn of what was found, once the batch is written."""
        passing, self._passing = self._passing, None
        found = int(passing.values.get(_LOST) or 0) if passing else 0
        if found:
            self._is_told = True
            self._warn(
                f"{found} rows of a batch have an empty text, or the text {NULL_FOLDER}, in a "
                f"column of {keys.SINK_PARTITION_BY}: no folder stands for that, so they are in "
                "the one of null, and read as null. Where that matters, change the text by a "
                "transform; this is told once"
            )
