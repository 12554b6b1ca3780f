# pyright: basic
"""Stages tables as a batch without an engine does, also in a process that is killed."""

import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairlead.events.commits import CommitId, Manifest
from fairlead.events.model import Token
from fairlead.runtime.pipeline.batches.frames import plain_rows_of
from fairlead.runtime.pipeline.engines.settings import known_settings
from fairlead.runtime.pipeline.stores.files.sink.sink import FileSink
from fairlead.runtime.pipeline.stores.files.sink.writing import WriteFormat
from fairlead.runtime.pipeline.stores.files.sink_folder.root import SinkLocation

KNOWN: dict[str, str] = known_settings({}) or {}


def sink_at(root: Path, settings: dict[str, str] | None = None, **form: Any) -> FileSink:
    """Return a sink that may evolve, with the known settings of Spark by default."""
    root.mkdir(exist_ok=True)
    place = SinkLocation(root, "", "c", None)
    known = KNOWN if settings is None else settings
    return FileSink(
        place, WriteFormat("parquet", **form), print, may_evolve=True, spark_settings=known
    )


def held(sink: FileSink, table: Any, number: int = 0) -> Manifest | None:
    """Stage a table as a batch without an engine does."""
    plain: Any = plain_rows_of(table)
    assert plain is not None
    sink.prepare(plain.schema)
    return sink.stage_table(plain, CommitId("c", 0, Token(1, 0), number), table.nbytes)


def stage_and_die(root: str, told: Connection, *, counts: bool) -> None:
    """Stage two batches, publish one; end without notice before the other one is published."""
    sink = sink_at(Path(root))
    for number in range(2):
        manifest = held(sink, pa.table({"a": [2 * number, 2 * number + 1]}), number)
        assert manifest is not None
        if number == 0:
            sink.publish(manifest, CommitId("c", 0, Token(1, 0), 0), 0)
        elif counts:
            told.send(manifest)
    os.kill(os.getpid(), signal.SIGKILL)
