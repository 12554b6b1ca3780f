"""The two sides of an import, each asked through Connect's REST interface.

Both answer the same calls; only the node is told to create and to delete.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Final

import msgspec

from ...replies.connectors import ConfigDiff, InitialState
from ...replies.node import ErrorMessage, Message
from ...replies.progress import ConnectorOffset, ConnectorOffsets
from ..output.printing import Failed
from ..requests.client import Client, RefusedByCluster
from .connect_rest import ConnectRest, ConnectStatus, RefusedByConnect
from .steps import FAILED, PAUSED, SideStatus

CONNECTORS: Final = "connectors"


class ImportSide(ABC):
    """One side: what it says of connectors, and what it is told to do with them."""

    settle_seconds = 0.0
    """How long a connector that has stopped is watched until its offsets are its last ones."""

    @abstractmethod
    def status(self, name: str) -> SideStatus:
        """Return the state of a connector that may be missing; raises `Failed`."""

    @abstractmethod
    def offsets(self, name: str) -> Sequence[ConnectorOffset]:
        """Return the offsets of a connector; raises `Failed`."""

    @abstractmethod
    def order(self, name: str, verb: str) -> None:
        """Stop, resume or pause a connector; raises `Failed`."""

    @abstractmethod
    def set_offsets(self, name: str, offsets: Sequence[ConnectorOffset]) -> None:
        """Set offsets of a stopped connector; raises `Failed`."""

    def start(self, name: str, was: str) -> None:
        """Start a connector as it was: running, or paused; raises `Failed`."""
        self.order(name, "pause" if was == PAUSED else "resume")

    def take_offsets(self, name: str, wanted: Sequence[ConnectorOffset]) -> int:
        """Give a stopped connector the offsets of the other side; return how many that changed.

        None changes if both sides have the same Kafka and the same topic of offsets. Raises
        `Failed`.
        """
        changes = offset_changes(self.offsets(name), wanted)
        if changes:
            self.set_offsets(name, changes)
            if left := offset_changes(self.offsets(name), wanted):
                told = f"{len(left)} offsets of it were set, and are not there"
                raise Failed(f"{told}: does somebody else change them?")
        return len(changes)


class ConnectSide(ImportSide):
    """The connectors of Kafka Connect."""

    settle_seconds = 1.0
    """A worker may still end tasks while the status of their connector has none any more."""

    def __init__(self, rest: ConnectRest) -> None:
        self.rest = rest

    def status(self, name: str) -> SideStatus:
        """Return the state of a connector that may be missing; raises `Failed`."""
        try:
            found = self.rest.get(ConnectStatus, CONNECTORS, name, "status")
        except RefusedByConnect as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return SideStatus()
            raise
        return status_of(found)

    def offsets(self, name: str) -> Sequence[ConnectorOffset]:
        """Return the offsets of a connector; raises `Failed`."""
        return self.rest.get(ConnectorOffsets, CONNECTORS, name, "offsets").offsets

    def order(self, name: str, verb: str) -> None:
        """Stop, resume or pause a connector; raises `Failed`."""
        self.rest.ask("PUT", CONNECTORS, name, verb)

    def set_offsets(self, name: str, offsets: Sequence[ConnectorOffset]) -> None:
        """Set offsets of a stopped connector; raises `Failed`."""
        body = {"offsets": msgspec.to_builtins(offsets)}
        self.rest.ask("PATCH", CONNECTORS, name, "offsets", body=body)


class NodeSide(ImportSide):
    """The connectors of the node."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def status(self, name: str) -> SideStatus:
        """Return the state of a connector that may be missing; raises `Failed`."""
        if name not in self._client.get(list[str], CONNECTORS):
            return SideStatus()
        return status_of(self._client.get(ConnectStatus, CONNECTORS, name, "status"))

    def offsets(self, name: str) -> Sequence[ConnectorOffset]:
        """Return the offsets of a connector; raises `Failed`."""
        return self._client.get(ConnectorOffsets, CONNECTORS, name, "offsets").offsets

    def order(self, name: str, verb: str) -> None:
        """Stop, resume or pause a connector; raises `Failed`."""
        self._client.order("PUT", Message, CONNECTORS, name, verb)

    def set_offsets(self, name: str, offsets: Sequence[ConnectorOffset]) -> None:
        """Set offsets of a stopped connector; raises `Failed`."""
        body = {"offsets": msgspec.to_builtins(offsets)}
        self._client.patch(Message, CONNECTORS, name, "offsets", body=body)

    def compare(self, name: str, config: Mapping[str, str]) -> ConfigDiff:
        """Validate a config as a creation does, and compare it with what is there.

        Raises `RefusedByCluster` with what is wrong.
        """
        connectors = [{"name": name, "config": config}]
        body = {"connectors": connectors, "dry_run": True}
        (found,) = self._client.post(list[ConfigDiff], "apply", body=body)
        return found

    def create(self, name: str, config: Mapping[str, str]) -> None:
        """Create a connector that starts nothing; its secrets are sealed. Raises `Failed`."""
        body = {"name": name, "config": config, "initial_state": InitialState.STOPPED.value}
        self._client.post(object, CONNECTORS, body=body)

    def delete(self, name: str) -> None:
        """Delete a connector, if it is there; raises `Failed`."""
        try:
            self._client.delete(Message, CONNECTORS, name)
        except RefusedByCluster:
            if not self.status(name).is_absent:
                raise


def status_of(found: ConnectStatus) -> SideStatus:
    """Return what counts of a status."""
    failed = [each for each in (found.connector, *found.tasks) if each.state == FAILED]
    trace = next((each.trace for each in failed), "").strip()
    states = tuple(each.state for each in found.tasks)
    return SideStatus(found.connector.state, states, trace.partition("\n")[0])


def is_node_away(error: Exception) -> bool:
    """Return whether the node has refused something only because it starts or ends."""
    if not isinstance(error, RefusedByCluster):
        return False
    try:
        code = msgspec.convert(error.body, ErrorMessage).error_code
    except msgspec.ValidationError:
        return False
    return code == HTTPStatus.SERVICE_UNAVAILABLE


def offset_changes(
    present: Iterable[ConnectorOffset], wanted: Iterable[ConnectorOffset]
) -> list[ConnectorOffset]:
    """Return the offsets that differ from those wanted, with null for those to remove."""
    before = {_key(each): each for each in present if each.offset is not None}
    after = {_key(each): each for each in wanted if each.offset is not None}
    removed = [ConnectorOffset(before[key].partition, None) for key in before.keys() - after.keys()]
    changed = [
        each
        for key, each in after.items()
        if key not in before or _text(before[key].offset) != _text(each.offset)
    ]
    return [*changed, *removed]


def _key(offset: ConnectorOffset) -> str:
    return _text(offset.partition)


def _text(document: object) -> str:
    return json.dumps(document, sort_keys=True)
