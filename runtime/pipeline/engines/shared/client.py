"""The engine of a worker that shares its node's JVM with the other workers.

Over a channel, the JVM's owner sends the address of a gateway once the JVM is warm, and reports its
end. The worker has a session of its own. All its jobs are in one job group, whose name the owner
chooses. When the channel closes for any reason, the owner cancels the jobs of that group.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from pyspark.sql import SparkSession

from ..embedded.attach import attach, detach
from ..embedded.jvm import JvmGateway
from ..engine import DEFAULT_POOL, EngineDown, EngineState
from ..failures import failure_text
from ..jobs import Driver, JobEngine
from .channel import LineChannel, connect

T = TypeVar("T")

_RECONNECT_SECONDS: Final = 0.2
"""The pause between two attempts to connect to the owner."""
_NO_OWNER: Final = "the process that owns the node's JVM is not there: it is started again"


class SharedJvm:
    """One worker's view of the node's JVM, from the request for it to its end."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.why = "the JVM runs"
        """Why it ended, once it has."""
        self.channel: LineChannel | None = None
        """The channel to its owner, once there is one."""
        self.known_secrets: Mapping[str, str] = {}
        """The secrets that the owner knows, and masks in the output of the JVM."""
        self.sending_secrets = threading.Lock()
        """Held while secrets are sent, so that no job starts before the owner knows them."""
        self.are_secrets_known = threading.Event()
        """Set when the owner has confirmed the last secrets."""

    def kill(self, why: str) -> None:
        """Ask the owner to end it."""
        with suppress(OSError):  # without an owner there is no JVM
            if self.channel is not None:
                self.channel.send({"kill": why})

    def end(self, why: str) -> None:
        """Note its end; the first reason is kept."""
        if not self.ended.is_set():
            self.why = why
            self.ended.set()
        self.are_secrets_known.set()  # wake up a thread that waits for the confirmation
        if self.channel is not None:
            self.channel.close()


class SharedEngine(JobEngine[SharedJvm]):
    """Runs the jobs of one worker in its session on the node's JVM."""

    pid = None
    """None, since no driver process ends with this process."""

    def __init__(
        self,
        path: Path,
        name: str,
        *,
        hide: Callable[[str], str] = str,
        secrets: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Configure the engine: the path of the owner's socket, and the worker's name.

        `secrets` returns all secrets that this process knows, each with its replacement; the owner
        masks them in the JVM's log. `hide` masks secrets in the errors of jobs.
        """
        super().__init__(hide)
        self._path = path
        self._name = name
        self._secrets = secrets

    def open(self) -> None:
        """Request the node's JVM unless it is requested; returns at once. See `Engine.open`."""
        with self._changed:
            if self._state in {EngineState.WARMING, EngineState.WARM}:
                return
            self._driver = driver = Driver(SharedJvm())
            self._set_state(EngineState.WARMING, "waiting for the node's JVM")
        threading.Thread(
            target=self._follow, args=(driver,), name="spark-shared", daemon=True
        ).start()

    def run(self, tag: str, job: Callable[[SparkSession], T], pool: str = DEFAULT_POOL) -> T:
        """Run a job on the calling thread. See `Engine.run`."""
        driver = self._driver
        if driver is not None and driver.session is not None:
            self._send_secrets(driver.jvm)
        return super().run(tag, job, pool)

    def close(self, seconds: float) -> None:
        """Release the JVM; its owner cancels this worker's jobs, and other workers keep it."""
        with self._changed:
            driver, self._driver = self._driver, None
            self._set_state(EngineState.COLD, "closed")
        if driver is not None:
            driver.jvm.end("the engine was closed")
            if self._pyspark.acquire(timeout=seconds):  # else `attach` blocks in a JVM that hangs
                detach()
                self._pyspark.release()

    def _follow(self, driver: Driver[SharedJvm]) -> None:
        """Follow one JVM from the request to its end; runs on a separate thread."""
        jvm = driver.jvm
        while not jvm.ended.is_set() and jvm.channel is None:
            try:
                jvm.channel = connect(self._path)
                jvm.channel.send({"worker": self._name})
            except OSError:
                self._set_detail(driver, _NO_OWNER)
                jvm.channel = None
                jvm.ended.wait(_RECONNECT_SECONDS)
        while not jvm.ended.is_set() and jvm.channel is not None:
            if (message := jvm.channel.receive()) is None:
                break
            self._handle(driver, message)
        jvm.end(_NO_OWNER)
        self._note_end(jvm)

    def _handle(self, driver: Driver[SharedJvm], message: Mapping[str, Any]) -> None:
        match message:
            case {"waiting": str(detail)}:
                self._set_detail(driver, detail)
            case {"port": int(port), "secret": str(secret), "group": str(group), "jvm": str(jvm)}:
                driver.group = group
                self._attach(driver, JvmGateway(port, secret), jvm)
            case {"learned": True}:
                driver.jvm.are_secrets_known.set()
            case {"ended": str(why)}:
                driver.jvm.end(why)
            case _:
                driver.jvm.end(
                    "the owner of the node's JVM is of another version: restart the node"
                )

    def _set_detail(self, driver: Driver[SharedJvm], detail: str) -> None:
        with self._changed:
            if self._driver is driver and self._state is EngineState.WARMING:
                self._set_state(EngineState.WARMING, detail)

    def _attach(self, driver: Driver[SharedJvm], gateway: JvmGateway, name: str) -> None:
        """Create this worker's session in the warm JVM."""
        try:
            with self._pyspark:
                detach()
                driver.session = attach(gateway, is_shared=True)
            driver.session.range(1).count()
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine is down
            driver.jvm.end(f"no session could be made: {failure_text(error) or repr(error)}")
            return
        with self._changed:
            if self._driver is driver and self._state is EngineState.WARMING:
                self._set_state(EngineState.WARM, name)

    def _send_secrets(self, jvm: SharedJvm) -> None:
        """Send the owner all secrets that a job may use; raises `EngineDown`."""
        with jvm.sending_secrets:
            secrets = self._secrets()
            new = {each: shown for each, shown in secrets.items() if each not in jvm.known_secrets}
            if not new or jvm.channel is None:
                return
            jvm.are_secrets_known.clear()
            try:
                jvm.channel.send({"secrets": new})
            except OSError:
                jvm.end(_NO_OWNER)
            jvm.are_secrets_known.wait()
            if jvm.ended.is_set():
                raise EngineDown(jvm.why)
            jvm.known_secrets = dict(secrets)
