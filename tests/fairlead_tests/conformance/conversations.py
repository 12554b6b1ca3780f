"""Reads recorded conversations: frames, and the client payloads in them."""
# pyright: basic

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fairlead_tests.conformance.cases import Case, read_document

SECTION = "conversation"
CARRIERS = ("JoinGroup", "SyncGroup")
"""The APIs with payloads that are opaque to the broker."""


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


def read_carried(conversation: Case) -> Iterator[Carried]:
    """Yield all non-empty payloads of classic members."""
    groups: dict[Any, str] = {}
    chosen: dict[str, str] = {}
    for each in read_frames(conversation):
        if each["api"] not in CARRIERS:
            continue
        call, fields = (each["connection"], each["correlation"]), each["fields"]
        if each["direction"] == "request":
            groups[call] = fields["GroupId"]
        elif fields.get("ProtocolName"):
            chosen[groups[call]] = fields["ProtocolName"]
        yield from _carried_by(fields, chosen.get(groups[call], ""))


def _carried_by(fields: dict[str, Any], chosen: str) -> Iterator[Carried]:
    told = [(each["Name"], True, each["Metadata"]) for each in fields.get("Protocols", ())]
    told += [(chosen, True, each["Metadata"]) for each in fields.get("Members", ())]
    told += [(chosen, False, each["Assignment"]) for each in fields.get("Assignments", ())]
    told += [(chosen, False, fields["Assignment"])] if "Assignment" in fields else []
    for protocol, is_metadata, data in told:
        if data != "hex:":
            yield Carried(protocol, is_metadata, bytes.fromhex(data.removeprefix("hex:")))
