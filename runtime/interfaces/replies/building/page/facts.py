"""Facts of a node that no log has: its processes, and the resources that they use."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ......events.commits import Lag
from ......projections.views import Progress, is_behind
from .....cluster.messages import ProcessView
from .....cluster.node_files import EngineFile
from ...folder import FolderReport
from ...node import Health


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """The resources that one process uses."""

    cpu: float | None
    """Of one core, since the look before; None at the first look."""
    memory_bytes: int
    """Resident."""
    started_ms: int


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The node at one look."""

    refusal: Health | None = None
    """Why commands are not accepted, or which processes are slow; None if all is well."""
    processes: tuple[ProcessView, ...] = ()
    """Those of the workers."""
    engine: EngineFile | None = None
    """The JVM that the workers share; None: there is none."""
    hold: str = ""
    """Why no task can commit; empty if all can."""
    folder: FolderReport | None = None
    """How the connectors differ from `connectors.dir`; None: none is set."""
    usage: Mapping[int, ProcessUsage] = field(default_factory=dict[int, ProcessUsage])
    """By process id: of workers and JVMs."""
    memory_total_bytes: int | None = None
    """The memory of the machine; None: not known."""
    workers_wanted: int = 0
    """How many workers the node is to run."""
    heartbeat_ages: Mapping[str, int] = field(default_factory=dict[str, int])
    """How old the last heartbeat of a member was, in ms, by member id; others are not known."""
    late_ms: int = 0
    """From which age on a heartbeat is late: its member has asked anew by then."""


@dataclass(frozen=True, slots=True)
class ConnectorProgress:
    """How far a connector is."""

    total: Progress = field(default_factory=Progress)
    """Of its tasks together."""
    lag: Lag | None = None
    """What it has left to read; None: not known."""
    caught_up_ms: int | None = None
    """Since when it may have something to read; None: it has never read."""
    rows_per_second: float = 0.0
    """Over the last seconds."""

    def behind_ms(self, now_ms: int) -> int | None:
        """Return how old what is left to read is at most, as the metric of the lag in seconds."""
        if self.lag is None:
            return None
        if not is_behind(self.lag):
            return 0
        return None if self.caught_up_ms is None else max(0, now_ms - self.caught_up_ms)
