"""Errors between a client and a node; each message is a sentence for people."""

from http import HTTPStatus


class ClientError(Exception):
    """The base of all errors of a client."""


class Refused(ClientError):  # noqa: N818  # says what happened
    """The node refused a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)  # so that it can be pickled
        self.status = status
        """The HTTP status."""
        self.message = message
        """The node's sentence."""

    def __str__(self) -> str:
        """Return the node's sentence and the status."""
        return f"{self.message} (HTTP {self.status})"


class NodeUnreachableError(ClientError):
    """No node answered; the message says whether something may have been done."""


class UnexpectedAnswerError(ClientError):
    """The answer is none of a node of this version of fairlead."""


class WaitTimeoutError(ClientError, TimeoutError):
    """A state did not come in time; the message says what was there instead."""


def is_away(error: ClientError) -> bool:
    """Return whether the same request may be answered later, once the node is there again."""
    is_starting = isinstance(error, Refused) and error.status == HTTPStatus.SERVICE_UNAVAILABLE
    return is_starting or isinstance(error, NodeUnreachableError)
