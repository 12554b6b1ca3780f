# pyright: basic, reportAttributeAccessIssue=false
"""A batch of proved files, which tasks of Spark read with Arrow in parts of about equal size."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from ....formats.csv.arrow_reader import CsvReading, TextRange, read_ranges
from ....spi.rows import ArrowSchema, ArrowTable, PartedRows, Unproved

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class FileParts(PartedRows):
    """The rows of proved files."""

    def __init__(
        self,
        how: CsvReading,
        files: Sequence[TextRange],
        frame: "Callable[[], DataFrame]",
        rest: "Callable[[], DataFrame] | None" = None,
        *,
        is_small: bool = False,
    ) -> None:
        """Start with whole files; `frame` reads the batch by Spark, `rest` its other files."""
        self._how = how
        self._files = files
        self._frame = frame
        self._rest = rest
        self._is_small = is_small

    @property
    def schema(self) -> ArrowSchema:
        """The columns' names and types."""
        return cast("ArrowSchema", self._how.schema)

    def parts(self, most: int) -> Sequence[Callable[[], Iterator[ArrowTable]]]:
        """Return functions that read whole chunks."""
        return [partial(read_ranges, self._how, each) for each in split(self._files, most)]

    def table(self) -> ArrowTable:
        """Read the parts in this process; raises `Unproved`."""
        try:
            tables = [*read_ranges(self._how, self._files)]
        except (pa.ArrowException, OSError) as error:
            raise Unproved(str(error)) from error
        return cast("ArrowTable", pa.concat_tables([self._how.schema.empty_table(), *tables]))

    @property
    def is_small(self) -> bool:
        """Whether they are better read in this process."""
        return self._is_small

    @property
    def rest(self) -> "Callable[[], DataFrame] | None":
        """Returns the rows of files that are not proved; None: there are none."""
        return self._rest

    def frame(self) -> "DataFrame":
        """Return all rows as Spark's reader has them."""
        return self._frame()


def split(files: Sequence[TextRange], most: int) -> list[list[TextRange]]:
    """Return the chunks of files in up to `most` parts of about as many bytes.

    A compressed file is in one part, since it is unpacked from its beginning.
    """
    total = sum(each.cuts[-1] - each.cuts[0] for each in files)
    parts: list[list[TextRange]] = []
    done = 0
    for file in files:
        begun = 0  # the first chunk of the file that is in no part yet
        chunks = [(file.cuts[0], file.cuts[-1])] if file.codec else pairwise(file.cuts)
        for number, (begin, end) in enumerate(chunks):
            # A chunk belongs to the part that has its middle.
            part = min(most - 1, (2 * done + end - begin) * most // (2 * total)) if total else 0
            if part >= len(parts):
                if number > begun:
                    parts[-1].append(file._replace(cuts=file.cuts[begun : number + 1]))
                    begun = number
                parts.append([])
            done += end - begin
        parts[-1].append(file._replace(cuts=file.cuts[begun:]))
    return parts
