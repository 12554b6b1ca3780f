"""Reads files of dead letters as files are read, and the rows in them as their source had them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from ....batches.frames import rows_of
from ....spi.context import Context
from ....spi.rows import Rejects
from ....spi.source import Limit
from ..source.formats import ReadFormat
from ..source.listing import SourceFile
from ..source.offsets import Folder
from ..source.source import FileSource
from .rows import LetterRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class LetterSource(FileSource):
    """Reads one task's part of the letters in a folder, oldest first."""

    def __init__(
        self,
        folder: Folder,
        letters: ReadFormat,
        context: Context,
        at_most: Limit,
        rows: LetterRows,
    ) -> None:
        """Start; `letters` is the format of their files, which `context` lets Spark read."""
        super().__init__(folder, letters, context, at_most)
        self._rows = rows
        self._refused: Sequence[Rejects] = ()
        """The letters of the last batch whose rows cannot be read again."""

    def read(self, spark: "SparkSession", ranges: Sequence[SourceFile]) -> "DataFrame":
        """Return the rows of letters; the letters of a batch are held in the worker."""
        self._refused = ()
        letters = cast("DataFrame", super().read(spark, ranges))
        frame, self._refused = self._rows.restore(spark, rows_of(self._rows.own(letters)))
        return frame

    def rejects(self) -> Sequence[Rejects]:
        """Return the letters whose rows cannot be read again, and lines that are no letters."""
        lines = [Rejects(each.frame.drop("format"), each.count) for each in super().rejects()]
        return [*lines, *self._refused]
