"""Reads recorded conversations: frames, and the client payloads in them."""
# pyright: basic

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fairlead.actors.classic.embedded import CONSUMER
from fairlead.events.model import CONNECT
from fairlead_tests.conformance.cases import Case, read_document

SECTION = "conversation"
CARRIERS = ("JoinGroup", "SyncGroup")
"""The APIs with payloads that are opaque to the broker."""

LATE_MS = 5
"""By how much a timer of a recorded broker may have been late: it was not over yet there."""


class Compared(NamedTuple):
    """An answer of the broker, and ours to the same request."""

    asked: dict[str, Any]
    """The recorded request."""
    told: dict[str, Any]
    """The recorded answer."""
    theirs: dict[str, Any]
    """Its fields, with our member ids."""
    ours: dict[str, Any] | None
    """Our fields; None: not answered, or the connection was closed."""


class Carried(NamedTuple):
    """A payload of one member for another, and its origin."""

    protocol: str
    """The offered or elected protocol name."""
    is_metadata: bool
    data: bytes


def wire_dir(config: pytest.Config) -> Path:
    """Return the folder of the conversations."""
    return config.rootpath / str(config.getoption("--wire-dir"))


def read_conversations(folder: Path) -> Iterator[Case]:
    """Yield each conversation of a folder."""
    for path in sorted(folder.glob("*.json")):
        yield Case(SECTION, path.stem, read_document(path))


def read_frames(conversation: Case) -> Iterator[dict[str, Any]]:
    """Yield the requests and responses in order, without the notes between them."""
    return (each for each in conversation.told["exchanges"] if "hex" in each)


def call_of(frame: dict[str, Any]) -> tuple[Any, Any]:
    """Return what a request and its response have in common."""
    return frame["connection"], frame["correlation"]


def read_exchanges(conversation: Case) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each response with its request, in the order of the responses."""
    asked: dict[Any, dict[str, Any]] = {}
    for each in read_frames(conversation):
        if each["direction"] == "request":
            asked[call_of(each)] = each
        else:
            yield asked[call_of(each)], each


def groups_that_speak(conversation: Case, apis: Collection[str]) -> frozenset[str]:
    """Return the groups in which one of these calls succeeds."""
    return frozenset(
        asked["fields"]["GroupId"]
        for asked, told in read_exchanges(conversation)
        if asked["api"] in apis and told["fields"]["ErrorCode"] == 0
    )


def read_carried(conversation: Case, *, are_accepted: bool = True) -> Iterator[Carried]:
    """Yield all non-empty payloads of consumers and workers in calls that succeeded, or in others.

    A broker passes on those of the first kind alone.
    """
    types: dict[str, str] = {}
    chosen: dict[str, str] = {}
    answers = {call_of(told): told["fields"] for _, told in read_exchanges(conversation)}
    for each in read_frames(conversation):
        if each["api"] not in CARRIERS or each["direction"] != "request":
            continue
        fields, answer = each["fields"], answers.get(call_of(each), {})
        group_id, is_accepted = fields["GroupId"], answer.get("ErrorCode") == 0
        kind = fields.get("ProtocolType") or types.get(group_id)
        if is_accepted and each["api"] == "JoinGroup":
            types[group_id], chosen[group_id] = fields["ProtocolType"], answer["ProtocolName"]
        if is_accepted is are_accepted and kind in {CONSUMER, CONNECT}:
            yield from _carried_by(fields, chosen.get(group_id, ""))
            yield from _carried_by(answer, chosen.get(group_id, ""))


def _carried_by(fields: dict[str, Any], chosen: str) -> Iterator[Carried]:
    told = [(each["Name"], True, each["Metadata"]) for each in fields.get("Protocols", ())]
    told += [(chosen, True, each["Metadata"]) for each in fields.get("Members", ())]
    told += [(chosen, False, each["Assignment"]) for each in fields.get("Assignments", ())]
    told += [(chosen, False, fields["Assignment"])] if "Assignment" in fields else []
    for protocol, is_metadata, data in told:
        if data != "hex:":
            yield Carried(protocol, is_metadata, bytes.fromhex(data.removeprefix("hex:")))
