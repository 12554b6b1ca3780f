# pyright: basic
"""The engine of a worker whose jobs a Spark Connect server runs.

There is no JVM on this node, but for the check of queries. The server is not ours: it is neither
started nor ended here. The worker has a session on it, and one beside that for each pool. It keeps
their ids in a file, and ends those that its former process has left there before it takes work. A
server that is silent for a while, or knows the session no more since it was started anew, is an
engine that is down.
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

from ..attach import LOUD
from ..cluster import NotShared, SparkCluster
from ..engine import DEFAULT_POOL, EngineState
from ..failures import failure_text
from ..jobs import JobEngine, Life
from ..sessions import POOL, session_beside
from .address import ConnectAddress, with_way_out
from .session import ConnectSession, ServerRefused, folder_of_rows

START_SECONDS: Final = 180.0
"""How long a server may take until the first jobs of a session are done."""
SILENT_SECONDS: Final = 15.0
"""How long a server may be silent before what it runs is given up."""
ASK_SECONDS: Final = 1.0
"""How often it is asked for an answer, which keeps the session from ending."""
_REMOTE: Final = "SPARK_CONNECT_MODE_ENABLED"
"""What has PySpark's functions make columns for a server."""


class ConnectServer:
    """A server as one session of a worker has it: from the first call to the end of the session."""

    def __init__(self, on_end: Callable[["ConnectServer"], None]) -> None:
        """Take what is to hear of the end, before any job does."""
        self._on_end = on_end
        self.ended = threading.Event()
        self.why = "the server runs"
        """Why it ended, once it has."""
        self.session: ConnectSession | None = None
        """None until there is one."""
        self.is_up = False
        """Whether it has answered."""

    def is_alive(self) -> bool:
        """Tell whether a call that found no server is worth another try."""
        return self.is_up and not self.ended.is_set()

    def kill(self, why: str) -> None:
        """Let go of it: the first reason given is the one told. What runs there is ended later."""
        if not self.ended.is_set():
            self.why = why
            self.ended.set()
            self._on_end(self)
        if self.session is not None:
            self.session.hang_up()


class ConnectEngine(JobEngine[ConnectServer]):
    """Runs jobs on a server, in a session of this process; at most one engine per process."""

    pid = None
    """No driver ends with this process."""

    def __init__(
        self,
        work_dir: Path,
        cluster: SparkCluster,
        *,
        conf: Mapping[str, str] | None = None,
        hide: Callable[[str], str] = str,
    ) -> None:
        """Take the server, which is the cluster's master, and ask nothing yet.

        `conf` are settings of sessions, over ours. The id of the session stands in `work_dir`.
        Raises `ValueError` for what is no address of a server.
        """
        super().__init__(hide)
        self._address = ConnectAddress.parse(cluster.master)
        self._cluster = cluster
        self._conf = dict(conf or {})
        self._note = work_dir.absolute() / "connect-session"

    def open(self) -> None:
        """Ask for a session unless there is one; returns at once. See `Engine.open`."""
        for name in LOUD:
            PySparkLogger.getLogger(name).disabled = True
        os.environ[_REMOTE] = "1"
        with self._changed:
            if self._state in {EngineState.WARMING, EngineState.WARM}:
                return
            self._life = life = Life(ConnectServer(self._ended))
            self._become(EngineState.WARMING, f"waiting for {self._address}")
        threading.Thread(target=self._live, args=(life,), name="spark-connect", daemon=True).start()

    def close(self, seconds: float) -> None:
        """End the session, at the latest after so many seconds; the server goes on."""
        with self._changed:
            life, self._life = self._life, None
            self._become(EngineState.COLD, "closed")
        if life is not None:
            self._end(life.jvm, seconds)
        os.environ.pop(_REMOTE, None)

    def _session_of(self, session: SparkSession, pool: str) -> SparkSession:
        """Return a session whose jobs are in a pool, as Spark takes settings of SQL along."""
        return session if pool == DEFAULT_POOL else session_beside(session, {POOL: pool})

    def _end(self, server: ConnectServer, seconds: float) -> None:
        session = server.session
        if session is not None and server.is_alive():
            ending = threading.Thread(target=self._forget, args=(session,), daemon=True)
            ending.start()
            ending.join(seconds)
        server.kill("the engine was closed")

    def _forget(self, session: ConnectSession) -> None:
        with suppress(grpc.RpcError, OSError):  # else the next process of this worker ends it
            session.forget()
            self._note.unlink(missing_ok=True)

    def _live(self, life: Life[ConnectServer]) -> None:
        """Follow one session from the wait for it to its end; on a thread of its own."""
        server = life.jvm
        late = threading.Timer(START_SECONDS, server.kill, [f"{self._address}: {_LATE}"])
        late.daemon = True
        late.start()
        try:
            self._prepare(life)
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine is down
            server.kill(self._hide(f"{self._address}: {_reason(error)}"))
        finally:
            late.cancel()
        with self._changed:
            is_mine = self._life is life and not server.ended.is_set()
            if is_mine and self._state is EngineState.WARMING:
                self._become(EngineState.WARM, f"a session on {self._address}")
        self._watch(server)

    def _prepare(self, life: Life[ConnectServer]) -> None:
        """Have a session that is like any other, and no other of this worker; raises anything."""
        server = life.jvm
        shared = next(iter(self._cluster.folders), None)
        server.session = session = ConnectSession(
            self._address, server.is_alive, shared, self._keep
        )
        if server.ended.is_set():
            session.hang_up()
            return
        session.version  # noqa: B018  # whoever is there answers, or refuses
        server.is_up = True
        self._end_former(session)
        session.settle(self._conf)
        made = cast("SparkSession", session)  # all that jobs ask of one it has
        self._cluster.check_folders(made)
        life.session = made

    def _end_former(self, session: ConnectSession) -> None:
        """End what a former session runs, and note this one for those who come later."""
        self._note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        before = self._note.read_text().split() if self._note.exists() else []
        for each in before:
            session.forget(each)
            for folder in self._cluster.folders:
                shutil.rmtree(folder_of_rows(folder, each), ignore_errors=True)
        self._note.write_text("")
        self._keep(session.session_id)

    def _keep(self, session_id: str) -> None:
        """Note a session for those who come later."""
        with self._note.open("a") as note:
            note.write(f"{session_id}\n")

    def _watch(self, server: ConnectServer) -> None:
        """Ask the server for answers until it, or the session there, is gone."""
        heard = time.monotonic()
        while not server.ended.wait(ASK_SECONDS) and server.session is not None:
            try:
                if server.session.is_heard():
                    heard = time.monotonic()
                elif time.monotonic() - heard >= SILENT_SECONDS:
                    server.kill(f"{self._address} gave no answer for {SILENT_SECONDS:.0f} s")
            except Exception as error:  # noqa: BLE001  # whatever it is, the session is gone
                server.kill(self._hide(f"{self._address} ended the session: {_reason(error)}"))


_DETAILS: Final = re.compile(r'^\s*details = "(.*)"$', re.MULTILINE)
"""What a call without an answer says, amid much else."""
_LATE: Final = f"no job was done after {START_SECONDS:.0f} s; has it free cores?"


def _reason(error: Exception) -> str:
    if isinstance(error, NotShared | ServerRefused):
        return str(error)
    told = (
        _DETAILS.search(str(error)) if isinstance(error, grpc.RpcError | PySparkException) else None
    )
    return with_way_out(told[1] if told else failure_text(error) or repr(error))
