"""The group as a node has it: who runs there reads its logs here, and speaks to it here."""

from dataclasses import dataclass
from typing import Protocol

from ....actors.messages.commands import GroupRequest
from ....events.group import Group
from .coordinating import Hear
from .durable_state import DurableState, MemoryLog
from .group_process import GroupProcess


class GroupPlace(Protocol):
    """The group as a node has it."""

    @property
    def control(self) -> MemoryLog:
        """The control log, as far as it is here."""
        ...

    @property
    def offsets(self) -> MemoryLog:
        """The offset log, as far as it is here."""
        ...

    @property
    def group(self) -> Group:
        """The fold of the control log here."""
        ...

    @property
    def is_up(self) -> bool:
        """Whether the host of the node is."""
        ...

    @property
    def generation(self) -> int:
        """Tells the present process of the group from others, for those who are connected to it."""
        ...

    @property
    def coordinator_epoch(self) -> int:
        """The number of that process."""
        ...

    def submit(self, only: int | None, hear: Hear, message: GroupRequest) -> None:
        """Pass a message on to the group; `only` is the one process that may get it, None: any."""
        ...


@dataclass(frozen=True, slots=True)
class OneHost:
    """The group on the only host that there is: its process, and its logs."""

    process: GroupProcess
    durable_state: DurableState
    is_up: bool = True

    @property
    def control(self) -> MemoryLog:
        """The control log."""
        return self.durable_state.control

    @property
    def offsets(self) -> MemoryLog:
        """The offset log."""
        return self.durable_state.offsets

    @property
    def group(self) -> Group:
        """The fold of the control log."""
        return self.durable_state.group

    @property
    def generation(self) -> int:
        """How often the process was started anew."""
        return self.process.generation

    @property
    def coordinator_epoch(self) -> int:
        """The number of the process."""
        return self.process.coordinator_epoch

    def submit(self, only: int | None, hear: Hear, message: GroupRequest) -> None:
        """Pass a message to the process."""
        self.process.submit(only, hear, message)
