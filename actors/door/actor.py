"""The one door to Thespian: what an actor can do here, and how it fails.

When a handler raises, Thespian hands the same message in a second time; a handler that had
already written to the log would write twice. So nothing raised by an actor reaches Thespian:
it goes to `failed`, which by default tells the sender in words, since the far side may not be
able to load the exception's class.

A message may get lost, and where two actors both initiate it may, seldom, come twice or late.
What is given up comes back to `undelivered`; silence proves nothing. So what matters is written
down, and handlers bear repetition.
"""
# pyright: basic

import ipaddress
import logging
import os
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
from thespian.actors import Actor as ThespianActor
from thespian.actors import (
    ActorExitRequest,
    ActorSystemException,
    ActorSystemMessage,
    ChildActorExited,
    DeadEnvelope,
    PoisonMessage,
    WakeupMessage,
)

from ...events.log.process import ProcessId, is_alive, kill, process_of
from .ports import holder_of
from .transport import ExternalSystem, Manager, Named, WhoIs, arm, name_system

Address = Any

KEY_BYTES = 32
START_SECONDS = 10.0
STOP_SECONDS = 10.0
STRAY_SECONDS = 2.0  # for what actors have started, once they are gone
ADMIN_SECONDS = 2.0  # for the admin to answer
PORT_SECONDS = 3.0  # how long the port of a system that just died may stay taken

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """The receiver failed on a message."""

    reason: str


class UnreachableError(Exception):
    """There is no system behind the door, or none that holds its key."""


class CannotStartError(Exception):
    """A system or an actor did not come up."""


@dataclass(frozen=True, slots=True)
class Door:
    """Where a system is reached, and the secret that opens it.

    `host` is an IPv4 loopback address, `port` that of the admin, `key` 32 random bytes of one
    cluster. Raises ValueError for anything else. Where `node` is not empty, only a system that
    was started for this node is behind the door.
    """

    host: str
    port: int
    key: bytes = field(repr=False)
    node: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not ipaddress.IPv4Address(self.host).is_loopback:
            raise ValueError(
                f"actors speak on loopback only, and {self.host} is not: use 127.0.0.1"
            )
        if not 0 < self.port < 1 << 16:
            raise ValueError(f"{self.port} is not a port: use one from 1 to 65535")
        if len(self.key) != KEY_BYTES:
            raise ValueError(f"the key of a cluster has {KEY_BYTES} bytes, not {len(self.key)}")


def address_key(address: Address) -> str:
    """Return a string to find an actor by in a dict; addresses themselves have no hash.

    Within one actor the key of a child is the same for the address that `create` returned and
    for the sender of the child's messages.
    """
    instance = getattr(address.addressDetails, "addressInstanceNum", None)
    return str(address) if instance is None else f"child {instance}"


@dataclass(frozen=True, slots=True)
class _Posted:
    message: object


@dataclass(frozen=True, slots=True)
class _Outgoing:
    to: Address
    message: object


