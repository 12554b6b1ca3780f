"""The receiver of the reply to a call, and calls that clients repeat."""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ....actors.messages.errors import Error
from ....actors.messages.groups import HostCall

OnHold = Callable[[Callable[[], None]], None]
"""A callback for a call that a group has accepted, but answers later (a long poll, for example).

Its argument is a function that ends the hold: a held heartbeat is then answered at once.
"""


def ignore_hold(end_hold: Callable[[], None]) -> None:
    """Do nothing: the caller waits until the group answers."""


class CallLost(Exception):  # noqa: N818  # says what happened
    """It is unknown whether the call was accepted; `error` tells the client to retry."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.value)
        self.error = error


class ReplyHandler(Protocol):
    """The callbacks of a call: one of the first three is called, unless the call is cancelled."""

    def answer(self, reply: Any, /) -> None:
        """Handle the reply."""
        ...

    def repeat_answer(self) -> None:
        """Handle a reply that equals the previous one to this repeated call."""
        ...

    def fail(self, error: Error, /) -> None:
        """Handle a lost call, which may have been accepted: the client has to retry."""
        ...

    def hold(self, end_hold: Callable[[], None], /) -> None:
        """Handle that the group has accepted the call and answers later; see `OnHold`."""
        ...


class RepeatedCall:
    """A call that its client repeats: it is sent once, and afterwards only its number."""

    __slots__ = ("call", "number", "stream_number")

    def __init__(self, call: HostCall) -> None:
        self.call = call
        self.number = 0
        self.stream_number = 0
        """The number of the stream on which it was sent; 0: it was not sent yet."""


class CallInFlight(NamedTuple):
    """A call whose reply a task awaits."""

    answered: "asyncio.Future[Any]"
    """Its result is the reply, its exception `CallLost`."""
    on_hold: OnHold

    def answer(self, reply: Any) -> None:
        """Wake the task with the reply."""
        if not self.answered.done():
            self.answered.set_result(reply)

    def repeat_answer(self) -> None:
        """Do nothing: it is never called, since a task does not repeat calls."""

    def fail(self, error: Error) -> None:
        """Wake the task with `CallLost`."""
        if not self.answered.done():
            self.answered.set_exception(CallLost(error))

    def hold(self, end_hold: Callable[[], None]) -> None:
        """Call `on_hold`."""
        self.on_hold(end_hold)
