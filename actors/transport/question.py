"""Questions to actors whose replies are polled, so that nobody waits for an actor that hangs.

To open an endpoint, with a listening socket and an authenticated connection, costs both sides
several times what a message costs. So an endpoint is used again: not before its question was
answered, since a late reply must not be taken for that to the next question, and not after one of
its connections has ended, since a message that is sent then is only given up after its time limit.
"""
# pyright: basic

from collections.abc import Callable
from datetime import timedelta

from .actor import Address
from .processes import ExternalEndpoint, ExternalSystem


class Question:
    """A message in flight to an actor, whose reply is polled with `answer`."""

    def __init__(
        self,
        endpoint: ExternalEndpoint,
        keep: Callable[[ExternalEndpoint], None],
        actor: Address,
        message: object,
    ) -> None:
        """Send a message; `keep` gets the endpoint at the end, if nothing can come to it later."""
        self._endpoint = endpoint
        self._keep = keep
        self._is_answered = False
        self._sent = endpoint.begin(actor, message)

    def answer(self, seconds: float) -> object | None:
        """Wait for the reply, for some seconds at most; None if there is none yet."""
        answer: object | None = self._endpoint.listen(timedelta(seconds=seconds))
        self._is_answered = answer is not None
        return answer

    @property
    def is_lost(self) -> bool:
        """Whether the message was given up: there is no recipient, or no acknowledgement."""
        return bool(self._sent.failed)

    def close(self) -> None:
        """Discard the reply, if it has not come yet."""
        if self._is_answered:
            self._keep(self._endpoint)
        else:
            self._endpoint.exit_context()


class Questions:
    """Sends questions to actors of one system; one thread at a time may use it."""

    def __init__(self, base: ExternalSystem) -> None:
        self._base = base
        self._spare: list[ExternalEndpoint] = []
        """The endpoints of answered questions."""

    def ask(self, actor: Address, message: object) -> Question:
        """Send a message, and return a `Question` for its reply."""
        return Question(self._endpoint(), self._spare.append, actor, message)

    def close(self) -> None:
        """Close the sockets of answered questions."""
        while self._spare:
            self._spare.pop().exit_context()

    def _endpoint(self) -> ExternalEndpoint:
        while self._spare:
            spare = self._spare.pop()
            if spare.transport.is_silent:
                return spare
            spare.exit_context()
        return self._base.external_clone()
