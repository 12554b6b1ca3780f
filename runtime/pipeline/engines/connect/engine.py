# pyright: basic
"""The engine of a worker whose jobs run on a Spark Connect server.

The node has no JVM, except for checking queries, and does not start or stop the server. The worker
has one session on the server, and an additional one for each pool. It keeps their ids in a file,
and before it takes work, it ends the sessions that its former process left on the server. The
engine is down if the server does not answer for a while, or has lost the session in a restart.
"""

import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

import grpc
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from ..embedded.attach import NOISY_LOGGERS
from ..engine import DEFAULT_POOL, EngineState
from ..executors.cluster import NotShared, SparkCluster
from ..failures import failure_text
from ..jobs import Driver, JobEngine
from ..sessions import POOL, session_beside
from .address import ConnectAddress, with_remedy
from .session import ConnectSession, ServerRefused, folder_of_rows

START_SECONDS: Final = 180.0
"""How long the first jobs of a session may take."""
SILENT_SECONDS: Final = 15.0
"""How long a server may not answer before its jobs are given up."""
PING_SECONDS: Final = 1.0
"""The interval of calls to the server, which also keep the session from expiring."""
_REMOTE: Final = "SPARK_CONNECT_MODE_ENABLED"
"""The environment variable that makes PySpark's functions create columns for a server."""


class ConnectServer:
    """One worker's view of a server, from the first call to the end of its session."""

    def __init__(self, on_end: Callable[["ConnectServer"], None]) -> None:
        """Call `on_end` at the end, before any job sees it."""
        self._on_end = on_end
        self.ended = threading.Event()
        self.why = "the server runs"
        """Why it ended, once it has."""
        self.session: ConnectSession | None = None
        """The worker's session; None until there is one."""
        self.is_up = False
        """Whether it has answered."""

    def is_alive(self) -> bool:
        """Return whether a call that did not reach the server should be retried."""
        return self.is_up and not self.ended.is_set()

    def kill(self, why: str) -> None:
        """Disconnect; the first reason is kept. A later session ends the jobs on the server."""
        if not self.ended.is_set():
            self.why = why
            self.ended.set()
            self._on_end(self)
        if self.session is not None:
            self.session.disconnect()