class Actor(ThespianActor):
    """An actor: override `receive`, and whatever else of the first half concerns it.

    The actor's methods are called one at a time. All are to be used on the actor's own thread,
    but for `send`, `post` and `die`, which any thread may call.
    """

    _myRef: Any  # noqa: N815  (Thespian's name for what stands behind an actor)
    _children: tuple[Address, ...] = ()
    _is_stopping = False

    def receive(self, message: object, sender: Address) -> None:
        """Handle one message; what `post` was given comes with the actor itself as sender."""
        raise NotImplementedError

    def woken(self, payload: object) -> None:
        """Handle a timer that was asked for with `wake_after`."""

    def child_exited(self, child: Address) -> None:
        """Handle the exit of an actor that was made with `create`; called once for each."""

    def stopping(self) -> None:
        """Clean up: the actor is about to end by request or SIGTERM; called once, and last."""

    def undelivered(self, message: object, to: Address) -> None:
        """Handle a message that was given up; it may have arrived all the same."""
        LOGGER.warning("%s for %s was not delivered", type(message).__name__, to)

    def failed(self, error: Exception, message: object, sender: Address | None) -> None:
        """Answer for an error raised by one of the methods above.

        `sender` is None where nobody waits for an answer: timers, posts, exits. An actor whose
        outcome is unknown after an error overrides this and ends with `die`.
        """
        LOGGER.error("%s failed on %s", type(self).__name__, type(message).__name__, exc_info=error)
        if sender is not None and not isinstance(message, Failure):
            self.send(sender, Failure(f"{type(error).__name__}: {error}"))

    @property
    def my_address(self) -> Address:
        """The actor's own address."""
        return self.myAddress

    def send(self, to: Address, message: object) -> None:
        """Send a message that pickle takes."""
        if threading.current_thread() is threading.main_thread():
            super().send(to, message)
        else:
            self._deliver(_Outgoing(to, message))

    def post(self, message: object) -> None:
        """Hand a message to this actor's own `receive`; it is not copied."""
        self._deliver(_Posted(message))

    def wake_after(self, seconds: float, payload: object = None) -> None:
        """Have `woken` called after a while; timers due together come in order."""
        self.wakeupAfter(timedelta(seconds=seconds), payload)

    def create(self, kind: type["Actor"], name: str | None = None) -> Address:
        """Start a child in a process of its own, forked from this one; it can be sent to at once.

        The name is for the process list only. A child that cannot start is reported to
        `child_exited`.
        """
        child = self.createActor(kind, targetActorRequirements={"name": name})
        self._children = (*self._children, child)
        return child

    def pid_of(self, child: Address) -> int | None:
        """Return the process id of an actor made with `create`, None if it has none any more."""
        return self._myRef.pid_of(child) if isinstance(self._myRef, Manager) else None

    def stop(self, child: Address) -> None:
        """Ask an actor to end, with all of its children."""
        self.send(child, ActorExitRequest())

    def die(self, code: int) -> None:
        """End this actor's process at once, without clean-up; its children die with it."""
        if isinstance(self._myRef, Manager):
            os._exit(code)
        raise SystemExit(code)  # in-process base: the process is not the actor's to end

    def receiveMessage(self, message: object, sender: Address) -> None:
        """Turn Thespian's one call into ours, and let no error out."""
        try:
            self._dispatch(message, sender)
        except Exception as error:
            content, asker = _answerable(message, sender)
            try:
                self.failed(error, content, asker)
            except Exception:
                LOGGER.exception("%s failed to answer for an error", type(self).__name__)

    def _dispatch(self, message: object, sender: Address) -> None:
        match message:
            case ActorExitRequest():
                if not self._is_stopping:
                    self._is_stopping = True
                    self.stopping()
            case _ if self._is_stopping:
                pass
            case _Outgoing():
                super().send(message.to, message.message)
            case _Posted():
                self.receive(message.message, self.myAddress)
            case ActorSystemMessage():
                self._notice(message, sender)
            case _:
                self.receive(message, self._as_created(sender))

    def _notice(self, message: ActorSystemMessage, sender: Address) -> None:
        match message:
            case WakeupMessage():
                self.woken(message.payload)
            case ChildActorExited():
                child = self._as_created(message.childAddress)
                if any(child is each for each in self._children):
                    self._children = tuple(each for each in self._children if each is not child)
                    self.child_exited(child)
            case PoisonMessage():
                self.undelivered(message.poisonMessage, self._as_created(sender))
            case DeadEnvelope():
                self.undelivered(message.deadMessage, self._as_created(message.deadAddress))

    def _as_created(self, address: Address) -> Address:
        return next((child for child in self._children if child == address), address)

    def _deliver(self, message: object) -> None:
        if isinstance(self._myRef, Manager):
            self._myRef.post(message)
        else:
            super().send(self.myAddress, message)


def _answerable(message: object, sender: Address) -> tuple[object, Address | None]:
    match message:
        case _Posted() | _Outgoing():
            return message.message, None
        case ActorSystemMessage():
            return message, None
        case _:
            return message, sender


