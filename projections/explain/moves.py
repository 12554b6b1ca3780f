"""How one resource moved, from epoch to epoch, and why."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from .clients import KafkaClient
from .epochs import EpochReading
from .handovers import Handover


@dataclass(frozen=True, slots=True)
class Move:
    """A time at which a resource changed hands, or stopped."""

    group_epoch: int
    """The last of the epochs that were answered by the target that moved it."""
    time_ms: int
    causes: list[str]
    """Of all epochs that the target answered, in order."""
    subjects: list[str]
    """Whom each of these is about."""
    handover: Handover


@dataclass(frozen=True, slots=True)
class MoveList:
    """How one resource moved, the latest move last."""

    moves: list[Move]
    clients: Mapping[str, KafkaClient]
    """Kafka's clients that the group ever had, by member id."""


def moves_of(readings: Iterable[EpochReading], name: str) -> Iterator[Move]:
    """Yield how a resource moved; a target is told once, at the last epoch that it answers."""
    answered: list[EpochReading] = []
    for reading in readings:
        report, change = reading.report, reading.report.target_change
        answered.append(reading)
        if change is None or change.assignment_epoch > report.group_epoch:
            continue
        causes = [each.report.bump.cause for each in answered]
        whys, subjects = [each.why.value for each in causes], [each.subject for each in causes]
        for each in reading.handovers:
            if str(each.handover.resource) == name:
                at_ms = report.bump.time_ms
                yield Move(report.group_epoch, at_ms, whys, subjects, each.handover)
        answered = []
