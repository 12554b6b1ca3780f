"""Questions about the right to write, which other threads put to the actor of their worker.

The actor thread alone knows what is sure: it reads the log, and has the worker's deadline. So a
thread waits for its answer. A worker that hangs, or was stopped for longer than its session, gives
none in time, or ends: both mean no. So does a group that does not answer in time, where the log
here is a copy, of which the group has to be asked first how far it should be.
"""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

from .....events.model import Resource, Token
from ..core.worker_core import WorkerCore

_WAIT_S: Final = 5.0
"""How long a thread waits for the actor; a plugin host waits longer."""


@dataclass(frozen=True, slots=True)
class RightsQuestion:
    """To the worker itself, from another of its threads."""

    ask: Callable[[WorkerCore, int], bool]
    """Called on the actor thread with the core and the monotonic time in milliseconds."""
    is_of_present: bool = False
    """Whether it has to be answered by all that counts in the log now."""
    answer: "Future[bool]" = field(default_factory=Future[bool])


class ActorRights:
    """Asks the actor whether tasks may write; usable from any thread but the actor's."""

    def __init__(self, post: Callable[[RightsQuestion], None]) -> None:
        """`post` delivers a question to the actor."""
        self._post = post

    def may_write(self, resource: Resource, token: Token) -> bool:
        """Return whether a resource may write under a token, as of now: `WorkerCore.may_write`."""
        return self._ask(
            lambda core, now_ms: core.may_write(resource, token, now_ms), is_of_present=True
        )

    def has_logged(self, resource: Resource) -> bool:
        """Return whether the log has all that was reported of a resource: `WorkerCore`."""
        return self._ask(lambda core, _: core.has_logged(resource))

    def has_ended(self, resource: Resource) -> bool:
        """Return whether the log wants a resource no more, as of now: `WorkerCore.has_ended`."""
        return self._ask(lambda core, _: core.has_ended(resource))

    def _ask(self, ask: Callable[[WorkerCore, int], bool], *, is_of_present: bool = False) -> bool:
        question = RightsQuestion(ask, is_of_present)
        self._post(question)
        try:
            return question.answer.result(_WAIT_S)
        except TimeoutError:
            return False
