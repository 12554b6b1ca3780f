"""An actor, on Thespian: what it can do, and how it fails.

When a handler raises, Thespian hands the same message in a second time; a handler that had
already written to the log would write twice. So nothing raised by an actor reaches Thespian:
it goes to `failed`, which by default tells the sender in words, since the far side may not be
able to load the exception's class.

A message may get lost, and where two actors both initiate it may, seldom, come twice or late.
What is given up comes back to `undelivered`; silence proves nothing. So what matters is written
down, and handlers bear repetition.
"""
# pyright: basic

import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from thespian.actors import Actor as ThespianActor
from thespian.actors import (
    ActorExitRequest,
    ActorSystemMessage,
    ChildActorExited,
    DeadEnvelope,
    PoisonMessage,
    ThespianWatch,
    WakeupMessage,
    WatchMessage,
)

from .log_levels import LogLevelsRead, ReadLogLevels
from .processes import Manager, read_log_levels

Address = Any

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """The receiver failed on a message."""

    reason: str


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

    title: ClassVar[str] = ""
    """What its process is called before its name; empty: after its class."""
    _myRef: Any  # noqa: N815  (Thespian's name for what stands behind an actor)
    _children: tuple[Address, ...] = ()
    _is_stopping = False

    def receive(self, message: object, sender: Address) -> None:
        """Handle one message; what `post` was given comes with the actor itself as sender."""
        raise NotImplementedError

    def woken(self, payload: object) -> None:
        """Handle a timer that was asked for with `wake_after`."""

    def watched(self) -> Sequence[int]:
        """Return the descriptors of which `readable` is told when there is something to read."""
        return ()

    def readable(self, numbers: Sequence[int]) -> None:
        """Read what has come to watched descriptors."""

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
        child = self.createActor(kind, targetActorRequirements={"name": name, "title": kind.title})
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

    def receiveMessage(self, message: object, sender: Address) -> ThespianWatch | None:
        """Turn Thespian's one call into ours, and let no error out."""
        try:
            self._dispatch(message, sender)
        except Exception as error:
            content, asker = _answerable(message, sender)
            try:
                self.failed(error, content, asker)
            except Exception:
                LOGGER.exception("%s failed to answer for an error", type(self).__name__)
        watched = self.watched()  # Thespian forgets them unless it is told each time
        return ThespianWatch(watched) if watched else None

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
            case WatchMessage():
                self.readable(message.ready)
            case ActorSystemMessage() | ReadLogLevels() | LogLevelsRead():
                self._notice(message, sender)
            case _:
                self.receive(message, self._as_created(sender))

    def _notice(
        self, message: ActorSystemMessage | ReadLogLevels | LogLevelsRead, sender: Address
    ) -> None:
        match message:
            case ReadLogLevels():
                read_log_levels()
                for child in self._children:
                    self.send(child, message)
                self.send(sender, LogLevelsRead())
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
