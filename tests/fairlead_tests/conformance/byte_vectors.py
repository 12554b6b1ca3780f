"""Reads the golden bytes of Connect's protocol, and their values."""
# pyright: basic

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fairlead.actors.assignors.classic.loads import of_kind
from fairlead.actors.assignors.classic.protocol import EAGER, ReceivedAssignment
from fairlead.actors.classic.bytes.connect import (
    WorkerMetadata,
    decode_assignment,
    decode_metadata,
    encode_assignment,
    encode_metadata,
)
from fairlead.events.model import Resource
from fairlead_tests.conformance.cases import Case, read_document

CONNECT_BYTES = "connect_protocol_bytes*.json"
SECTION = "connect_bytes"

EMPTY: dict[str, Any] = {
    "error": 0,
    "leader": None,
    "leader_url": None,
    "config_offset": -1,
    "connectors": [],
    "tasks": [],
    "version": 1,
    "revoked_connectors": [],
    "revoked_tasks": [],
    "delay": 0,
}
"""What Connect's class reads where nothing is said; here that is None, which no reader takes for an
assignment."""


def read_byte_vectors(folder: Path) -> Iterator[Case]:
    """Yield the vectors of every file of golden bytes in the folder."""
    for path in sorted(folder.glob(CONNECT_BYTES)):
        for told in read_document(path)["vectors"]:
            yield Case(SECTION, str(told["id"]), told)


def encode(kind: str, value: Any, version: int) -> bytes:
    """Encode metadata or an assignment."""
    if kind == "metadata":
        return encode_metadata(value, version)
    return encode_assignment(value)


def decode(kind: str, data: bytes, version: int) -> Any:
    """Decode metadata or an assignment."""
    return {"metadata": decode_metadata, "assignment": decode_assignment}[kind](data, version)


def read_value(kind: str, told: dict[str, Any], version: int) -> Any:
    """Parse the input or the result of Connect's classes."""
    if kind == "assignment":
        return read_assignment(told, version)
    allocation = told.get("allocation")
    return WorkerMetadata(
        told["url"],
        told["config_offset"],
        None if allocation in (None, EMPTY) else read_assignment(allocation, version),
    )


def read_assignment(told: dict[str, Any], version: int) -> ReceivedAssignment | None:
    """Parse an assignment; None for the instance that means none."""
    if told.get("empty_singleton"):
        return None
    revoked: Any = ()
    if version > EAGER:
        lists = (told["revoked_connectors"], told["revoked_tasks"])
        revoked = None if None in lists else _read_resources(*lists)
    return ReceivedAssignment(
        _read_resources(told["connectors"], told["tasks"]),
        revoked,
        told.get("delay", 0),
        told["config_offset"],
        told["error"],
        told["leader"],
        told["leader_url"],
        version,
    )


def _read_resources(connectors: list[str], tasks: list[Any]) -> Sequence[Resource]:
    return (*map(Resource, connectors), *(Resource(*task) for task in tasks))


def spell(value: Any) -> dict[str, Any]:
    """Format metadata or an assignment as in the vectors, limited to version 1."""
    match value:
        case None:
            return EMPTY
        case WorkerMetadata():
            allocation = spell(value.allocation)
            return {
                "url": value.url,
                "config_offset": value.config_offset,
                "allocation": allocation,
            }
    return {
        "error": value.error,
        "leader": value.leader,
        "leader_url": value.leader_url,
        "config_offset": value.config_offset,
        "version": value.version,
        "delay": value.delay_ms,
        **_spell_resources(value.assigned),
        **_spell_resources(value.revoked, "revoked_"),
    }


def _spell_resources(resources: Sequence[Resource], prefix: str = "") -> dict[str, Any]:
    return {
        f"{prefix}connectors": [each.connector for each in of_kind(resources, tasks=False)],
        f"{prefix}tasks": [list(each) for each in of_kind(resources, tasks=True)],
    }


def in_any_order(told: Any) -> Any:
    """Return a value with all lists sorted."""
    if isinstance(told, dict):
        return {key: in_any_order(each) for key, each in told.items()}
    return sorted(told) if isinstance(told, list) else told
