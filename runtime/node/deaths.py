"""Which members have ended with their processes, and which of them the group has to be told of.

A member's work may go elsewhere once nothing of it runs: neither its process nor its engine.
What was said is said again to each new process of the group, which may not have written it.
"""

from collections import deque
from typing import Final

from ...actors.messages.orders import EndMember
from .processes import NodeProcess

REMEMBERED: Final = 64
"""How many of the last reports are repeated; a report that is repeated changes nothing."""


class Deaths:
    """The reports of one supervisor to its group."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._ending: list[tuple[NodeProcess, int]] = []
        self._reported: deque[EndMember] = deque(maxlen=REMEMBERED)

    @property
    def is_waiting(self) -> bool:
        """Whether there is anything to report."""
        return bool(self._ending)

    def add(self, process: NodeProcess, ended_ms: int) -> None:
        """Take note of a worker whose process has ended; its engine may still be ending.

        `ended_ms` is wall clock, 0 where nobody saw it.
        """
        if process.member_id:
            self._ending.append((process, ended_ms))

    def take_ended(self) -> list[tuple[NodeProcess, EndMember]]:
        """Return the reports that are due, and take them for said."""
        ended = [each for each in self._ending if not each[0].is_alive]
        self._ending = [each for each in self._ending if each not in ended]
        due = [
            (each, EndMember(self._group_id, each.member_id, each.incarnation, ended_ms))
            for each, ended_ms in ended
        ]
        self._reported.extend(report for _, report in due)
        return due

    def repeated(self) -> tuple[EndMember, ...]:
        """Return what was said before, for a group that may not have heard it."""
        return tuple(self._reported)