class Line:
    """One thread's own way into a system."""

    def __init__(self, base: ExternalSystem) -> None:
        self._base = base
        self._context = base.external_clone()

    def ask(self, actor: Address, message: object, seconds: float) -> object | None:
        """Send a message and return the answer, or None if there is none in time.

        Raises `UnreachableError` if the actor could not load the message.
        """
        try:
            answer: object | None = self._context.ask(actor, message, timedelta(seconds=seconds))
        except ActorSystemException as error:
            raise UnreachableError(str(error)) from None
        if answer is None:
            # An answer that comes late must not be taken for that to the next question.
            self.close()
            self._context = self._base.external_clone()
        return answer

    def tell(self, actor: Address, message: object) -> None:
        """Send a message and wait for its arrival; raises `UnreachableError`."""
        try:
            self._context.tell(actor, message)
        except ActorSystemException as error:
            raise UnreachableError(str(error)) from None

    def close(self) -> None:
        """Close the line's sockets."""
        self._context.exit_context()


class Question:
    """A message under way to an actor: its sender need not wait for the answer."""

    def __init__(self, base: ExternalSystem, actor: Address, message: object) -> None:
        self._context = base.external_clone()
        self._sent = self._context.begin(actor, message)

    def answer(self, seconds: float) -> object | None:
        """Wait for the answer, for some seconds at most; None if there is none yet."""
        answer: object | None = self._context.listen(timedelta(seconds=seconds))
        return answer

    @property
    def is_lost(self) -> bool:
        """Whether the message was given up: nobody is there, or nobody acknowledged it."""
        return bool(self._sent.failed)

    def close(self) -> None:
        """Wait no more."""
        self._context.exit_context()


class System:
    """An actor system as seen from outside it; any thread may use it, one at a time."""

    def __init__(self, base: ExternalSystem, admin: Any = None) -> None:
        self._base = base
        self._admin = admin
        self._line: Line | None = None
        self._lock = threading.Lock()

    def create(self, kind: type[Actor], name: str | None = None) -> Address:
        """Start an actor under the admin, or return the one that has the name already.

        Raises `CannotStartError`.
        """
        try:
            return self._base.newPrimaryActor(kind, {"name": name}, name)
        except (ActorSystemException, ImportError) as error:
            raise CannotStartError(f"{kind.__name__} could not be started: {error}") from None

    def ask(self, actor: Address, message: object, seconds: float) -> object | None:
        """Send a message and return the answer, or None if there is none in time.

        Raises `UnreachableError` if the actor could not load the message.
        """
        with self._own_line() as line:
            return line.ask(actor, message, seconds)

    def tell(self, actor: Address, message: object) -> None:
        """Send a message and wait for its arrival; raises `UnreachableError`."""
        with self._own_line() as line:
            line.tell(actor, message)

    def stop(self, actor: Address) -> None:
        """Ask an actor to end, with all of its children; one that is gone is no error."""
        with suppress(UnreachableError):
            self.tell(actor, ActorExitRequest())

    @contextmanager
    def private(self) -> Generator[Line]:
        """Give a thread a line of its own."""
        line = Line(self._base)
        try:
            yield line
        finally:
            line.close()

    def named(self, name: str) -> Address | None:
        """Return the address of the actor created from outside under a name, or None.

        Raises `UnreachableError` if the admin does not answer.
        """
        with self.private() as line:
            answer = line.ask(self._base.adminAddr, WhoIs(name), ADMIN_SECONDS)
        if not isinstance(answer, Named):
            raise UnreachableError("the actor system does not answer at this moment: try again")
        return answer.address

    def begin(self, actor: Address, message: object) -> Question:
        """Send a message, and return what will have the answer."""
        return Question(self._base, actor, message)

    def ping(self) -> Question:
        """Ask the admin whether it is there."""
        return Question(self._base, self._base.adminAddr, WhoIs(""))

    @property
    def admin_pid(self) -> int | None:
        """The process id of the admin, where it is a child of this process."""
        return None if self._admin is None else self._admin.pid

    def alive(self) -> bool:
        """Return whether the admin answers."""
        return not self.has_ended and self.node() is not None

    @property
    def has_ended(self) -> bool:
        """Whether the admin's process, if it is a child of this one, has ended."""
        return self._admin is not None and not self._admin.is_alive()

    def node(self) -> str | None:
        """Return which node the admin says that the system is of, None without an answer."""
        with self.private() as line:
            answer = line.ask(self._base.adminAddr, WhoIs(""), ADMIN_SECONDS)
        return answer.node if isinstance(answer, Named) else None

    def close(self) -> None:
        """Close this process's sockets; the system goes on."""
        if self._line is not None:
            self._line.close()
        self._base.transport.close()

    def kill(self) -> None:
        """Kill the admin and all of its processes, hung or not, and close.

        Only the process that started the system can; it returns when they are gone.
        """
        family = _family(self._admin)
        self.close()
        if self._admin is not None:
            self._admin.kill()
            self._admin.join()
        _see_off(family)

    def shutdown(self) -> None:
        """Stop every actor and the admin, and close.

        In the process that started the system this returns when all of its processes are gone;
        those that do not end in time are killed.
        """
        if self._admin is not None and not self.alive():
            self.kill()
            return
        family = _family(self._admin)
        self._base.shutdown()
        self.close()
        if self._admin is not None:
            self._admin.join(STOP_SECONDS)
            self._admin.kill()
            self._admin.join()
            _see_off(family)

    @contextmanager
    def _own_line(self) -> Generator[Line]:
        with self._lock:
            if self._line is None:
                self._line = Line(self._base)
            yield self._line


