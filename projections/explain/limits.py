"""Epochs as they are told to who sees some of the connectors alone.

An epoch is told if it was raised by one of these, or if its target moved, placed, kept for a worker
or dropped something of theirs. Of the others nothing is named or counted, and who raised an epoch
by them is not named either. Workers are named, as everywhere.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from ...events.model import GroupType, Resource, Resources
from .diff import TargetChange
from .epochs import Explanation

T = TypeVar("T")
Sees = Callable[[str], bool]
"""Tells whether the connector of a name may be seen."""
_OF_WORKERS: Final = frozenset(
    {"member", "session", "process", "worker", "assignors", "metadata", "rebalance"}
)
"""How causes begin whose subjects are workers; those of others may be connectors and tasks."""


def limit_epoch(epoch: Explanation, sees: Sees) -> Explanation | None:
    """Return an epoch without what a caller does not see; None: it is about nothing else."""
    report = epoch.report
    if report.type is not GroupType.CONNECT:
        return None  # what it moves are partitions
    change = report.target_change and _limit_change(report.target_change, sees)
    handovers = tuple(each for each in epoch.handovers if sees(each.resource.connector))
    waits = tuple(
        replace(each, resources=own) for each in epoch.waits if (own := _seen(each.resources, sees))
    )
    is_of_worker = report.bump.cause.why.value.partition("-")[0] in _OF_WORKERS
    subjects = [] if is_of_worker else _subjects(epoch, sees)
    if not (handovers or waits or subjects or (change and _has_any(change))):
        return None
    limited = replace(
        epoch,
        report=replace(report, attempts=(), target_change=change),
        handovers=handovers,
        waits=waits,
        put_together=subjects if epoch.put_together else (),
    )
    return limited if is_of_worker else _with_subjects(limited, epoch, subjects)


def _subjects(epoch: Explanation, sees: Sees) -> list[str]:
    """Return the connectors, or the task, that raised an epoch, as far as they are seen."""
    if epoch.put_together:
        return sorted(filter(sees, epoch.put_together))
    subject = epoch.report.bump.cause.subject
    connector, _, task = subject.rpartition("-")
    is_of_unseen = bool(connector) and task.isdecimal() and not sees(connector)
    return [subject] if subject and sees(subject) and not is_of_unseen else []


def _with_subjects(
    limited: Explanation, whole: Explanation, subjects: Sequence[str]
) -> Explanation:
    """Return an epoch that some connectors raised, of which a caller sees these."""
    bump = whole.report.bump
    more = f" and {len(subjects) - 1} more" if len(subjects) > 1 else ""
    cause = bump.cause._replace(subject=f"{subjects[0]}{more}" if subjects else "")
    own = replace(bump, cause=cause, actor=bump.actor if subjects else None)
    is_whole = len(subjects) == max(1, len(whole.put_together))
    return replace(
        limited,
        report=replace(limited.report, bump=own),
        changed=whole.changed if is_whole else "",
    )


def _limit_change(change: TargetChange, sees: Sees) -> TargetChange:
    transfers = (change.moved, change.returned, change.placed)
    moved, returned, placed = (
        tuple(each for each in some if sees(each.resource.connector)) for some in transfers
    )
    kept = {owner: _seen(some, sees) for owner, some in change.kept.items()}
    return replace(
        change,
        moved=moved,
        returned=returned,
        placed=placed,
        kept={owner: some for owner, some in kept.items() if some},
        parked=_seen_of(change.parked, sees),
        unplaceable=_seen_of(change.unplaceable, sees),
        retired=_seen(change.retired, sees),
        reasons=_seen_of(change.reasons, sees),
        displaced=_seen_of(change.displaced, sees),
    )


def _has_any(change: TargetChange) -> bool:
    """Return whether a target changed anything, or left something without a worker."""
    moved = change.moved or change.returned or change.placed or change.retired
    return bool(moved or change.parked or change.displaced)


def _seen(resources: Resources, sees: Sees) -> Resources:
    return frozenset(each for each in resources if sees(each.connector))


def _seen_of(facts: Mapping[Resource, T], sees: Sees) -> dict[Resource, T]:
    return {each: fact for each, fact in facts.items() if sees(each.connector)}
