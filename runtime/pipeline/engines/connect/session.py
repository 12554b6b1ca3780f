# pyright: basic
"""A session on a Spark Connect server, and its variants with settings of their own.

PySpark's client retries for ten minutes when a server is gone, without any message. This session
retries only as long as the server is known to be alive, and it can be disconnected, so that no call
waits forever. It uses private parts of PySpark (4.1 to 4.3), which no other module does.

A few rows are sent within the plan of a query. More rows would take a hundred times their size on
the server's heap, because the server makes an object of each row and copies the objects with the
plan: they are sent as files in a shared folder (`SentRows`). PySpark's cache of local relations is
no alternative: the server keeps it until the session ends.
"""

import atexit
import shutil
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, cast
from uuid import uuid4

import grpc
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as sf
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.plan import LocalRelation, LogicalPlan
from pyspark.sql.connect.proto import ReleaseSessionRequest
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from pyspark.version import __version__

from ..sessions import set_all
from ..settings import OF_SESSIONS
from ..spelling import path_to_read
from .address import ConnectAddress

ANSWER_SECONDS: Final = 5.0
"""The timeout of calls that need no work on the server."""
_MOST_CORES: Final = 1 << 16
_SILENT: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)

_SUPPORTED: Final = (
    *(pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal128),
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary),
    *(pa.types.is_date32, pa.types.is_timestamp),
)


class ServerRefused(Exception):  # noqa: N818  # what happened
    """The server cannot run the jobs of this worker; the text has the remedy."""


class ConnectSession(SparkSession):
    """A session of a worker; `beside` creates variants that share its tags and its end."""

    def __init__(
        self,
        address: ConnectAddress,
        is_alive: Callable[[], bool],
        folder: Path | None,
        record: Callable[[str], None],
    ) -> None:
        """Configure a session; `folder` is shared with the server, None: there is none.

        A call that does not reach the server is retried as long as `is_alive` returns true.
        `record` stores the id of each session before anything runs in it, so that a later process
        can end it.
        """
        super().__init__(address.url(str(uuid4())))
        self._address = address
        self._is_alive = is_alive
        self._folder = folder
        self._record = record
        self._rows = None if folder is None else SentRows(folder_of_rows(folder, self.session_id))
        """The rows that are sent as files; None: all are sent within plans."""
        self._settings: Mapping[str, str] = {}
        self._variants: dict[frozenset[tuple[str, str]], ConnectSession] = {}
        """The sessions with settings of their own, by these settings."""
        self._next_variant = count()
        """The round-robin counter of the variants for `is_responsive`."""
        self._variants_lock = threading.Lock()
        """Held while a variant is created."""
        self.defaultParallelism = 1
        """How many tasks of a job run at once; `set_up` sets it."""
        self.runs_arrow = threading.Event()
        """Set if Python on the server runs Arrow; its variants share it."""
        for each in ("_on_exit", "_cleanup_ml_cache"):  # 4.1 has the latter
            if at_exit := getattr(self.client, each, None):
                atexit.unregister(at_exit)  # else it waits for a server that is gone
        self.client.set_retry_policies([_RetryWhileAlive(is_alive)])

    def set_up(self, settings: Mapping[str, str]) -> None:
        """Set our settings; raises `ServerRefused` and PySpark's errors.

        Queries are checked by the parser of this process's PySpark, so the server must be of the
        same release.
        """
        if _release(self.version) != _release(__version__):
            raise ServerRefused(
                f"it runs Spark {self.version}, and this worker has PySpark {__version__}: they"
                " have to be of one release, since queries are checked here before they are sent"
            )
        SparkSession._default_session = self  # PySpark uses it for schemas and functions
        self._set({**OF_SESSIONS, **settings})
        parts = self.range(_MOST_CORES).select(sf.spark_partition_id()).distinct()
        self.defaultParallelism = parts.count()

    def beside(self, settings: Mapping[str, str]) -> "ConnectSession":
        """Return the variant with these settings over its own; raises `SettingRefused`."""
        key = frozenset(settings.items())
        with self._variants_lock:
            if (variant := self._variants.get(key)) is None:
                variant = ConnectSession(self._address, self._is_alive, self._folder, self._record)
                self._record(variant.session_id)
                variant.client.thread_local = self.client.thread_local  # it holds the tags
                variant._rows = self._rows
                variant.defaultParallelism = self.defaultParallelism
                variant.runs_arrow = self.runs_arrow
                variant._set({**self._settings, **settings})
                self._variants[key] = variant
        return variant

    def interruptTag(self, tag: str) -> list[str]:  # noqa: N802  # PySpark's name
        """Cancel the jobs of a tag in this session and its variants."""
        found = super().interruptTag(tag)
        for each in [*self._variants.values()]:
            found += each.interruptTag(tag)
        return found

    def createDataFrame(self, data: Any, *more: Any, **named: Any) -> Any:  # noqa: N802
        """Create a frame as PySpark does, but also of an empty Arrow table."""
        if isinstance(data, pa.Table) and not data.num_rows and not more and not named:
            prefers_ntz = self.conf.get("spark.sql.timestampType") == "TIMESTAMP_NTZ"
            more = (from_arrow_schema(data.schema, prefer_timestamp_ntz=prefers_ntz),)
        return super().createDataFrame(data, *more, **named)

    def _cache_local_relation(  # type: ignore[override]  # 4.1 has fewer limits
        self, local_relation: LocalRelation, *limits: int
    ) -> LogicalPlan:
        """Send rows as a file, since the server would keep PySpark's until the session ends."""
        table: Any = local_relation._table
        if self._rows is None or not fits_a_file(table.schema):
            return super()._cache_local_relation(local_relation, *limits)
        reader = self.read.option("datetimeRebaseMode", "CORRECTED")  # dates need no rebasing
        read = lambda path, schema: reader.schema(schema).parquet(path)._plan  # noqa: E731
        return self._rows.send(table, self.defaultParallelism, read)

    def end_job(self) -> None:
        """Release the rows that this thread's job has sent."""
        if self._rows is not None:
            self._rows.end_job()

    def is_responsive(self) -> bool:
        """Return whether the server answers in time; raises `RpcError` if the session is gone.

        Each call also contacts one of the variants, in turn: a server ends idle sessions.
        """
        if variants := [*self._variants.values()]:
            with suppress(grpc.RpcError):
                variants[next(self._next_variant) % len(variants)].is_responsive()
        client: Any = self.client
        request = client._config_request_with_metadata()
        request.client_observed_server_side_session_id = client._server_session_id or ""
        request.operation.get_option.keys.append("spark.sql.session.timeZone")
        try:
            self._call("Config", request)
        except grpc.RpcError as error:
            if error.code() in _SILENT:
                return False
            raise
        return True

    def forget(self, session_id: str = "") -> None:
        """End a session of the same user and its jobs on the server; raises `RpcError`.

        Without an id it ends this session and its variants.
        """
        if not session_id:
            for each in [*self._variants.values()]:
                each.forget()
        request = ReleaseSessionRequest(session_id=session_id or self.session_id)
        request.user_context.user_id = self.client._user_id or ""
        self._call("ReleaseSession", request)

    def disconnect(self) -> None:
        """Close the connection; calls that wait for an answer fail."""
        for each in [*self._variants.values()]:
            each.disconnect()
        if self._rows is not None:
            self._rows.close()
        self.client._closed = True
        with suppress(Exception):
            self.client._channel.close()

    def _set(self, settings: Mapping[str, str]) -> None:
        set_all(cast("Any", self), settings)
        self._settings = settings

    def _call(self, name: str, request: object) -> None:
        client: Any = self.client
        call = getattr(client._internal_stub, name)
        call(request, metadata=client._builder.metadata(), timeout=ANSWER_SECONDS)


