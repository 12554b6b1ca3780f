"""Who waits for the answer to a call, and what a line tells of it."""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ....actors.messages.errors import Error
from ....actors.messages.groups import PackedCall

Wait = Callable[[Callable[[], None]], None]
"""Is called when a group has taken a call, and has to wait with its answer: with what ends that
wait where it is but one for news."""


def no_wait(end_hold: Callable[[], None]) -> None:
    """Let it wait."""


class Lost(Exception):  # noqa: N818  # says what happened
    """Whether the call was taken is not known: `error` has the client ask again."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.value)
        self.error = error


class ReplyTaker(Protocol):
    """Who waits for the answer to a call: one of the first three comes, unless it is forgotten."""

    def answer(self, reply: Any, /) -> None:
        """Take the answer."""
        ...

    def answer_again(self) -> None:
        """Learn that the answer to a call that is repeated is that of the last time."""
        ...

    def lose(self, error: Error, /) -> None:
        """Learn that whether the call was taken is not known: its client is to ask again."""
        ...

    def let_wait(self, end_hold: Callable[[], None], /) -> None:
        """Learn that the group has taken the call, as `Wait` does."""
        ...


class KeptCall:
    """A call that its client repeats: what it says is told once, then its number alone."""

    __slots__ = ("call", "life", "number")

    def __init__(self, call: PackedCall) -> None:
        self.call = call
        self.number = 0
        self.life = 0
        """The number of the stream by which it was told; 0: it was not, yet."""


class Asker(NamedTuple):
    """A task that awaits the answer."""

    answered: "asyncio.Future[Any]"
    """Raises `Lost`."""
    wait: Wait

    def answer(self, reply: Any) -> None:
        """Wake the task."""
        if not self.answered.done():
            self.answered.set_result(reply)

    def answer_again(self) -> None:
        """Never happen: a task repeats nothing."""

    def lose(self, error: Error) -> None:
        """Wake the task."""
        if not self.answered.done():
            self.answered.set_exception(Lost(error))

    def let_wait(self, end_hold: Callable[[], None]) -> None:
        """Tell whoever asks."""
        self.wait(end_hold)
