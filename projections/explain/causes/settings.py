"""The settings of a group that people have changed since the epoch before.

They raise no epoch, so they are told with the next one, which may be the first to go by them.
"""

from collections.abc import Mapping

from ....events.records import GroupConfiguration, Record, Tombstone

_NODES = "the node's"
"""What a setting is that the group has not of its own."""


class SettingChanges:
    """A fold of the whole log that records the changes of settings between epochs."""

    def __init__(self) -> None:
        self._now: Mapping[str, str] = {}
        self._before: Mapping[str, str] = {}
        """The settings at the last epoch."""

    def apply(self, record: Record) -> None:
        """Apply the next record of the log."""
        if isinstance(record, GroupConfiguration):
            self._now = record.configs
        elif isinstance(record, Tombstone) and record.kind is GroupConfiguration:
            self._now = {}

    def take(self) -> str:
        """Return what has changed since it was asked for last, in words; "" if nothing has."""
        before, self._before = self._before, self._now
        changed = [
            f"{name} {before.get(name, _NODES)} > {self._now.get(name, _NODES)}"
            for name in sorted({*before, *self._now})
            if before.get(name) != self._now.get(name)
        ]
        return f"settings since the epoch before: {', '.join(changed)}" if changed else ""