def folder_of_rows(shared: Path, session_id: str) -> Path:
    """Return the folder for the rows that a session sends to its server."""
    return shared / f".fairlead-{session_id}"


class _RetryWhileAlive(DefaultPolicy):
    """Retries the errors that PySpark retries, at least once a second while the server lives."""

    def __init__(self, is_alive: Callable[[], bool]) -> None:
        super().__init__(max_retries=None, backoff_multiplier=2.0, max_backoff=1_000)
        self._is_alive = is_alive

    def can_retry(self, e: BaseException) -> bool:
        """Return whether to retry a call."""
        return self._is_alive() and super().can_retry(e)


def _release(version: str) -> list[str]:
    """Return `4` and `3` for `4.3.0`."""
    return version.split(".")[:2]


class SentRows:
    """The files that a session has written for its server.

    A file is removed when the job that sent it has ended and no frame refers to it any more.
    """

    def __init__(self, folder: Path) -> None:
        """Use a folder that belongs to this session alone; the first `send` creates it."""
        self._folder = folder
        self._serial = count()
        self._sent = threading.local()
        """For each thread the plans over the files that its current job has sent."""

    def send(
        self, table: pa.Table, parts: int, read: Callable[[str, StructType], LogicalPlan]
    ) -> LogicalPlan:
        """Write a table as `parts` row groups, and return `read` of its path and schema.

        Raises `OSError`.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{next(self._serial)}.parquet"
        rows = max(1, -(-table.num_rows // parts))
        pq.write_table(table, path, row_group_size=rows, compression="lz4")
        schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
        plan = read(path_to_read(path), schema)
        weakref.finalize(plan, path.unlink, missing_ok=True)
        self._of_this_job().append(plan)
        return plan

    def end_job(self) -> None:
        """Release the files that this thread's job has sent."""
        self._of_this_job().clear()

    def close(self) -> None:
        """Remove all files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _of_this_job(self) -> list[LogicalPlan]:
        plans: list[LogicalPlan] = self._sent.__dict__.setdefault("plans", [])
        return plans


def fits_a_file(schema: pa.Schema) -> bool:
    """Return whether Spark reads all columns unchanged from a parquet file, by distinct names."""
    is_plain = len({name.lower() for name in schema.names}) == len(schema.names)
    return is_plain and all(map(_is_supported, schema.types))


def _is_supported(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        fields = [kind.field(number).type for number in range(kind.num_fields)]
        return bool(fields) and all(map(_is_supported, fields))
    if pa.types.is_map(kind):
        return _is_supported(kind.key_type) and _is_supported(kind.item_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _is_supported(kind.value_type)
    return any(is_it(kind) for is_it in _SUPPORTED)
