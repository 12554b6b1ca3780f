"""Translates requests of group APIs into calls of groups, and their replies into responses.

A request for several groups becomes one call for each, whose replies are merged into one response.
"""
# pyright: basic

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from .....actors.messages.groups import HostCall
from ..frames import Request, response_class
from ..served import (
    CONNECT_ASK,
    CONNECT_DESCRIBE,
    CONNECT_HEARTBEAT,
    CONNECT_INSTALL,
    CONNECT_PREPARE,
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)
from . import admin, asks, connect, connect_describe, consumers, members, offsets


class _Translation(NamedTuple):
    """The translation of one API."""

    ask: Callable[[Request, str], Sequence[HostCall]]
    """Returns the calls of a request; the text is the client's host."""
    answer: Callable[[Request, Any, Sequence[Any]], Any]
    """Builds a response of the given class from the replies in the order of the calls."""


_TRANSLATIONS: Final[Mapping[int, _Translation]] = {
    JOIN_GROUP: _Translation(members.ask_to_join, members.answer_member),
    SYNC_GROUP: _Translation(members.ask_to_sync, members.answer_member),
    HEARTBEAT: _Translation(members.ask_heartbeat, members.answer_member),
    LEAVE_GROUP: _Translation(members.ask_to_leave, members.answer_member),
    LIST_GROUPS: _Translation(admin.ask_for_list, admin.answer_list),
    DESCRIBE_GROUPS: _Translation(admin.ask_to_describe, admin.answer_describe),
    DELETE_GROUPS: _Translation(admin.ask_to_delete, admin.answer_delete),
    OFFSET_COMMIT: _Translation(offsets.ask_to_commit, offsets.answer_commit),
    TXN_OFFSET_COMMIT: _Translation(offsets.ask_to_commit_in_transaction, offsets.answer_commit),
    OFFSET_FETCH: _Translation(offsets.ask_to_fetch, offsets.answer_fetch),
    OFFSET_DELETE: _Translation(offsets.ask_to_forget, offsets.answer_forget),
    CONSUMER_GROUP_HEARTBEAT: _Translation(
        consumers.ask_consumer_heartbeat, consumers.answer_consumer
    ),
    CONSUMER_GROUP_DESCRIBE: _Translation(consumers.ask_to_describe, consumers.answer_describe),
    CONNECT_HEARTBEAT: _Translation(connect.ask_connect_heartbeat, connect.answer_connect),
    CONNECT_PREPARE: _Translation(connect.ask_to_prepare, connect.answer_connect),
    CONNECT_INSTALL: _Translation(connect.ask_to_install, connect.answer_connect),
    CONNECT_ASK: _Translation(asks.ask_group, asks.answer_ask),
    CONNECT_DESCRIBE: _Translation(
        connect_describe.ask_to_describe, connect_describe.answer_describe
    ),
}


def calls_of(request: Request, client_host: str) -> Sequence[HostCall]:
    """Return the calls of groups for a request."""
    return _TRANSLATIONS[request.head.api].ask(request, client_host)


def answer_of(request: Request, replies: Sequence[Any]) -> Any:
    """Build the response to a request from the replies in the order of its calls."""
    kind = response_class(*request.head[:2])
    return _TRANSLATIONS[request.head.api].answer(request, kind, replies)
