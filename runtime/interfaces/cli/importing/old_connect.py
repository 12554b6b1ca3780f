"""A Kafka Connect before 3.5, which can neither stop a connector nor show its offsets.

A connector is deleted there instead, once its config is kept in a file. Kafka keeps its offsets: so
it goes on here if the node has the same Kafka and the same topic of offsets, and goes on there when
it is created again.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

import msgspec

from ...replies.progress import ConnectorOffset
from ..output.printing import Failed
from .connect_rest import (
    ConnectEntry,
    ConnectInfo,
    ConnectRest,
    ConnectState,
    ConnectStatus,
    RefusedByConnect,
)
from .sides import CONNECTORS, ConnectSide, NodeSide
from .steps import PAUSED, STOPPED, SideStatus

UNASSIGNED: Final = "UNASSIGNED"
_JSON: Final = ".json"
_DELETED: Final = ConnectStatus(ConnectState(STOPPED))


class KeptConfigs:
    """The configs of connectors that were deleted, with their secrets, for their owner alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def entries(self) -> dict[str, ConnectEntry]:
        """Return the connectors that were deleted, as Connect would list them; raises `OSError`."""
        names = (unquote(each.stem) for each in self.folder.glob(f"*{_JSON}"))
        return {name: ConnectEntry(ConnectInfo(self.read(name)), _DELETED) for name in names}

    def has(self, name: str) -> bool:
        """Return whether the config of a connector is kept."""
        return self.path(name).exists()

    def read(self, name: str) -> Mapping[str, str | None]:
        """Return the config of a connector; raises `OSError`."""
        return msgspec.json.decode(self.path(name).read_bytes(), type=dict[str, str | None])

    def write(self, name: str, config: Mapping[str, str | None]) -> None:
        """Keep the config of a connector; it is on disk then. Raises `OSError`."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self.path(name).with_suffix(".new")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(config))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path(name))

    def remove(self, name: str) -> None:
        """Forget the config of a connector, if it is kept."""
        self.path(name).unlink(missing_ok=True)

    def path(self, name: str) -> Path:
        """Return the path of the file with a connector's config."""
        return self.folder / f"{quote(name, safe='')}{_JSON}"


class OldConnectSide(ConnectSide):
    """The connectors of such a Connect; one that was deleted is as one that has stopped."""

    settle_seconds = 10.0
    """Tasks of a deleted connector end with the next rebalance, and that is not to be seen."""

    def __init__(self, rest: ConnectRest, here: NodeSide, kept: KeptConfigs) -> None:
        super().__init__(rest)
        self._here, self._kept = here, kept

    def status(self, name: str) -> SideStatus:
        """Return the state of a connector that may be missing; raises `Failed`.

        Connect shows none of a new connector until a worker has started it.
        """
        found = super().status(name)
        if found.is_absent and _has(self.rest, name):
            return SideStatus(UNASSIGNED)
        return SideStatus(STOPPED) if found.is_absent and self._kept.has(name) else found

    def offsets(self, name: str) -> Sequence[ConnectorOffset]:
        """Return the offsets as the node shows them, since both have the same; raises `Failed`."""
        return () if self._here.status(name).is_absent else self._here.offsets(name)

    def order(self, name: str, verb: str) -> None:
        """Delete a connector that is to stop, or resume or pause it; raises `Failed`."""
        if verb != "stop":
            super().order(name, verb)
            return
        config = self.rest.get(dict[str, str | None], CONNECTORS, name, "config")
        self._kept.write(name, config)
        self.rest.ask("DELETE", CONNECTORS, name)

    def set_offsets(self, name: str, offsets: Sequence[ConnectorOffset]) -> None:
        """Raise `Failed`: that cannot be done."""
        raise Failed(f"{len(offsets)} offsets of {name} differ, and this Connect cannot set any")

    def start(self, name: str, was: str) -> None:
        """Create a connector again, running or paused; raises `Failed`."""
        if not _has(self.rest, name):
            body = {"name": name, "config": self._kept.read(name)}
            self.rest.ask("POST", CONNECTORS, body=body)
        if was == PAUSED:
            super().order(name, "pause")
        self._kept.remove(name)


def cannot_stop(rest: ConnectRest, names: Iterable[str]) -> bool:
    """Return whether a Connect with these connectors shows no offsets, and so stops none.

    One without any connector may be such. Raises `Failed`, `Unreachable`.
    """
    for name in names:
        try:
            rest.ask("GET", CONNECTORS, name, "offsets")
        except RefusedByConnect as error:
            if error.code not in {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}:
                return False
            if _has(rest, name):
                return True
        else:
            return False
    return True


def _has(rest: ConnectRest, name: str) -> bool:
    try:
        rest.ask("GET", CONNECTORS, name)
    except RefusedByConnect as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return False
        raise
    return True
