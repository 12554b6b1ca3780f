"""The engine of a worker that shares its node's JVM with the other workers.

It has a channel to the JVM's owner, who says where the JVM takes calls once it is warm, and that
it has ended. The session is this worker's own. All its jobs are of one group, whose name the owner
gives: when the channel ends, however it does, the owner ends the jobs of that group.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from pyspark.sql import SparkSession

from ..attach import attach, detach
from ..engine import DEFAULT_POOL, EngineDown, EngineState
from ..failures import failure_text
from ..jobs import JobEngine, Life
from ..jvm import JvmGateway
from .channel import LineChannel, dial

T = TypeVar("T")

_DIAL_SECONDS: Final = 0.2
"""The pause before an owner that is not there is looked for again."""
_NO_OWNER: Final = "the process that owns the node's JVM is not there: it is started again"


class SharedJvm:
    """The JVM of a node as one of its workers has it: from the first call for it to its end."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.why = "the JVM runs"
        """Why it ended, once it has."""
        self.channel: LineChannel | None = None
        """The channel to its owner, once there is one."""
        self.told: Mapping[str, str] = {}
        """The secrets that its owner knows, and hides in what the JVM says."""
        self.telling = threading.Lock()
        """Held while secrets are told, so that no job begins before they are known."""
        self.has_learned = threading.Event()
        """Set by the owner's answer to that."""

    def kill(self, why: str) -> None:
        """Have its owner end it."""
        with suppress(OSError):  # there is no owner any more, and so no JVM
            if self.channel is not None:
                self.channel.send({"kill": why})

    def end(self, why: str) -> None:
        """Take note of its end; the first reason given is the one told."""
        if not self.ended.is_set():
            self.why = why
            self.ended.set()
        self.has_learned.set()  # nobody waits for an answer any more
        if self.channel is not None:
            self.channel.close()


class SharedEngine(JobEngine[SharedJvm]):
    """Runs jobs in a session of its own on the JVM that all workers of a node share."""

    pid = None
    """No driver ends with this process."""

    def __init__(
        self,
        place: Path,
        name: str,
        *,
        hide: Callable[[str], str] = str,
        secrets: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Take where the owner listens, and the worker's name; nothing is asked yet.

        `secrets` returns all that this process knows by now, each with what is shown in its place:
        the owner hides them in the JVM's log. `hide` does so in what a failed job says.
        """
        super().__init__(hide)
        self._place = place
        self._name = name
        self._secrets = secrets

    def open(self) -> None:
        """Ask for the node's JVM unless that is done; returns at once. See `Engine.open`."""
        with self._changed:
            if self._state in {EngineState.WARMING, EngineState.WARM}:
                return
            self._life = life = Life(SharedJvm())
            self._become(EngineState.WARMING, "waiting for the node's JVM")
        threading.Thread(target=self._live, args=(life,), name="spark-shared", daemon=True).start()

    def run(self, tag: str, job: Callable[[SparkSession], T], pool: str = DEFAULT_POOL) -> T:
        """Run a job on the calling thread. See `Engine.run`."""
        life = self._life
        if life is not None and life.session is not None:
            self._tell_secrets(life.jvm)
        return super().run(tag, job, pool)

    def close(self, seconds: float) -> None:
        """Let go of the JVM, whose owner ends the jobs of this worker; others go on with it."""
        with self._changed:
            life, self._life = self._life, None
            self._become(EngineState.COLD, "closed")
        if life is not None:
            life.jvm.end("the engine was closed")
            if self._pyspark.acquire(timeout=seconds):  # else a JVM that hangs is being tied
                detach()
                self._pyspark.release()

    def _live(self, life: Life[SharedJvm]) -> None:
        """Follow one JVM from the wait for it to its end; on a thread of its own."""
        jvm = life.jvm
        while not jvm.ended.is_set() and jvm.channel is None:
            try:
                jvm.channel = dial(self._place)
                jvm.channel.send({"worker": self._name})
            except OSError:
                self._say(life, _NO_OWNER)
                jvm.channel = None
                jvm.ended.wait(_DIAL_SECONDS)
        while not jvm.ended.is_set() and jvm.channel is not None:
            if (message := jvm.channel.receive()) is None:
                break
            self._hear(life, message)
        jvm.end(_NO_OWNER)
        self._ended(jvm)

    def _hear(self, life: Life[SharedJvm], message: Mapping[str, Any]) -> None:
        match message:
            case {"waiting": str(detail)}:
                self._say(life, detail)
            case {"port": int(port), "secret": str(secret), "group": str(group), "jvm": str(jvm)}:
                life.group = group
                self._tie(life, JvmGateway(port, secret), jvm)
            case {"learned": True}:
                life.jvm.has_learned.set()
            case {"ended": str(why)}:
                life.jvm.end(why)
            case _:
                life.jvm.end("the owner of the node's JVM is of another version: restart the node")

    def _say(self, life: Life[SharedJvm], detail: str) -> None:
        with self._changed:
            if self._life is life and self._state is EngineState.WARMING:
                self._become(EngineState.WARMING, detail)

    def _tie(self, life: Life[SharedJvm], gateway: JvmGateway, name: str) -> None:
        """Make a session in the JVM that is warm."""
        try:
            with self._pyspark:
                detach()
                life.session = attach(gateway, is_shared=True)
            life.session.range(1).count()
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine is down
            life.jvm.end(f"no session could be made: {failure_text(error) or repr(error)}")
            return
        with self._changed:
            if self._life is life and self._state is EngineState.WARMING:
                self._become(EngineState.WARM, name)

    def _tell_secrets(self, jvm: SharedJvm) -> None:
        """Have the owner know all secrets that a job may bring; raises `EngineDown`."""
        with jvm.telling:
            known = self._secrets()
            new = {each: shown for each, shown in known.items() if each not in jvm.told}
            if not new or jvm.channel is None:
                return
            jvm.has_learned.clear()
            try:
                jvm.channel.send({"secrets": new})
            except OSError:
                jvm.end(_NO_OWNER)
            jvm.has_learned.wait()
            if jvm.ended.is_set():
                raise EngineDown(jvm.why)
            jvm.told = dict(known)
