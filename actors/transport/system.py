"""Starts, connects to, asks and stops an actor system, from a process outside of it."""
# pyright: basic

import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
from thespian.actors import ActorExitRequest, ActorSystemException

from ...events.log.process import ProcessId, is_alive, kill, process_of
from .actor import Actor, Address
from .log_format import LogOutput
from .ports import SystemAddress, holder_of
from .processes import PLAIN, ExternalSystem, Named, WhoIs, name_system
from .question import Question, Questions
from .tcp import arm

START_SECONDS = STOP_SECONDS = 10.0
STRAY_SECONDS = 2.0  # wait for child processes of actors, after the actors have ended
ADMIN_SECONDS = 2.0  # wait for an answer of the admin
PORT_SECONDS = 3.0  # how long the port of a system that just died may stay in use


class UnreachableError(Exception):
    """There is no system at the address, or it has another key or node."""


class CannotStartError(Exception):
    """A system or an actor could not be started."""


class SystemConnection:
    """One thread's connection to a system."""

    def __init__(self, base: ExternalSystem) -> None:
        self._base = base
        self._context = base.external_clone()

    def ask(self, actor: Address, message: object, seconds: float) -> object | None:
        """Send a message and return the reply, or None if there is none in time.

        Raises `UnreachableError` if the actor could not load the message.
        """
        try:
            answer: object | None = self._context.ask(actor, message, timedelta(seconds=seconds))
        except ActorSystemException as error:
            raise UnreachableError(str(error)) from None
        if answer is None:
            # A late reply must not be taken for that to the next message.
            self.close()
            self._context = self._base.external_clone()
        return answer

    def tell(self, actor: Address, message: object) -> None:
        """Send a message and wait for its delivery; raises `UnreachableError`."""
        try:
            self._context.tell(actor, message)
        except ActorSystemException as error:
            raise UnreachableError(str(error)) from None

    def close(self) -> None:
        """Close the connection's sockets."""
        self._context.exit_context()


class System:
    """An actor system as seen from outside it; any thread may use it, one at a time."""

    def __init__(self, base: ExternalSystem, admin: Any = None) -> None:
        self._base = base
        self._admin = admin
        self._connection: SystemConnection | None = None
        """The open connection; None after an error, until the next use."""
        self._questions = Questions(base)
        self._lock = threading.Lock()

    def create(self, kind: type[Actor], name: str | None = None) -> Address:
        """Start an actor below the admin, or return the existing one with this name.

        Raises `CannotStartError`.
        """
        try:
            return self._base.newPrimaryActor(kind, {"name": name, "title": kind.title}, name)
        except (ActorSystemException, ImportError) as error:
            raise CannotStartError(f"{kind.__name__} could not be started: {error}") from None

    def ask(self, actor: Address, message: object, seconds: float) -> object | None:
        """Call `SystemConnection.ask` on a shared connection."""
        with self._shared_connection() as connection:
            return connection.ask(actor, message, seconds)

    def tell(self, actor: Address, message: object) -> None:
        """Call `SystemConnection.tell` on a shared connection."""
        with self._shared_connection() as connection:
            connection.tell(actor, message)

    def stop(self, actor: Address) -> None:
        """Ask an actor to end, with all of its children; ignored if it has ended."""
        with suppress(UnreachableError):
            self.tell(actor, ActorExitRequest())

    @contextmanager
    def private(self) -> Generator[SystemConnection]:
        """Open a connection for one thread."""
        connection = SystemConnection(self._base)
        try:
            yield connection
        finally:
            connection.close()

    def named(self, name: str) -> Address | None:
        """Return the address of a named actor that was created from outside, or None.

        Raises `UnreachableError` if the admin does not answer.
        """
        answer = self._ask_admin(name)
        if answer is None:
            raise UnreachableError("the actor system does not answer at this moment: try again")
        return answer.address

    def begin(self, actor: Address, message: object) -> Question:
        """Send a message, and return a `Question` for its reply."""
        return self._questions.ask(actor, message)

    def ping(self) -> Question:
        """Send a liveness probe to the admin."""
        return self.begin(self._base.adminAddr, WhoIs(""))

    @property
    def admin_pid(self) -> int | None:
        """The process id of the admin, None if it is not a child of this process."""
        return None if self._admin is None else self._admin.pid

    def alive(self) -> bool:
        """Return whether the admin answers."""
        return not self.has_ended and self.node() is not None

    @property
    def has_ended(self) -> bool:
        """Whether the admin's process, if it is a child of this one, has ended."""
        return self._admin is not None and not self._admin.is_alive()

    def node(self) -> str | None:
        """Return the node of the system according to the admin, None without an answer."""
        answer = self._ask_admin("")
        return None if answer is None else answer.node

    def close(self) -> None:
        """Close this process's sockets; the system continues."""
        if self._connection is not None:
            self._connection.close()
        self._questions.close()
        self._base.transport.close()

    def kill(self) -> None:
        """Kill the admin and all of its processes, hung or not, and close.

        Only for the process that started the system. Returns when they have ended.
        """
        descendants = _descendants(self._admin)
        self.close()
        if self._admin is not None:
            self._admin.kill()
            self._admin.join()
        _end(descendants)

    def shutdown(self) -> None:
        """Stop every actor and the admin, and close.

        In the process that started the system this returns when all of its processes have ended;
        those that do not end in time are killed.
        """
        if self._admin is not None and not self.alive():
            self.kill()
            return
        descendants = _descendants(self._admin)
        self._base.shutdown()
        self.close()
        if self._admin is not None:
            self._admin.join(STOP_SECONDS)
            self._admin.kill()
            self._admin.join()
            _end(descendants)

    def _ask_admin(self, name: str) -> Named | None:
        with self.private() as connection:
            answer = connection.ask(self._base.adminAddr, WhoIs(name), ADMIN_SECONDS)
        return answer if isinstance(answer, Named) else None

    @contextmanager
    def _shared_connection(self) -> Generator[SystemConnection]:
        with self._lock:
            if self._connection is None:
                self._connection = SystemConnection(self._base)
            yield self._connection


