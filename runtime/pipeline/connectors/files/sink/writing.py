# pyright: basic
"""How Spark writes a batch to files: the format, its options, and into how many."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ....spark.sessions import cores_of
from ....spark.spelling import path_to_write
from ....spi.config import ParsedConfig
from .. import keys
from ..options import options_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LARGEST_PART = 64 << 20
_BYTES_PER_PART = 4 << 20
"""What is worth a Spark task of its own, so that a batch is written on all cores."""
_WRITE = {
    # Nobody reads a batch before it is published, so what the committer does to be safe from
    # readers and from itself only costs time.
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}

_RFC_4180 = {
    "header": "true",
    "ignoreleadingwhitespace": "false",
    "ignoretrailingwhitespace": "false",
}
_TIMES = {
    "timestampformat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampntzformat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True, slots=True)
class WriteFormat:
    """A format that Spark writes, with its options and the columns that become folders."""

    name: str
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    file_bytes: int = _LARGEST_PART
    """How much of what was read goes into one file."""

    @classmethod
    def of(cls, settings: ParsedConfig, config: Mapping[str, str]) -> Self:
        """Return what a config says; the user's own options go over ours.

        CSV is RFC 4180, and times have all their digits: Spark writes neither by itself.
        """
        given = options_of(keys.SINK_OPTION, config)
        name = settings.text(keys.SINK_FORMAT)
        options = {} if name == "parquet" else _TIMES
        if name == "csv":
            options = options | _RFC_4180 | {"escape": given.get("quote", '"')}
        most = settings.number(keys.SINK_FILE_BYTES)
        return cls(name, settings.items(keys.SINK_PARTITION_BY), {**options, **given}, most)

    def write(self, rows: "DataFrame", folder: Path, input_bytes: int, *, is_there: bool) -> None:
        """Write rows that were made of so much input into a folder, which may be there, empty."""
        mode = "append" if is_there else "overwrite"
        writer = self._spread(rows, input_bytes).write.mode(mode).format(self.name)
        writer = writer.options(**_WRITE, **self._options(rows))
        writer = writer.partitionBy(*self.partition_by)
        writer.save(path_to_write(folder))

    def _options(self, rows: "DataFrame") -> Mapping[str, str]:
        """Return the options for some rows.

        Where csv has one column a null is an empty line, which nobody reads and Spark does not
        even write: there it is spelled as an empty text is, so that the row stays.
        """
        given = self.options
        if self.name != "csv" or "nullvalue" in given:
            return self.options
        folders = {each.lower() for each in self.partition_by}
        if sum(each.lower() not in folders for each in rows.schema.names) != 1:
            return self.options
        return {**self.options, "nullvalue": 2 * given.get("quote", "") or '""'}

    def _spread(self, rows: "DataFrame", input_bytes: int) -> "DataFrame":
        """Have all cores write, into few files; into more where each is to be small."""
        cores = cores_of(rows.sparkSession)
        parts = min(cores, 1 + input_bytes // _BYTES_PER_PART)
        files = max(parts, 1 + input_bytes // _LARGEST_PART)
        wanted = -(-input_bytes // self.file_bytes)
        return rows.repartition(wanted) if wanted > files else rows.coalesce(files)
