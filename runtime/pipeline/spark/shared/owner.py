"""The owner of a node's one JVM: keeps it running, and lets the node's workers share it.

Each worker has a channel to it, and a gateway of its own into the JVM once that is warm. When the
channel ends, however that happens, its gateway is closed, with all that the worker held in the JVM,
and its jobs are ended, so that none can begin later. A JVM that ends is started again under
back-off, one that does not answer is killed.
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
from typing import Final, Protocol, cast

from .....actors.backoff import Attempts, Backoff
from ..attach import OwnGateway
from ..embedded import Embedded
from ..engine import EngineState
from ..jvm import JvmGateway
from .channel import LineChannel, listen

LOGGER = logging.getLogger(__name__)
ASK_SECONDS: Final = 1.0
"""How often the JVM is asked for an answer."""


class Patience(Protocol):
    """For how long the JVM may owe an answer."""

    def look(self, now: float, *, is_silent: bool) -> None:
        """Let time pass; times are monotonic seconds."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether it has been silent for too long."""
        ...


@dataclass(eq=False, slots=True)
class _Sharer:
    """A worker that shares the JVM, or waits for it."""

    name: str
    group: str
    """The group of all its jobs; that of no other channel."""
    channel: LineChannel
    jvm: JvmGateway | None = None
    """The JVM that it shares, by the owner's own gateway; None: it waits for one."""
    gateway: OwnGateway | None = None
    """Its own one; None: it has none yet."""
    told: str = ""
    """What it was told last while it waits."""


class JvmOwner:
    """Runs a JVM for others; all but `open` and `look` happens on threads of its own."""

    def __init__(
        self,
        engine: Embedded,
        place: Path,
        learn: Callable[[Mapping[str, str]], None],
        patience: Callable[[], Patience],
        backoff_ms: Backoff[int],
    ) -> None:
        """Take the engine, which is not open yet, and the place where workers find its owner.

        `learn` is given secrets of workers, and what to show instead, before jobs bring them.
        """
        self._engine = engine
        self._place = place
        self._learn = learn
        self._new_patience = patience
        self._patience = patience()
        self._is_asked = False
        """Whether the JVM owes an answer."""
        self._attempts = Attempts(backoff_ms)
        self._open_at = 0.0
        """When the JVM may be started again, in seconds on the monotonic clock."""
        self._why = ""
        """Why the last JVM ended."""
        self.restarts = 0
        """How often it was started anew."""
        self._lock = threading.Lock()
        """Guards the following."""
        self._sharers: list[_Sharer] = []
        self._serial = count(1)

    def open(self) -> None:
        """Start the JVM, and listen to workers; to be called on the main thread.

        Raises `OSError` if nobody could find it.
        """
        listener = listen(self._place)
        self._engine.open()
        for what, name in ((self._ask, "spark-ask"), (lambda: self._accept(listener), "accept")):
            threading.Thread(target=what, name=name, daemon=True).start()

    def look(self) -> None:
        """See after the JVM, and tell workers what is new; some times a second, where it opened."""
        now = time.monotonic()
        self._patience.look(now, is_silent=self._is_asked)
        if self._patience.is_over:
            self._engine.kill(f"the JVM was killed: {self._patience}")
            self._patience = self._new_patience()
        state, detail = self._engine.state, self._engine.detail
        if state is EngineState.DOWN:
            self._why = detail
        self._tell(detail)
        if state is EngineState.WARM:
            self._attempts.reset()
        elif state is EngineState.DOWN and now >= self._open_at:
            LOGGER.warning("the node's JVM is down (%s): starting it again", detail)
            self._open_at = now + self._attempts.next_pause() / 1000
            self.restarts += 1
            self._engine.open()

    def close(self, seconds: float) -> None:
        """End the JVM, at the latest after so many seconds."""
        self._place.unlink(missing_ok=True)
        self._engine.close(seconds)

    def _tell(self, detail: str) -> None:
        gateway = self._engine.gateway
        with self._lock:
            sharers = [*self._sharers]
        for each in sharers:
            with suppress(OSError):  # it is gone, and its reader knows
                self._tell_one(each, gateway, detail)

    def _tell_one(self, sharer: _Sharer, gateway: JvmGateway | None, detail: str) -> None:
        if sharer.jvm is not None:
            if sharer.jvm != gateway:
                sharer.channel.send({"ended": self._why})
                sharer.channel.close()
        elif gateway is not None:
            sharer.jvm = gateway  # and on a thread of its own, for the JVM may owe its answer
            threading.Thread(target=self._admit, args=(sharer, detail), daemon=True).start()
        elif sharer.told != detail:
            sharer.told = detail
            sharer.channel.send({"waiting": detail})

    def _admit(self, sharer: _Sharer, detail: str) -> None:
        """Open a gateway for a worker, and tell it, unless it has gone meanwhile."""
        try:
            gateway = self._engine.new_gateway()
        except Exception as error:  # noqa: BLE001  # whatever py4j makes of a JVM that ends
            with suppress(OSError):
                sharer.channel.send({"ended": f"the node's JVM takes no worker: {error!r}"})
            sharer.channel.close()
            return
        with self._lock:
            sharer.gateway = gateway
            is_here = sharer in self._sharers
        if not is_here:
            gateway.close()
            return
        place = {"port": gateway.place.port, "secret": gateway.place.secret}
        with suppress(OSError):  # it is gone, and its reader knows
            sharer.channel.send({**place, "group": sharer.group, "jvm": detail})

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                channel = LineChannel(listener.accept()[0])
            except OSError as error:
                LOGGER.warning("a worker cannot be heard: %s", error)
                time.sleep(ASK_SECONDS)  # it has no descriptors left, most likely
                continue
            threading.Thread(target=self._serve, args=(channel,), daemon=True).start()

    def _serve(self, channel: LineChannel) -> None:
        """Hear one worker until its channel ends; then cut it off, and end its jobs."""
        match channel.receive():
            case {"worker": str(name)}:
                sharer = _Sharer(name, f"{name}#{next(self._serial)}", channel)
            case _:
                channel.close()
                return
        with self._lock:
            self._sharers.append(sharer)
        while (message := channel.receive()) is not None:
            self._hear(sharer, message)
        with self._lock:
            self._sharers.remove(sharer)
        channel.close()
        if sharer.jvm is not None and sharer.jvm == self._engine.gateway:
            if sharer.gateway is not None:
                sharer.gateway.close()
            self._engine.end_group(sharer.group)

    def _hear(self, sharer: _Sharer, message: Mapping[str, object]) -> None:
        match message:
            case {"secrets": dict()}:
                self._learn(cast("Mapping[str, str]", message["secrets"]))
                with suppress(OSError):
                    sharer.channel.send({"learned": True})
            case {"kill": str(why)}:
                if sharer.jvm is not None and sharer.jvm == self._engine.gateway:
                    self._engine.kill(why)
            case _:
                LOGGER.warning("worker %s says what nobody understands", sharer.name)

    def _ask(self) -> None:
        """Ask the JVM for an answer, again and again."""
        while True:
            self._is_asked = True
            self._engine.is_heard()
            self._is_asked = False
            time.sleep(ASK_SECONDS)
