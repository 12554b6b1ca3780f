# pyright: basic
"""A session on a Spark Connect server, and those beside it that have settings of their own.

PySpark's client goes on for ten minutes after a server that is gone, and tells nobody. Here a call
is repeated as long as the server is known to live, and no longer; and a session can be cut off,
so that no call of it waits for ever. Some of that is PySpark's own (4.1 to 4.3), and is touched
here and nowhere else.
"""

import atexit
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, cast
from uuid import uuid4

import grpc
import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.plan import LocalRelation, LogicalPlan
from pyspark.sql.connect.proto import ReleaseSessionRequest
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.version import __version__

from ..sessions import set_all
from ..settings import OF_SESSIONS
from .address import ConnectAddress
from .sent_rows import SentRows, fits_a_file

ANSWER_SECONDS: Final = 5.0
"""How long a server may take for an answer that costs it nothing."""
_MOST_CORES: Final = 1 << 16
_SILENT: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


class ServerRefused(Exception):  # noqa: N818  # what happened
    """The server is there, and cannot run the jobs of this worker; the text says what to do."""


class ConnectSession(SparkSession):
    """A session of a worker; `beside` makes others that share its tags and its end."""

    def __init__(
        self,
        address: ConnectAddress,
        is_alive: Callable[[], bool],
        folder: Path | None,
        note: Callable[[str], None],
    ) -> None:
        """Take where the server is, and a folder that it sees; nothing is asked yet.

        A call that finds no server is repeated as long as `is_alive` says that there is one. `note`
        keeps the id of each session for those who have to end it, before anything runs in it.
        """
        super().__init__(address.url(str(uuid4())))
        self._address = address
        self._is_alive = is_alive
        self._folder = folder
        self._note = note
        self._rows = None if folder is None else SentRows(folder_of_rows(folder, self.session_id))
        """Those that are sent as files; None: none are."""
        self._settings: Mapping[str, str] = {}
        self._beside: dict[frozenset[tuple[str, str]], ConnectSession] = {}
        """Those with settings of their own, by these."""
        self._turn = count()
        """Whose turn it is of these."""
        self._making = threading.Lock()
        """Held while one is made."""
        self.defaultParallelism = 1
        """How many tasks of a job run at once; known once it is settled."""
        for each in ("_on_exit", "_cleanup_ml_cache"):  # 4.1 has the latter
            if at_exit := getattr(self.client, each, None):
                atexit.unregister(at_exit)  # it would wait for a server that is gone
        self.client.set_retry_policies([_WhileAlive(is_alive)])

    def settle(self, settings: Mapping[str, str]) -> None:
        """Make it a session like any other of ours; raises `ServerRefused`, or as PySpark does.

        Queries are checked by the parser of this process's own PySpark, so the server's has to
        be the same.
        """
        if _release(self.version) != _release(__version__):
            raise ServerRefused(
                f"it runs Spark {self.version}, and this worker has PySpark {__version__}: they"
                " have to be of one release, since queries are checked here before they are sent"
            )
        SparkSession._default_session = self  # PySpark asks it about schemas and functions
        self._set({**OF_SESSIONS, **settings})
        parts = self.range(_MOST_CORES).select(sf.spark_partition_id()).distinct()
        self.defaultParallelism = parts.count()

    def beside(self, settings: Mapping[str, str]) -> "ConnectSession":
        """Return the session with such settings over those of this one; raises `SettingRefused`."""
        key = frozenset(settings.items())
        with self._making:
            if (made := self._beside.get(key)) is None:
                made = ConnectSession(self._address, self._is_alive, self._folder, self._note)
                self._note(made.session_id)
                made.client.thread_local = self.client.thread_local  # where tags are
                made._rows = self._rows
                made.defaultParallelism = self.defaultParallelism
                made._set({**self._settings, **settings})
                self._beside[key] = made
        return made

    def interruptTag(self, tag: str) -> list[str]:  # noqa: N802  # PySpark's name
        """Cancel what runs under a tag, here and beside."""
        found = super().interruptTag(tag)
        for each in [*self._beside.values()]:
            found += each.interruptTag(tag)
        return found

    def createDataFrame(self, data: Any, *more: Any, **named: Any) -> Any:  # noqa: N802
        """Describe rows that are here, as PySpark does; a table may be empty, too."""
        if isinstance(data, pa.Table) and not data.num_rows and not more and not named:
            prefers_ntz = self.conf.get("spark.sql.timestampType") == "TIMESTAMP_NTZ"
            more = (from_arrow_schema(data.schema, prefer_timestamp_ntz=prefers_ntz),)
        return super().createDataFrame(data, *more, **named)

    def _cache_local_relation(  # type: ignore[override]  # 4.1 has fewer limits
        self, local_relation: LocalRelation, *limits: int
    ) -> LogicalPlan:
        """Send rows as a file: PySpark would leave them with the server until the session ends."""
        table: Any = local_relation._table
        if self._rows is None or not fits_a_file(table.schema):
            return super()._cache_local_relation(local_relation, *limits)
        reader = self.read.option("datetimeRebaseMode", "CORRECTED")  # days are what they are
        read = lambda path, schema: reader.schema(schema).parquet(path)._plan  # noqa: E731
        return self._rows.send(table, self.defaultParallelism, read)

    def end_job(self) -> None:
        """Let go of the rows that the job of this thread has sent."""
        if self._rows is not None:
            self._rows.end_job()

    def is_heard(self) -> bool:
        """Ask for an answer, for `ANSWER_SECONDS`; raises `RpcError` if the session is gone.

        One of those beside it is asked as well, in turn: a server ends what is not asked for long.
        """
        if beside := [*self._beside.values()]:
            with suppress(grpc.RpcError):
                beside[next(self._turn) % len(beside)].is_heard()
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
        """End a session of the same user, with all that runs in it; raises `RpcError`.

        It is this one, with those beside it, unless told otherwise.
        """
        if not session_id:
            for each in [*self._beside.values()]:
                each.forget()
        request = ReleaseSessionRequest(session_id=session_id or self.session_id)
        request.user_context.user_id = self.client._user_id or ""
        self._call("ReleaseSession", request)

    def hang_up(self) -> None:
        """Cut it off from the server: whatever waits for an answer hears that there is none."""
        for each in [*self._beside.values()]:
            each.hang_up()
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
    """Return the folder of a session's own for rows on their way to its server."""
    return shared / f".fairlead-{session_id}"


class _WhileAlive(DefaultPolicy):
    """Repeats what PySpark would, once a second at least, as long as there is a server."""

    def __init__(self, is_alive: Callable[[], bool]) -> None:
        super().__init__(max_retries=None, backoff_multiplier=2.0, max_backoff=1_000)
        self._is_alive = is_alive

    def can_retry(self, e: BaseException) -> bool:
        """Tell whether a call is to be repeated."""
        return self._is_alive() and super().can_retry(e)


def _release(version: str) -> list[str]:
    """Return `4`, `3` of `4.3.0`."""
    return version.split(".")[:2]
