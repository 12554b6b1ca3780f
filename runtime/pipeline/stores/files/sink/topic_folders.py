# pyright: basic, reportAttributeAccessIssue=false
"""Folders of parquet files, one for each topic (`sink.path=/lake/${topic}`), as one sink.

What is above the first part of the path that names a topic is the root: it has the marks and the
staged files of all topics, so a batch is published as a whole. Below it each topic has a folder,
whose files have columns of their own; the column of the topic itself becomes that folder. All is
written by Arrow, in this process.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from ......events.commits import CommitId, Manifest
from ....batches.frames import arrow_schema_of, typed_rows_of
from ....batches.topics import TOPIC
from ....spi.errors import RowsRefused, SchemaRefused
from ....spi.rows import ArrowTable
from ...topics import name_of_topic, rows_of_topics
from .. import keys
from ..sink_folder import staging
from ..sink_folder.root import OpenRoot, SinkLocation, open_root
from .arrow_parts import aligned, write_table
from .columns import reconcile_columns
from .folder_sink import LONGEST_NAME, FolderSink
from .row_counts import counter_of
from .writing import WriteFormat, WrittenRows

_OWN: Final = "_fairlead"


class TopicFolderSink(FolderSink[ArrowTable]):
    """Appends the rows of each topic to a folder of its own."""

    takes_arrow: ClassVar[bool] = True

    def __init__(
        self,
        place: SinkLocation,
        path: str,
        warn: Callable[[str], None],
        *,
        file_bytes: int,
        may_evolve: bool,
    ) -> None:
        """`path` names the folder of a topic, and `file_bytes` the most of its rows in a file.

        `may_evolve`: new columns are added, and narrow ones widened.
        """
        super().__init__(place, warn, counter_of(WriteFormat("parquet")), names_rows=True)
        self._inside = str(Path(path).relative_to(place.root))
        self._file_bytes = file_bytes
        self._may_evolve = may_evolve

    @property
    def parts_topics(self) -> bool:
        """Each topic has a folder."""
        return True

    def stage(self, rows: ArrowTable, commit_id: CommitId, input_bytes: int) -> Manifest:
        """Write a batch to its staging folder, in a folder for each topic, and fsync it."""
        del input_bytes
        with open_root(self._place) as root:
            self._refuse_intruders(root, commit_id)
            where = staging.batch_folder(commit_id)
            staging.make_empty_folder(root.path / where)
            files = count = 0
            for topic, own in rows_of_topics(rows, keys.SINK_PATH):
                folder = self._folder_of(topic)
                table = self._columns_of(root, folder, own.drop_columns([TOPIC]))
                (root.path / where / folder).mkdir(parents=True, exist_ok=True)
                parts = 1 + own.nbytes // self._file_bytes
                written = write_table(table, table.schema, parts, root.path / where / folder, files)
                files += len(written)
                count += own.num_rows
            return self._staged(root, where, commit_id, WrittenRows(count))

    def _folder_of(self, topic: str) -> str:
        """Return the folder of a topic in the root; raises `RowsRefused` if it names none."""
        folder = name_of_topic(self._inside, topic)
        names = folder.split("/")
        is_below = folder.count("/") == self._inside.count("/") and names[0] != _OWN
        fits = all(len(each.encode()) <= LONGEST_NAME for each in names)
        if not (is_below and fits) or {"", ".", ".."} & {*names} or "\0" in folder:
            raise RowsRefused(
                f"the topic {topic!a} of a row names no folder by {keys.SINK_PATH}: change it "
                "by a transform. Nothing of the batch was written"
            )
        return folder

    def _columns_of(self, root: OpenRoot, folder: str, own: Any) -> Any:  # noqa: ANN401
        """Return rows with the columns that all files in their folder have."""
        try:
            table = typed_rows_of(own)
            columns = reconcile_columns(
                root.path,
                self._place,
                from_arrow_schema(table.schema, prefer_timestamp_ntz=True),
                may_evolve=self._may_evolve,
                folder=folder,
            )
            return aligned(table, arrow_schema_of(columns))
        except pa.ArrowException as error:
            why = str(error).partition("\n")[0]
            raise SchemaRefused(
                f"rows for {folder} have values that its files cannot: {why}"
            ) from None
