"""What happens in a simulation, as lines of text: told only where somebody will read them."""

from collections.abc import Iterable

from ...events.model import Grants, Resource
from ...events.records import (
    ConnectorConfig,
    ConnectorsTasksMetadata,
    CurrentAssignment,
    GroupMetadata,
    Loss,
    MemberMetadata,
    Record,
    ScheduledRebalance,
    TargetAssignment,
    TaskConfigs,
    Tombstone,
)
from .clock import SimulatedClock


class Story:
    """The lines so far; a story that is not told costs next to nothing."""

    def __init__(self, clock: SimulatedClock, *, is_told: bool) -> None:
        self.is_told = is_told
        self.lines: list[str] = []
        self._clock = clock

    def tell(self, template: str, *args: object) -> None:
        """Add a line, if the story is told; `template` is filled in only then."""
        if self.is_told:
            seconds = self._clock.now_ms / 1_000
            self.lines.append(f"{seconds:9.3f}  {template.format(*args)}")


def listed(resources: Iterable[Resource]) -> str:
    """Return resources in order and in their short form."""
    return " ".join(map(str, sorted(resources))) or "nothing"


def spelled(record: Record) -> str:
    """Return in a few words what a record says."""
    match record:
        case GroupMetadata(epoch, cause):
            return f"group epoch {epoch}: {cause}"
        case MemberMetadata(member_id, joined_epoch=epoch):
            return f"{member_id} has a seat since {epoch}"
        case TargetAssignment():
            return _target(record)
        case CurrentAssignment():
            return _step(record)
        case Tombstone(kind, key):
            return f"no more {kind.__name__} {' '.join(map(str, key))}".rstrip()
        case _:
            return _other(record)


def _target(record: TargetAssignment) -> str:
    shares = [f"{each}: {listed(record.members[each])}" for each in sorted(record.members)]
    failed = f" ({record.error})" if record.error else ""
    return f"target {record.assignment_epoch}{failed}: {', '.join(shares) or 'nobody'}"


def _step(record: CurrentAssignment) -> str:
    pending = f", to revoke {_granted(record.pending)}" if record.pending else ""
    where = f"{record.state.name} at {record.member_epoch}"
    return f"{record.member_id} is {where}: {_granted(record.assigned)}{pending}"


def _granted(grants: Grants) -> str:
    return " ".join(f"{each}@{grants[each]}" for each in sorted(grants)) or "nothing"


def _other(record: Record) -> str:
    match record:
        case ConnectorsTasksMetadata(configured):
            return f"configured: {listed(configured)}"
        case ConnectorConfig(name, _, version, deleting=deleting):
            return f"connector {name} version {version}{' is being deleted' if deleting else ''}"
        case TaskConfigs(name, generation, tasks):
            return f"{name} is split into {len(tasks)} (generation {generation})"
        case ScheduledRebalance(parked, fired, again_at_ms):
            again = f", more moves at {again_at_ms}" if again_at_ms else ""
            return f"parked: {listed(parked)}, fired: {listed(fired)}{again}"
        case Loss(member_id, resources=resources):
            return f"{member_id} lost {listed(resources)}"
        case _:
            return type(record).__name__