class ConnectEngine(JobEngine[ConnectServer]):
    """Runs jobs in a session on a server; at most one engine per process."""

    pid = None
    """None, since no driver process ends with this process."""

    def __init__(
        self,
        work_dir: Path,
        cluster: SparkCluster,
        *,
        conf: Mapping[str, str] | None = None,
        hide: Callable[[str], str] = str,
    ) -> None:
        """Configure the engine; the server is the cluster's master.

        `conf` has settings of sessions, which override ours. The file with the sessions' ids is in
        `work_dir`. Raises `ValueError` if the master is no address of a server.
        """
        super().__init__(hide)
        self._address = ConnectAddress.parse(cluster.master)
        self._cluster = cluster
        self._conf = dict(conf or {})
        self._session_file = work_dir.absolute() / "connect-session"

    def open(self) -> None:
        """Request a session unless there is one; returns at once. See `Engine.open`."""
        for name in NOISY_LOGGERS:
            PySparkLogger.getLogger(name).disabled = True
        os.environ[_REMOTE] = "1"
        with self._changed:
            if self._state in {EngineState.WARMING, EngineState.WARM}:
                return
            self._driver = driver = Driver(ConnectServer(self._note_end))
            self._set_state(EngineState.WARMING, f"waiting for {self._address}")
        threading.Thread(
            target=self._follow, args=(driver,), name="spark-connect", daemon=True
        ).start()

    def close(self, seconds: float) -> None:
        """End the session within the given time; the server continues."""
        with self._changed:
            driver, self._driver = self._driver, None
            self._set_state(EngineState.COLD, "closed")
        if driver is not None:
            self._end_session(driver.jvm, seconds)
        os.environ.pop(_REMOTE, None)

    def _session_of(self, session: SparkSession, pool: str) -> SparkSession:
        """Return a session whose jobs are in a pool; there the pool is a setting of the session."""
        return session if pool == DEFAULT_POOL else session_beside(session, {POOL: pool})

    def _end_session(self, server: ConnectServer, seconds: float) -> None:
        session = server.session
        if session is not None and server.is_alive():
            ending = threading.Thread(target=self._forget, args=(session,), daemon=True)
            ending.start()
            ending.join(seconds)
        server.kill("the engine was closed")

    def _forget(self, session: ConnectSession) -> None:
        with suppress(grpc.RpcError, OSError):  # then this worker's next process ends it
            session.forget()
            self._session_file.unlink(missing_ok=True)

    def _follow(self, driver: Driver[ConnectServer]) -> None:
        """Follow one session from its request to its end; runs on a separate thread."""
        server = driver.jvm
        late = threading.Timer(START_SECONDS, server.kill, [f"{self._address}: {_LATE}"])
        late.daemon = True
        late.start()
        try:
            self._prepare(driver)
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine is down
            server.kill(self._hide(f"{self._address}: {_reason(error)}"))
        finally:
            late.cancel()
        with self._changed:
            is_mine = self._driver is driver and not server.ended.is_set()
            if is_mine and self._state is EngineState.WARMING:
                self._set_state(EngineState.WARM, f"a session on {self._address}")
        self._watch(server)

    def _prepare(self, driver: Driver[ConnectServer]) -> None:
        """Create the worker's session and end its former ones; raises any error."""
        server = driver.jvm
        shared = next(iter(self._cluster.folders), None)
        server.session = session = ConnectSession(
            self._address, server.is_alive, shared, self._record_session
        )
        if server.ended.is_set():
            session.disconnect()
            return
        session.version  # noqa: B018  # this call connects; it raises if refused
        server.is_up = True
        self._end_former_sessions(session)
        session.set_up(self._conf)
        made = cast("SparkSession", session)  # it has all methods that jobs use
        self._cluster.check_folders(made)
        self._cluster.check_python(made)
        driver.session = made

    def _end_former_sessions(self, session: ConnectSession) -> None:
        """End the sessions of this worker's former process, and record the new one."""
        self._session_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        before = self._session_file.read_text().split() if self._session_file.exists() else []
        for each in before:
            session.forget(each)
            for folder in self._cluster.folders:
                shutil.rmtree(folder_of_rows(folder, each), ignore_errors=True)
        self._session_file.write_text("")
        self._record_session(session.session_id)

    def _record_session(self, session_id: str) -> None:
        """Record the id of a session, so that this worker's next process can end it."""
        with self._session_file.open("a") as file:
            file.write(f"{session_id}\n")

    def _watch(self, server: ConnectServer) -> None:
        """Call the server periodically until it, or the session on it, is gone."""
        answered_at = time.monotonic()
        while not server.ended.wait(PING_SECONDS) and server.session is not None:
            try:
                if server.session.is_responsive():
                    answered_at = time.monotonic()
                elif time.monotonic() - answered_at >= SILENT_SECONDS:
                    server.kill(f"{self._address} gave no answer for {SILENT_SECONDS:.0f} s")
            except Exception as error:  # noqa: BLE001  # whatever it is, the session is gone
                server.kill(self._hide(f"{self._address} ended the session: {_reason(error)}"))


_DETAILS: Final = re.compile(r'^\s*details = "(.*)"$', re.MULTILINE)
"""The reason within the long text of a call that failed."""
_LATE: Final = f"no job was done after {START_SECONDS:.0f} s; has it free cores?"


def _reason(error: Exception) -> str:
    if isinstance(error, NotShared | ServerRefused):
        return str(error)
    details = (
        _DETAILS.search(str(error)) if isinstance(error, grpc.RpcError | PySparkException) else None
    )
    return with_remedy(details[1] if details else failure_text(error) or repr(error))