def _descendants(admin: Any) -> list[ProcessId]:
    """Return all processes below the admin, none if it has ended."""
    if admin is not None and admin.is_alive():
        with suppress(psutil.Error):
            children = psutil.Process(admin.pid).children(recursive=True)
            return [process_of(each.pid) for each in children]
    return []


def _end(descendants: list[ProcessId]) -> None:
    """Wait for the end of processes, and kill those that still run after `STRAY_SECONDS`."""
    deadline = time.monotonic() + STRAY_SECONDS
    while any(map(is_alive, descendants)) and time.monotonic() < deadline:
        time.sleep(0.005)
    for each in descendants:
        kill(each)


def start_system(
    address: SystemAddress, *, log_file: Path, name: str, log: LogOutput = PLAIN
) -> System:
    """Start a system whose admin and actors die with the calling process.

    Call it on the main thread of a process that has opened no files yet: the actors are its forks.
    They log to `log_file`, unless `log` says otherwise, and have `name` in their titles. Raises
    `CannotStartError`.
    """
    if threading.current_thread() is not threading.main_thread():
        raise CannotStartError("a system dies with the thread that started it: use the main thread")
    log_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    name_system(name, log_file, address.node, log)
    arm(address.host, address.key)
    base = ExternalSystem(address.port)
    try:
        _await_port(base, address)
        admin = base.start_admin(START_SECONDS)
    except BaseException:
        base.transport.close()
        raise
    if admin is None:
        base.transport.close()
        raise CannotStartError(f"the actor system did not come up: {log_file} says why")
    return System(base, admin)


def _await_port(base: ExternalSystem, address: SystemAddress) -> None:
    deadline = time.monotonic() + PORT_SECONDS
    while base.port_is_taken():
        if time.monotonic() > deadline:
            holder = holder_of(address.host, address.port)
            raise CannotStartError(f"{address} is taken by {holder}: choose another port")
        time.sleep(0.02)


def connect(address: SystemAddress) -> System:
    """Connect to a system that another process has started; never starts one.

    Raises `UnreachableError`.
    """
    try:
        socket.create_connection((address.host, address.port), timeout=2).close()
    except OSError as error:
        raise UnreachableError(
            f"no cluster runs on {address} ({error.strerror or error}): "
            "start one, or name the port of one that runs"
        ) from None
    arm(address.host, address.key)
    system = System(ExternalSystem(address.port))
    node = system.node()
    if node is None:
        system.close()
        raise UnreachableError(
            f"what listens on {address} does not answer to this cluster's "
            "key, or is shutting down: check that the key is of the cluster that runs"
        )
    if node and address.node not in {"", node}:
        system.close()
        raise UnreachableError(
            f"another node of this cluster, or one of a copied data folder, listens on "
            f"{address}: start this one, or name the data folder of the other"
        )
    return system
