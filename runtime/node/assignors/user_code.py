"""Validates the results of third-party code into plain values, and its errors into text.

A worker gets validated copies of results: it could not unpickle an object of a class of the
assignor's package, and must not run code of that package. An exception of that code becomes a line
of text, and ends no process of fairlead.
"""

import logging
import traceback
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeGuard, cast

from ....actors.assignors.sdk import ConnectAssignor
from ....actors.group.state.validate import LONGEST_INT, flaw_in_assignor, flaw_in_text
from ....actors.messages.assignors import Metadata
from ....actors.messages.computing import Assignment
from ....events.model import AssignorData, ClientAssignor, Resource, Resources

USERS_ERRORS = BaseException
"""All exceptions that third-party code may raise, `SystemExit` included.

None of them is meant for the actor: its signals do not raise exceptions.
"""

LONGEST_TEXT = 500
"""The maximum length of an error line, in characters."""
LONGEST_TRACE = 8_000
"""How many characters of a traceback are logged: half from its start, half from its end."""
LONGEST_NAME = 100
"""How many characters of a text an error quotes."""
LONGEST_REASON = 32_000
"""The maximum length of the reason for one unplaceable resource, in characters."""
FIELDS = len(Resource._fields)


class WrongResultError(Exception):
    """An assignor returned an invalid result; the message has what it was and what is expected."""


def plain_assignment(assignment: object) -> Assignment:
    """Copy an assignment into plain values; raises `WrongResultError`."""
    if not isinstance(assignment, Assignment):
        raise WrongResultError(f"assign returned {_kind(assignment)}: return an Assignment")
    return Assignment(
        {
            _text(member, "a key of members"): _resources(share, member)
            for member, share in _items(assignment.members, "members")
        },
        {
            _resource(each, "parked"): _number(deadline, f"parked: the deadline of {each}")
            for each, deadline in _items(assignment.parked, "parked")
        },
        {
            _resource(each, "unplaceable"): _reason(reason, f"unplaceable: the reason of {each}")
            for each, reason in _items(assignment.unplaceable, "unplaceable")
        },
        _number(assignment.version, "version"),
        _bytes(assignment.metadata, "metadata"),
        _number(assignment.again_at_ms, "again_at_ms"),
        {
            _text(member, "a key of data"): _data(said, member)
            for member, said in _items(assignment.data, "data")
        },
    )


def client_assignor(assignor: ConnectAssignor, name: str, metadata: object) -> ClientAssignor:
    """Return an assignor's part of a heartbeat, from its metadata; raises `WrongResultError`."""
    if not isinstance(metadata, Metadata):
        raise WrongResultError(f"metadata returned {_kind(metadata)}: return a Metadata")
    plain = ClientAssignor(
        name,
        _number(assignor.minimum_version, "minimum_version"),
        _number(assignor.maximum_version, "maximum_version"),
        _number(metadata.version, "version"),
        _number(metadata.reason, "reason"),
        _bytes(metadata.content, "content"),
    )
    if flaw := flaw_in_assignor(plain):
        raise WrongResultError(flaw)
    return plain


def _data(data: object, member: object) -> AssignorData:
    if not isinstance(data, AssignorData):
        raise WrongResultError(f"data: that for {member} is {_kind(data)}: return AssignorData")
    what = f"data: the {{}} for {member}"
    return AssignorData(
        _number(data.version, what.format("version")),
        _bytes(data.metadata, what.format("metadata")),
    )


def _items(found: object, what: str) -> Iterator[tuple[object, object]]:
    if not isinstance(found, Mapping):
        raise WrongResultError(f"{what} is {_kind(found)}: it must be a mapping")
    yield from cast("Mapping[object, object]", found).items()


def _resources(share: object, member: object) -> Resources:
    if _is_plain(share):
        return share
    what = f"members: the share of {member}"
    if isinstance(share, str | bytes) or not isinstance(share, Iterable):
        raise WrongResultError(f"{what} is {_kind(share)}: it must be a set")
    plain: set[Resource] = set()
    for each in cast("Iterable[object]", share):
        resource = _resource(each, what)
        if resource in plain:
            raise WrongResultError(f"{what} has {resource} twice")
        plain.add(resource)
    return frozenset(plain)


def _is_plain(share: object) -> TypeGuard[Resources]:
    """Return whether a share needs no copy: most do not, and there may be thousands."""
    return type(share) is frozenset and all(
        type(each) is Resource
        and len(each) == FIELDS
        and type(each[0]) is str
        and type(each[1]) is int
        and each[1].bit_length() <= LONGEST_INT
        for each in cast("Iterable[object]", share)
    )


def _resource(found: object, what: str) -> Resource:
    if not isinstance(found, Resource):
        kind = _kind(found)
        named = f"{found:.{LONGEST_NAME}}, " if isinstance(found, str) else ""
        raise WrongResultError(f"{what} has {named}{kind}: it must be a Resource")
    return Resource(_text(found.connector, what), _number(found.task, what))


def _text(found: object, what: str) -> str:
    if not isinstance(found, str):
        raise WrongResultError(f"{what} is {_kind(found)}: it must be a text")
    plain = found if type(found) is str else str.__str__(found)
    if flaw := flaw_in_text(plain, what):
        raise WrongResultError(flaw)
    return plain


def _reason(found: object, what: str) -> str:
    plain = _text(found, what)
    if len(plain) > LONGEST_REASON:  # all reasons must fit in one record and one message
        raise WrongResultError(f"{what} is longer than {LONGEST_REASON} characters: shorten it")
    return plain


def _number(found: object, what: str) -> int:
    if not isinstance(found, int) or isinstance(found, bool):
        raise WrongResultError(f"{what} is {_kind(found)}: it must be a whole number")
    plain = found if type(found) is int else int.__int__(found)
    if plain.bit_length() > LONGEST_INT:
        raise WrongResultError(f"{what} is beyond 64 bit")
    return plain


def _bytes(found: object, what: str) -> bytes:
    if not isinstance(found, bytes | bytearray | memoryview):
        raise WrongResultError(f"{what} is {_kind(found)}: it must be bytes")
    return bytes(memoryview(cast("bytes", found)))


def _kind(found: object) -> str:
    return "None" if found is None else f"of type {type(found).__qualname__}"


def describe(error: BaseException) -> str:
    """Return an error as a line: its type, its message, and where it was raised."""
    try:
        return _describe(error)
    except USERS_ERRORS:
        return "an error that cannot be described"


def one_line(text: str) -> str:
    """Return a text as one short line that can be encoded as UTF-8."""
    return " ".join(text[:LONGEST_TEXT].encode(errors="backslashreplace").decode().split())


def log_trace(logger: logging.Logger, what: str, error: BaseException) -> None:
    """Log an error with its traceback, or as one line if Python cannot format that.

    The error is not passed to the logger, which would call third-party code without protection.
    """
    try:
        trace = "".join(traceback.format_exception(error))
    except USERS_ERRORS:
        trace = describe(error)
    half = LONGEST_TRACE // 2
    if len(trace) > LONGEST_TRACE:
        trace = f"{trace[:half]}\n...\n{trace[-half:]}"
    logger.warning("%s\n%s", what, trace.rstrip())


def _describe(error: BaseException) -> str:
    try:
        message = str.__str__(str(error))  # `__str__` may return an instance of a subclass of str
    except USERS_ERRORS:
        message = "(no message)"
    if not message and issubclass(type(error), MemoryError):
        message = "it used up what assignor.memory.max allows"
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    text = one_line(text)
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return text
    return f"{text} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
