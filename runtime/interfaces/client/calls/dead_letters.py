"""Requests about dead letters: page by page, one after the other, and as a file."""

from collections.abc import AsyncGenerator
from typing import Final

from msgspec.json import Decoder

from ...replies.connectors import DeadLetterInfo, DeadLetterList, DeadLetterRetry
from ..sending.exchange import NodeExchange
from ..sending.requests import STREAM, NodeRequest, get

LETTERS: Final = Decoder(DeadLetterList)
RETRY: Final = Decoder(DeadLetterRetry)
MOST: Final = 1_000
"""The maximum number of dead letters in an answer."""


def list_dead_letters(name: str, limit: int = 50, cursor: str = "") -> NodeRequest[DeadLetterList]:
    """List dead letters of a connector, the newest first; `cursor` is `next` of the page before.

    A page may have fewer than `limit`, and even none, although there are more.
    """
    path = ("connectors", name, "dead-letters")
    return get(LETTERS, *path, limit=limit, cursor=cursor or None)


def retry_dead_letters(name: str, *, dry_run: bool = False) -> NodeRequest[DeadLetterRetry]:
    """Create or change the connector that retries dead letters; `dry_run` only returns its config.

    It reads each letter once, and has the transforms and the sink that the connector has now.
    """
    path = ("connectors", name, "dead-letters", "retry")
    return NodeRequest("POST", path, RETRY, {"dry_run": dry_run})


async def read_dead_letters(node: NodeExchange, name: str) -> AsyncGenerator[DeadLetterInfo]:
    """Return an iterator of all dead letters of a connector, the newest first.

    It asks for the next ones when they are needed; raises `ClientError`.
    """
    return _all_behind(node, name, await node.send(list_dead_letters(name, MOST)))


async def _all_behind(
    node: NodeExchange, name: str, page: DeadLetterList
) -> AsyncGenerator[DeadLetterInfo]:
    while True:
        for each in page.letters:
            yield each
        if page.next is None:
            return
        page = await node.send(list_dead_letters(name, MOST, page.next))


async def export_dead_letters(node: NodeExchange, name: str) -> AsyncGenerator[bytes]:
    """Return an iterator of the parts of a file of JSON lines with all dead letters.

    It raises `NodeUnreachableError` if they end too early.
    """
    return node.receive(get(STREAM, "connectors", name, "dead-letters", "export"))
