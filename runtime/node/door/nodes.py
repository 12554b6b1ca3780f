"""The nodes of a cluster, as the owner of its group hears of them.

Each node that does not own the group sends the owner a heartbeat, and is answered which nodes there
are. Nothing of it is in a log: a node that is silent, or came and went, has changed nothing. So an
owner that has just begun knows what it was told while it followed, and hears of the rest within a
second.
"""

import logging
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from ....actors.messages.commands import NODE_LIVES_MS, NodeReport
from ....actors.transport.ports import HostPort

LOGGER = logging.getLogger(__name__)
BEAT_SECONDS: Final = 1.0
"""How often a node sends its heartbeat."""
DIAL_SECONDS: Final = 0.2
"""How long this node's own listener is waited for."""
UNSERVED_BEATS: Final = 10
"""After how many of these times an owner without a listener gives the group up: one that has died
is there again by then."""
OTHERS_LIVED_MS: Final = 60_000
"""How long ago another node was heard of at most, so that it counts as one that could own it."""
_KEPT_MS: Final = 24 * 3_600_000
"""For how long a node that is silent is told of."""
_MOST: Final = 1_000
"""The number of nodes that are kept: whoever speaks for a node may invent names."""


class OwnListener:
    """The listener of this node, as other nodes reach it.

    A node that starts has none for some seconds, in which another one may own the group.
    """

    def __init__(self, place: HostPort | None) -> None:
        """None: the node is to have none."""
        self._place = place
        """By its name until it was reached once: a name server that hangs is not asked again."""

    def is_open(self) -> bool:
        """Tell whether it takes connections: without it no other node is served."""
        if self._place is None:
            return True
        with suppress(OSError), socket.create_connection(self._place, DIAL_SECONDS) as line:
            self._place = HostPort(*line.getpeername()[:2])
            return True
        return False


class NodeReports:
    """The last report of each node, and when the owner heard it."""

    def __init__(self) -> None:
        self._heard: dict[str, tuple[NodeReport, int]] = {}
        """By the node's name; with the time, steady clock of this process."""
        self._former: dict[str, str] = {}
        """The address that a node had before its present one, by name."""
        self._shared: set[str] = set()
        """The names that several nodes have, as was logged."""
        self.cluster = ""
        """The public id of this node's cluster, by its key; empty: not known."""
        self._with_other_key: set[str] = set()
        """The nodes that have another key, as was logged."""

    def note(self, report: NodeReport, now_ms: int) -> None:
        """Record a report that was heard `heard_ms` ago, unless a later one of the node is here."""
        at_ms, former = now_ms - max(0, report.heard_ms), self._heard.get(report.name)
        if former is None and len(self._heard) >= _MOST:
            return
        if former is None or former[1] <= at_ms:
            self._heard[report.name] = report, at_ms
            if former is not None and former[0].address != report.address:
                self._warn_of_namesake(report, former[0].address)
            self._warn_of_key(report)

    def _warn_of_key(self, report: NodeReport) -> None:
        """Log once that a node has another key of the cluster than this one."""
        is_other = bool(self.cluster) and report.cluster not in {"", self.cluster}
        if is_other and report.name not in self._with_other_key:
            self._with_other_key.add(report.name)
            text = (
                "node %s has another key of the cluster than this one: neither can read the secrets"
                " in configs that the other wrote; have cluster.key.file of all nodes lead to"
                " copies of one file"
            )
            LOGGER.warning(text, report.name)

    def _warn_of_namesake(self, report: NodeReport, before: str) -> None:
        """Log once that several nodes have a name: one that only moved does not move back."""
        name = report.name
        if self._former.get(name) == report.address and name not in self._shared:
            self._shared.add(name)
            text = "the nodes at %s and %s are both called %s: give each a node.name of its own"
            LOGGER.warning(text, *sorted((report.address, before)), name)
        self._former[name] = before

    def reports(self, now_ms: int) -> tuple[NodeReport, ...]:
        """Return the last report of each node, by name; those of long ago are forgotten."""
        self._heard = {
            name: each for name, each in self._heard.items() if now_ms - each[1] < _KEPT_MS
        }
        heard = (self._heard[name] for name in sorted(self._heard))
        return tuple(replace(report, heard_ms=now_ms - at_ms) for report, at_ms in heard)


def listeners_of(reports: Iterable[NodeReport], owner: str) -> tuple[tuple[str, str], ...]:
    """Return the listeners of the nodes that live, but for the owner's, each with its name."""
    living = (each for each in reports if each.heard_ms < NODE_LIVES_MS and each.name != owner)
    return tuple((each.name, each.address) for each in living if each.address)
