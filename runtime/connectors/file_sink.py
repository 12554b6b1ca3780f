# pyright: basic
"""A folder of files as a sink: staged by one Spark job, published by renames."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as papq

from ...events.model import CommitId, Manifest, Resource, Token
from . import staging
from .spark_paths import target
from .spi import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BYTES_PER_FILE = 16 << 20
_WRITE = {
    # Nobody reads a batch before it is published, so what the committer does to be safe from
    # readers and from itself only costs time.
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}


@dataclass(frozen=True, slots=True)
class WriteFormat:
    """A format that Spark writes, with its options and the columns that become folders."""

    name: str
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict[str, str])


class FileSink(Sink):
    """Appends batches to a folder on a file system that the worker and all executors see."""

    def __init__(self, root: Path, form: WriteFormat) -> None:
        self._root = root
        self._form = form

    @property
    def counts_rows(self) -> bool:
        """Parquet files say how many rows they hold."""
        return self._form.name == "parquet"

    def stage(self, frame: "DataFrame", commit_id: CommitId, input_bytes: int) -> Manifest:
        """Write a batch to its staging folder, in few files, and flush it to the disk."""
        staging.make_folder(self._root)
        where = staging.batch_folder(commit_id)
        folder = self._root / where
        files = 1 + input_bytes // _BYTES_PER_FILE
        writer = frame.coalesce(files).write.mode("overwrite").format(self._form.name)
        writer = writer.options(**_WRITE, **self._form.options)
        writer.partitionBy(*self._form.partition_by).save(target(folder))
        staging.make_durable(self._root, folder)
        return self._manifest(where)

    def publish(self, manifest: Manifest, commit_id: CommitId) -> None:
        """Rename the batch's files into place."""
        staging.publish(manifest, commit_id)

    def discard(self, commit_id: CommitId) -> None:
        """Remove the batch's staging folder."""
        staging.discard(self._root, commit_id)

    def sweep(self, resource: Resource, token: Token) -> None:
        """Remove the staging folders of this token and older ones."""
        staging.sweep(self._root, resource, token)

    def _manifest(self, where: str) -> Manifest:
        files = [self._root / where / file for file in staging.data_files(self._root / where)]
        rows = sum(papq.read_metadata(file).num_rows for file in files) if self.counts_rows else -1
        size = sum(file.stat().st_size for file in files)
        return Manifest(str(self._root), where, rows, size, len(files))
