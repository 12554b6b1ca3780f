"""The plan of an import: what each connector of Kafka Connect would be here, and why.

A connector is imported as it is if its plugin is here, its config is valid here, and what it
inherits of its worker is the same. Nothing is changed to find that out; a plugin that is asked
about a config may connect to where that leads, as it does in Connect.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from msgspec import Struct

from ....pipeline.connectors.connect_configs.makers import FETCH, origin_of
from ....pipeline.connectors.connect_configs.table import hint_for
from ....pipeline.plugins.catalogue.aliases import compute_aliases
from ...replies.connectors import PluginInfo
from ..output.printing import Failed
from ..requests.client import Client, RefusedByCluster
from .connect_rest import ConnectClass, ConnectEntry, RefusedByConnect
from .properties import BROKERS, OFFSETS_TOPIC, BothProperties, PropertyDifference
from .record import ImportRecord
from .sides import ConnectSide, NodeSide, status_of
from .steps import ImportPlace, ImportStep

CLASS: Final = "connector.class"
_UNTOLD: Final = frozenset({"", "unknown", "undefined", "null"})
_COORDINATES: Final = re.compile(rf"`{FETCH} ([\w.-]+:[\w.-]+):[\w.-]+`")
_TOO_OLD: Final = (
    "Kafka Connect {} can neither stop a connector nor show its offsets, as 3.5 and later can: with"
    " --delete-there its config is kept in a file, and it is deleted there"
)
_OTHER_TOPIC: Final = (
    "Kafka Connect {} shows no offsets, so that they stay where they are, and {} differs"
)


class ImportWay(StrEnum):
    """The ways in which a connector of Connect can be here."""

    UNCHANGED = "unchanged"
    PLUGIN_MISSING = "plugin missing"
    EQUIVALENT = "equivalent"
    IMPOSSIBLE = "impossible"
    MOVED = "moved"


class ImportCandidate(Struct, frozen=True):
    """A connector of Kafka Connect, and what it would be here."""

    name: str
    connector_class: str
    version: str
    """That of its plugin there; empty if Connect does not tell it."""
    state: str
    """Its state there, and those of its tasks."""
    way: ImportWay
    step: ImportStep | None
    """How far an import of it has come; null: it has not begun."""
    remarks: list[str]

    @property
    def can_move(self) -> bool:
        """Whether it can be imported now, or its import can go on."""
        return self.way is ImportWay.UNCHANGED


class ImportPlan(Struct, frozen=True):
    """All connectors of a Kafka Connect, and what their workers have otherwise than the node."""

    connect: str
    """The URL of a worker."""
    version: str
    record: str
    """The file that records the steps."""
    connectors: list[ImportCandidate]
    differences: list[PropertyDifference]


@dataclass(frozen=True, slots=True)
class ImportPlanner:
    """Judges connectors by what is known of both sides before anything is done."""

    version: str
    """That of Connect."""
    classes_there: Sequence[ConnectClass]
    classes_here: Sequence[PluginInfo]
    there: ConnectSide
    here: NodeSide
    properties: BothProperties
    record: ImportRecord
    accepts_differences: bool = False
    is_old: bool = False
    """Whether Connect cannot stop connectors."""
    may_delete: bool = False
    """Whether they may be deleted there instead."""

    def plan(self, name: str, entry: ConnectEntry) -> ImportCandidate:
        """Return what a connector would be here; raises `Failed`, `Unreachable`."""
        config, place = entry.config(), self.record.place(name)
        class_name = self._full_name(config.get(CLASS, ""))
        version = self._version_there(class_name, entry)
        way, remarks = self._settled(place) or self._judge(name, config, class_name, version)
        if place.is_open:
            remarks = [f"its import has begun: {place.step}", *remarks]
        elif place.reason:
            remarks = [f"{place.step}: {place.reason}", *remarks]
        state = str(status_of(entry.status))
        return ImportCandidate(name, class_name, version, state, way, place.step, remarks)

    @staticmethod
    def _settled(place: ImportPlace) -> tuple[ImportWay, list[str]] | None:
        """Return the way of a connector that has moved, or is to arrive somewhere in any case."""
        if place.step is ImportStep.MOVED:
            return ImportWay.MOVED, []
        return (ImportWay.UNCHANGED, []) if place.is_open else None

    def _judge(
        self, name: str, config: Mapping[str, str], class_name: str, version: str
    ) -> tuple[ImportWay, list[str]]:
        here = self._versions_here(class_name)
        if not here:
            return self._without_plugin(class_name, version)
        flaws = [] if self.accepts_differences else [*self.properties.flaws_for(config)]
        flaws += [*self._flaws_there(name), *self._flaws_here(name, config)]
        remarks: list[str] = []
        if version not in {*_UNTOLD, *here}:
            origin = _fetch_line(class_name, version)
            told = f"its plugin has version {', '.join(here)} here, {version} there"
            remarks.append("; ".join(filter(None, (told, origin))))
        return (ImportWay.IMPOSSIBLE if flaws else ImportWay.UNCHANGED), [*flaws, *remarks]

    def _flaws_there(self, name: str) -> Iterator[str]:
        """Yield why Connect cannot give a connector away; raises `Failed`, `Unreachable`."""
        if not self.is_old:
            try:
                self.there.offsets(name)
            except RefusedByConnect as error:
                yield str(error)
        elif not self.may_delete:
            yield _TOO_OLD.format(self.version)
        elif others := self.properties.others_among((BROKERS, OFFSETS_TOPIC)):
            yield _OTHER_TOPIC.format(self.version, " and ".join(others))

    def _flaws_here(self, name: str, config: Mapping[str, str]) -> Iterator[str]:
        """Yield why the node does not take a connector; raises `Failed`, `Unreachable`."""
        try:
            diff = self.here.compare(name, config)
        except RefusedByCluster as error:
            yield " ".join(str(error).split())
            return
        if diff.is_new:
            return
        if diff.changes:
            keys = ", ".join(each.key for each in diff.changes)
            yield f"there is another connector of this name here, which differs in {keys}"
        elif self.here.status(name).may_run:
            yield f"it runs here already: `fairlead stop {name}` first"

    def _without_plugin(self, class_name: str, version: str) -> tuple[ImportWay, list[str]]:
        origin, own = _fetch_line(class_name, version), hint_for(class_name)
        if FETCH in origin:
            return ImportWay.PLUGIN_MISSING, [*filter(None, (origin, own))]
        if "`fairlead translate" in own:
            return ImportWay.EQUIVALENT, [*filter(None, (own, origin))]
        none = f"no plugin here has the class {class_name or '(none is named)'}"
        return ImportWay.IMPOSSIBLE, [*filter(None, (none, origin, own))]

    def _full_name(self, name: str) -> str:
        """Return the full name of a class, which a config may name by an alias."""
        found = ((each.type, each.class_name) for each in self.classes_there)
        aliases = compute_aliases(found)
        return next((full for full, short in aliases.items() if name in short), name)

    def _version_there(self, class_name: str, entry: ConnectEntry) -> str:
        listed = (each.version for each in self.classes_there if each.class_name == class_name)
        return entry.status.connector.version or next(listed, "") or ""

    def _versions_here(self, class_name: str) -> list[str]:
        return [each.version for each in self.classes_here if each.class_name == class_name]


def _fetch_line(class_name: str, version: str) -> str:
    """Return the sentence that says how to get a plugin, in its version if that is told."""
    origin = origin_of(class_name)
    if version in _UNTOLD:
        return origin
    return _COORDINATES.sub(rf"`{FETCH} \1:{version}`", origin)


def fetch_classes_here(client: Client) -> list[PluginInfo]:
    """Return the connector classes of the node; raises `Failed`."""
    return client.get(list[PluginInfo], "connector-plugins")


def choose(
    planned: Sequence[ImportCandidate], names: Sequence[str]
) -> tuple[list[ImportCandidate], list[ImportCandidate]]:
    """Return the connectors to import, of all or of some, and those that cannot be.

    Raises `Failed` if one that is named cannot be imported.
    """
    able = [each for each in planned if each.can_move or each.way is ImportWay.MOVED]
    others = [each for each in planned if each not in able]
    if names and others:
        lines = (f"connector {each.name}: {'; '.join(each.remarks)}" for each in others)
        raise Failed("\n".join((*lines, "nothing was changed")))
    return able, others
