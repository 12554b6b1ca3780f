"""A client of a node, for Python programs and notebooks.

    from fairlead.client import Client

    with Client("http://127.0.0.1:8083") as client:
        client.create("flights", config)
        client.wait("flights", "running")
        client.history().to_pandas()

`AsyncClient` has the same methods to await. The answers are values with types, which the tests hold
against `/openapi.json`; a refusal is raised as `Refused`, with the node's sentence.
"""

from .runtime.interfaces.client.operations import Operations
from .runtime.interfaces.client.sending.errors import (
    ClientError,
    NodeUnreachableError,
    Refused,
    UnexpectedAnswerError,
    WaitTimeoutError,
)
from .runtime.interfaces.client.sending.sessions import AsyncSession, SyncSession
from .runtime.interfaces.replies.live.events import EventInfo
from .runtime.interfaces.replies.live.messages import PageMessage, StreamGap, StreamOpened
from .runtime.interfaces.replies.live.state import PageChange, PageState, PageStep
from .runtime.interfaces.replies.progress import ConnectorOffset

__all__ = [
    "AsyncClient",
    "Client",
    "ClientError",
    "ConnectorOffset",
    "EventInfo",
    "NodeUnreachableError",
    "PageChange",
    "PageMessage",
    "PageState",
    "PageStep",
    "Refused",
    "StreamGap",
    "StreamOpened",
    "UnexpectedAnswerError",
    "WaitTimeoutError",
]


class Client(SyncSession, Operations):
    """A client whose methods wait for the answer of the node."""


class AsyncClient(AsyncSession, Operations):
    """A client whose methods are awaited."""
