"""The bodies of asks: maps of msgpack with the fields of one message each (PROTOCOL §20).

The table of kinds says which messages there are. Group and member are named once, in the call.
Named tuples (resources, tokens, ids of commits) are arrays, an enum is its text, unknown fields are
skipped. Nothing in a body says what is to be made of it, and what is made is checked before any
group is asked.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from itertools import chain
from typing import Any, Final, get_type_hints

from msgspec import MsgspecError, Struct, defstruct
from msgspec.msgpack import Decoder, Encoder

from .....actors.messages.asks import (
    AskReply,
    AskRequest,
    MemberAsk,
    ReadOffsets,
    ReadWork,
    UnreadableAsk,
)
from .....actors.messages.errors import Error
from .....actors.messages.members import CommitOffsets, PutTaskConfigs, ReportStatus
from .....events.commits import Commit, Document, Manifest

MOST_ITEMS: Final = 10_000
"""The maximum number of resources, statuses, partitions or commits of one ask."""
LONGEST_REASON: Final = 16_384
"""The maximum length of a status's reason, in characters."""
_OUTSIDE: Final = frozenset({"group_id", "member_id", "number", "error", "message"})
"""The fields that are not in a body: the call or its answer has them, or their order says it."""


def _body_of(kind: type) -> type[Struct]:
    """Return the type of a message's body."""
    hints = get_type_hints(kind)
    named = [each for each in fields(kind) if each.name not in _OUTSIDE]
    return defstruct(
        kind.__name__,
        [
            (each.name, hints[each.name])
            if each.default is MISSING
            else (each.name, hints[each.name], each.default)
            for each in named
        ],
    )


_KINDS: Final[Mapping[str, tuple[Any, Decoder[Any]]]] = {
    kind.__name__: (kind, Decoder(_body_of(kind)))
    for kind in (ReadWork, ReadOffsets, ReportStatus, PutTaskConfigs, CommitOffsets)
}
"""The message of each kind, and what decodes its body."""
_encode: Final = Encoder().encode


def read_ask(group_id: str, member_id: str, epoch: int, kind: str, body: bytes) -> MemberAsk:
    """Decode an ask."""
    return MemberAsk(group_id, member_id, epoch, _read_body(group_id, member_id, kind, body))


def _read_body(group_id: str, member_id: str, kind: str, body: bytes) -> AskRequest:
    if kind not in _KINDS:
        message = f"{kind[:80]!a} is no kind of ask; there are {', '.join(_KINDS)}"
        return UnreadableAsk(Error.UNSUPPORTED_VERSION, message)
    made_by, decoder = _KINDS[kind]
    try:
        found = decoder.decode(body)
    except (MsgspecError, RecursionError, ValueError) as error:
        message = f"the body of {kind} cannot be read: {str(error)[:400]}"
        return UnreadableAsk(Error.INVALID_REQUEST, message)
    values = {name: getattr(found, name) for name in found.__struct_fields__}
    request: AskRequest = made_by(group_id=group_id, member_id=member_id, **values)
    for flaw in _flaws_in(request):
        return UnreadableAsk(Error.INVALID_REQUEST, f"{kind}: {flaw}; nothing was changed")
    return request


def write_reply(reply: AskReply) -> tuple[str, bytes]:
    """Encode the reply to an ask; return its kind and its body, without error and message."""
    kind: Any = type(reply)
    named = [each.name for each in fields(kind) if each.name not in _OUTSIDE]
    return kind.__name__, _encode({name: getattr(reply, name) for name in named})


def _flaws_in(request: AskRequest) -> Iterator[str]:
    """Yield what is wrong with an ask, whichever group it is for."""
    for name in ("resources", "partitions", "updates", "configs", "commits", "published"):
        if len(getattr(request, name, ())) > MOST_ITEMS:
            yield f"more than {MOST_ITEMS} {name}"
    if isinstance(request, ReportStatus):
        if max((len(each.reason) for each in request.updates), default=0) > LONGEST_REASON:
            yield f"a reason has more than {LONGEST_REASON} characters"
    elif isinstance(request, ReadOffsets):
        if not all(map(_is_finite, request.partitions)):
            yield "a number in a partition is not finite"
    elif isinstance(request, CommitOffsets):
        yield from chain(*map(_flaws_in_commit, request.commits))


def _flaws_in_commit(commit: Commit) -> Iterator[str]:
    documents = [
        part for each in commit.advances for part in (each.partition, each.start, each.end)
    ]
    if not all(_is_finite(each) for each in documents if each is not None):
        yield "a number in a partition or an offset is not finite"
    letters = commit.manifest.dead_letters
    if letters is not None and letters.dead_letters is not None:
        yield "dead letters have no dead letters"
        return
    counts = [commit.rows_in, commit.skipped, *_counts_in(commit.manifest)]
    counts += _counts_in(letters) if letters is not None else ()
    if min(counts) < 0:
        yield "a number of rows, bytes or files is below 0"


def _counts_in(manifest: Manifest) -> tuple[int, int, int]:
    return manifest.rows, manifest.bytes, manifest.files


def _is_finite(document: Document) -> bool:
    numbers = (each for each in document.values() if isinstance(each, float))
    return all(map(math.isfinite, numbers))
