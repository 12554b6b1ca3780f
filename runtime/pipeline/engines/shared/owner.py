"""The owner of a node's JVM: it keeps the JVM running and lets the node's workers share it.

The JVM is started for the first worker that needs it.

Each worker has a channel to the owner, and a gateway of its own into the JVM once the JVM is warm.
When the channel closes for any reason, the owner closes the gateway, which releases the worker's
objects in the JVM, and cancels the worker's present and future jobs. A JVM that ends is restarted
with back-off, and a JVM that does not answer is killed.
"""

import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final, cast

from .....actors.timing import Attempts, Backoff
from ....processes.liveness import Silence
from ..embedded.attach import ExtraGateway
from ..embedded.engine import Embedded
from ..embedded.jvm import JvmGateway
from ..engine import EngineState
from .channel import LineChannel, listen

LOGGER = logging.getLogger(__name__)
PING_SECONDS: Final = 1.0
"""The interval of the calls that check whether the JVM answers."""


@dataclass(eq=False, slots=True)
class _Client:
    """A worker that uses the JVM, or waits for it."""

    name: str
    group: str
    """The Spark job group of all its jobs, unique to its channel."""
    channel: LineChannel
    jvm: JvmGateway | None = None
    """The JVM that it uses, identified by the owner's gateway; None: it waits for one."""
    gateway: ExtraGateway | None = None
    """The worker's own gateway; None: it has none yet."""
    last_detail: str = ""
    """The last detail that was sent while it waits."""


class JvmOwner:
    """Runs a JVM for the workers of a node; it serves their channels on separate threads."""

    def __init__(
        self,
        engine: Embedded,
        path: Path,
        learn: Callable[[Mapping[str, str]], None],
        silence: Callable[[], Silence],
        backoff_ms: Backoff[int],
    ) -> None:
        """Configure the owner; `engine` must not be open yet, and `path` is the socket's.

        `learn` is called with the secrets of workers and their replacements, before a job uses
        them. `silence` makes the count of a new JVM, with its time limit.
        """
        self._engine = engine
        self._path = path
        self._learn = learn
        self._new_silence = silence
        self._silence = silence()
        """How long the JVM has not answered."""
        self._awaits_answer = False
        """Whether the JVM has not yet answered the last call."""
        self._attempts = Attempts(backoff_ms)
        self._open_at = 0.0
        """The monotonic time from which the JVM may be started again."""
        self._why = ""
        """Why the last JVM ended."""
        self.restarts = 0
        """The number of restarts of the JVM."""
        self._lock = threading.Lock()
        """Guards the following."""
        self._clients: list[_Client] = []
        self._serial = count(1)

    def open(self) -> None:
        """Accept workers; the JVM is started for the first of them.

        Raises `OSError` if it cannot listen on its socket.
        """
        listener = listen(self._path)
        for target, name in (
            (self._ping, "spark-ping"),
            (lambda: self._accept(listener), "accept"),
        ):
            threading.Thread(target=target, name=name, daemon=True).start()

    def look(self) -> None:
        """Kill or restart the JVM if needed, and notify workers; polled on the main thread."""
        now = time.monotonic()
        self._silence.look(now, is_silent=self._awaits_answer)
        if self._silence.is_over:
            self._engine.kill(f"the JVM was killed: {self._silence}")
            self._silence = self._new_silence()
        if self._engine.state is EngineState.COLD and self._clients:
            self._engine.open()
        state, detail = self._engine.state, self._engine.detail
        if state is EngineState.DOWN:
            self._why = detail
        self._notify(detail)
        if state is EngineState.WARM:
            self._attempts.reset()
        elif state is EngineState.DOWN and now >= self._open_at:
            LOGGER.warning("the node's JVM is down (%s): starting it again", detail)
            self._open_at = now + self._attempts.next_pause() / 1000
            self.restarts += 1
            self._engine.open()

    def close(self, seconds: float) -> None:
        """End the JVM within the given time."""
        self._path.unlink(missing_ok=True)
        self._engine.close(seconds)

    def _notify(self, detail: str) -> None:
        gateway = self._engine.gateway
        with self._lock:
            clients = [*self._clients]
        for each in clients:
            with suppress(OSError):  # the worker is gone; its reader thread handles that
                self._notify_one(each, gateway, detail)

    def _notify_one(self, client: _Client, gateway: JvmGateway | None, detail: str) -> None:
        if client.jvm is not None:
            if client.jvm != gateway:
                client.channel.send({"ended": self._why})
                client.channel.close()
        elif gateway is not None:
            client.jvm = gateway
            # On a separate thread, since the JVM may not answer.
            threading.Thread(target=self._open_gateway, args=(client, detail), daemon=True).start()
        elif client.last_detail != detail:
            client.last_detail = detail
            client.channel.send({"waiting": detail})

    def _open_gateway(self, client: _Client, detail: str) -> None:
        """Open a gateway for a worker and send its address, unless the worker has gone."""
        try:
            gateway = self._engine.new_gateway()
        except Exception as error:  # noqa: BLE001  # py4j raises many types if a JVM ends
            with suppress(OSError):
                client.channel.send({"ended": f"the node's JVM takes no worker: {error!r}"})
            client.channel.close()
            return
        with self._lock:
            client.gateway = gateway
            is_connected = client in self._clients
        if not is_connected:
            gateway.close()
            return
        address = {"port": gateway.place.port, "secret": gateway.place.secret}
        with suppress(OSError):  # the worker is gone; its reader thread handles that
            client.channel.send({**address, "group": client.group, "jvm": detail})

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                channel = LineChannel(listener.accept()[0])
            except OSError as error:
                LOGGER.warning("a worker cannot connect: %s", error)
                time.sleep(PING_SECONDS)  # probably out of file descriptors
                continue
            threading.Thread(target=self._serve, args=(channel,), daemon=True).start()

    def _serve(self, channel: LineChannel) -> None:
        """Serve one worker until its channel closes; then close its gateway and cancel its jobs."""
        match channel.receive():
            case {"worker": str(name)}:
                client = _Client(name, f"{name}#{next(self._serial)}", channel)
            case _:
                channel.close()
                return
        with self._lock:
            self._clients.append(client)
        while (message := channel.receive()) is not None:
            self._handle(client, message)
        with self._lock:
            self._clients.remove(client)
        channel.close()
        if client.jvm is not None and client.jvm == self._engine.gateway:
            if client.gateway is not None:
                client.gateway.close()
            self._engine.end_group(client.group)

    def _handle(self, client: _Client, message: Mapping[str, object]) -> None:
        match message:
            case {"secrets": dict()}:
                self._learn(cast("Mapping[str, str]", message["secrets"]))
                with suppress(OSError):
                    client.channel.send({"learned": True})
            case {"kill": str(why)}:
                if client.jvm is not None and client.jvm == self._engine.gateway:
                    self._engine.kill(why)
            case _:
                LOGGER.warning("worker %s sent an unknown message", client.name)

    def _ping(self) -> None:
        """Call the JVM periodically, so that `look` notices when it does not answer."""
        while True:
            self._awaits_answer = True
            self._engine.is_responsive()
            self._awaits_answer = False
            time.sleep(PING_SECONDS)
