"""The base class of actors, on Thespian: its messages, timers, children and error handling.

When a handler raises, Thespian delivers the same message a second time; a handler that had already
appended to the log would do so twice. So no exception of an actor reaches Thespian: it is passed to
`failed`, which by default replies with its text, since the sender may not be able to unpickle the
exception.

Delivery is not guaranteed. A message may be lost, and if two actors both open a connection it may,
rarely, come twice or late. A message that was given up is returned to `undelivered`, but the lack
of that proves nothing. So important facts are logged, and handlers are idempotent.
"""
# pyright: basic

import logging
import os
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
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
from .processes import ActorManager, read_log_levels

Address = Any

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """The reply of an actor whose handler failed."""

    reason: str


def address_key(address: Address) -> str:
    """Return a dict key for an actor: addresses themselves are not hashable.

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
    """An actor: override `receive`, and other handlers of the first half as needed.

    Handlers are called one at a time. All methods have to be called on the actor's own thread,
    except `send`, `post` and `die`, which are thread-safe.
    """

    title: ClassVar[str] = ""
    """The first part of its process title; empty: derived from its class."""
    _myRef: Any  # noqa: N815  (Thespian's name for the actor's manager)
    _children: tuple[Address, ...] = ()
    _is_stopping = False
    _waker = -1
    """The eventfd with which other threads wake this one; -1: no thread has posted anything yet."""
    _posted: deque[object]
    """The messages of other threads to this one; there from the first of them on."""
    _waking: ClassVar = threading.Lock()
    """Held while these two are created."""

    def receive(self, message: object, sender: Address) -> None:
        """Handle one message; one from `post` has the actor itself as sender."""
        raise NotImplementedError

    def woken(self, payload: object) -> None:
        """Handle a timer of `wake_after`."""

    def watched(self) -> Sequence[int]:
        """Return the descriptors to poll; `readable` is called when one has input."""
        return ()

    def readable(self, numbers: Sequence[int]) -> None:
        """Handle input on watched descriptors."""

    def child_exited(self, child: Address) -> None:
        """Handle the exit of an actor that was started with `create`; called once for each."""

    def stopping(self) -> None:
        """Clean up before the actor ends, by request or SIGTERM; called once, and last."""

    def undelivered(self, message: object, to: Address) -> None:
        """Handle a message whose delivery was given up; it may have been delivered after all."""
        LOGGER.warning("%s for %s was not delivered", type(message).__name__, to)

    def failed(self, error: Exception, message: object, sender: Address | None) -> None:
        """Handle an exception of one of the handlers above; by default reply with a `Failure`.

        `sender` is None if nobody waits for a reply: timers, posts, exits. An actor whose state is
        unknown after an error overrides this and ends with `die`.
        """
        LOGGER.error("%s failed on %s", type(self).__name__, type(message).__name__, exc_info=error)
        if sender is not None and not isinstance(message, Failure):
            self.send(sender, Failure(f"{type(error).__name__}: {error}"))

    def send(self, to: Address, message: object) -> None:
        """Send a message, which has to be picklable."""
        if threading.current_thread() is threading.main_thread():
            super().send(to, message)
        else:
            self._deliver(_Outgoing(to, message))

    def post(self, message: object) -> None:
        """Deliver a message to this actor's own `receive`, without a copy."""
        self._deliver(_Posted(message))

    def wake_after(self, seconds: float, payload: object = None) -> None:
        """Call `woken` after a delay; timers that are due together fire in order."""
        self.wakeupAfter(timedelta(seconds=seconds), payload)

    def create(self, kind: type["Actor"], name: str | None = None) -> Address:
        """Start a child actor in a fork of this process; messages can be sent to it at once.

        The name is for the process list only. A child that cannot start is reported to
        `child_exited`.
        """
        child = self.createActor(kind, targetActorRequirements={"name": name, "title": kind.title})
        self._children = (*self._children, child)
        return child

    def pid_of(self, child: Address) -> int | None:
        """Return the process id of an actor started with `create`, None if it has ended."""
        return self._myRef.pid_of(child) if isinstance(self._myRef, ActorManager) else None

    def stop(self, child: Address) -> None:
        """Ask an actor to end, with all of its children."""
        self.send(child, ActorExitRequest())

    def die(self, code: int) -> None:
        """End this actor's process at once, without cleanup; its children end with it."""
        if isinstance(self._myRef, ActorManager):
            os._exit(code)
        raise SystemExit(code)  # in-process base: the process is not the actor's to end

    def receiveMessage(self, message: object, sender: Address) -> ThespianWatch | None:
        """Dispatch Thespian's single callback to the handlers, and catch all exceptions."""
        try:
            self._dispatch(message, sender)
        except Exception as error:
            content, asker = _content_and_sender(message, sender)
            try:
                self.failed(error, content, asker)
            except Exception:
                LOGGER.exception("%s failed to answer for an error", type(self).__name__)
        watched = [*self.watched(), *([self._waker] if self._waker >= 0 else [])]
        return ThespianWatch(watched) if watched else None  # needed again after each message

    def _dispatch(self, message: object, sender: Address) -> None:
        match message:
            case ActorExitRequest():
                if not self._is_stopping:
                    self._is_stopping = True
                    self.stopping()
            case WatchMessage():
                self._handle_input(message.ready)
            case _ if self._is_stopping:
                pass
            case _Outgoing():
                super().send(message.to, message.message)
            case _Posted():
                self.receive(message.message, self.myAddress)
            case ActorSystemMessage() | ReadLogLevels() | LogLevelsRead():
                self._handle_system_message(message, sender)
            case _:
                LOGGER.debug("%s comes", type(message).__name__)
                self.receive(message, self._as_known(sender))

    def _handle_system_message(
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
                child = self._as_known(message.childAddress)
                if any(child is each for each in self._children):
                    self._children = tuple(each for each in self._children if each is not child)
                    self.child_exited(child)
            case PoisonMessage():
                self.undelivered(message.poisonMessage, self._as_known(sender))
            case DeadEnvelope():
                self.undelivered(message.deadMessage, self._as_known(message.deadAddress))

    def _as_known(self, address: Address) -> Address:
        """Return the address of a child as `create` returned it, other addresses unchanged."""
        return next((child for child in self._children if child == address), address)

    def _deliver(self, message: object) -> None:
        if not isinstance(self._myRef, ActorManager):
            super().send(self.myAddress, message)
        elif self._create_waker():
            self._myRef.put(message)
            self._myRef.transport.interrupt_wait()
        else:
            self._posted.append(message)
            os.eventfd_write(self._waker, 1)

    def _create_waker(self) -> bool:
        """Create the eventfd that wakes the actor's thread; return False if it exists already.

        An eventfd costs a tenth of a connection to oneself, and unlike the mailbox it is polled
        together with the sockets: threads that post all the time keep no message of another process
        waiting. It is watched only after the next message was handled, so the first message of a
        thread goes to the mailbox.
        """
        if self._waker >= 0:
            return False
        with self._waking:
            if self._waker < 0:
                self._posted = deque()
                self._waker = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        return True

    def _handle_input(self, numbers: Sequence[int]) -> None:
        if self._waker in numbers:
            with suppress(BlockingIOError):  # while this process only sent, it may be told twice
                os.eventfd_read(self._waker)
            for _ in range(len(self._posted)):  # not those that are posted meanwhile
                self.receiveMessage(self._posted.popleft(), self.myAddress)
        others = [each for each in numbers if each != self._waker]
        if others and not self._is_stopping:
            self.readable(others)


def _content_and_sender(message: object, sender: Address) -> tuple[object, Address | None]:
    """Return the content of a message, and who waits for a reply to it; None: nobody does."""
    match message:
        case _Posted() | _Outgoing():
            return message.message, None
        case ActorSystemMessage():
            return message, None
        case _:
            return message, sender