def _family(admin: Any) -> list[ProcessId]:
    if admin is None or not admin.is_alive():
        return []
    with suppress(psutil.Error):
        below = psutil.Process(admin.pid).children(recursive=True)
        return [process_of(each.pid) for each in below]
    return []


def _see_off(family: list[ProcessId]) -> None:
    deadline = time.monotonic() + STRAY_SECONDS
    while any(map(is_alive, family)) and time.monotonic() < deadline:
        time.sleep(0.005)
    for each in family:
        kill(each)


def start_system(door: Door, *, log_file: Path, name: str, log_level: str = "INFO") -> System:
    """Start a system whose admin and actors die with the calling process.

    Call it on the main thread of a process that has opened nothing yet: the actors are its
    forks. They log to `log_file` what is of this level or above, and `name` shows in the process
    list. Raises `CannotStartError`.
    """
    if threading.current_thread() is not threading.main_thread():
        raise CannotStartError("a system dies with the thread that started it: use the main thread")
    log_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    name_system(name, log_file, door.node, log_level)
    arm(door.host, door.key)
    base = ExternalSystem(door.port)
    try:
        _await_port(base, door)
        return System(base, _start_admin(base, log_file))
    except BaseException:
        base.transport.close()
        raise


def _start_admin(base: ExternalSystem, log_file: Path) -> Any:
    admin = base.start_admin(START_SECONDS)
    if admin is None:
        raise CannotStartError(f"the actor system did not come up: {log_file} says why")
    return admin


def _await_port(base: ExternalSystem, door: Door) -> None:
    deadline = time.monotonic() + PORT_SECONDS
    while base.port_is_taken():
        if time.monotonic() > deadline:
            holder = holder_of(door.host, door.port)
            raise CannotStartError(
                f"port {door.port} of {door.host} is taken by {holder}: choose another port"
            )
        time.sleep(0.02)


def connect(door: Door) -> System:
    """Reach a system that another process has started; never starts one.

    Raises `UnreachableError`.
    """
    try:
        socket.create_connection((door.host, door.port), timeout=2).close()
    except OSError as error:
        raise UnreachableError(
            f"no cluster runs on port {door.port} of {door.host} ({error.strerror or error}): "
            "start one, or name the port of one that runs"
        ) from None
    arm(door.host, door.key)
    system = System(ExternalSystem(door.port))
    node = system.node()
    if node is None:
        system.close()
        raise UnreachableError(
            f"what listens on port {door.port} of {door.host} does not answer to this cluster's "
            "key, or is shutting down: check that the key is of the cluster that runs"
        )
    if node and door.node not in {"", node}:
        system.close()
        raise UnreachableError(
            f"another node of this cluster, or one of a copied data folder, listens on port "
            f"{door.port} of {door.host}: start this one, or name the data folder of the other"
        )
    return system
