"""Builds the last epochs of a page, each in a line."""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Final

from ......projections.explain.epochs import Explanation
from ......projections.explain.handovers import Handover
from ......projections.explain.limits import limit_epoch
from ......projections.watch.lines import short
from .....security.rights import Access
from ...live.state import PageEpoch, RebalanceFigure

_ABOUT_WORK: Final = frozenset({"connector", "tasks", "placement"})
"""How causes begin whose subjects are connectors or tasks; others are about workers."""


class KnownEpoch:
    """One of the last epochs with its lines, each of which is made once."""

    def __init__(self, explanation: Explanation) -> None:
        self.line = make_epoch(explanation)
        """Its line for who sees everything."""
        self._explanation = explanation
        self._limited: dict[Access, PageEpoch | None] = {}
        """Its lines for callers who see some connectors alone; None: it is about none of these."""

    def line_for(self, access: Access) -> PageEpoch | None:
        """Return its line for a caller who sees some connectors alone, if there is one."""
        if access not in self._limited:
            own = limit_epoch(self._explanation, cache(access.sees))
            self._limited[access] = make_epoch(own) if own is not None else None
        return self._limited[access]


def make_epoch(explanation: Explanation) -> PageEpoch:
    """Return an epoch in a line, as far as it is known."""
    report, bump = explanation.report, explanation.report.bump
    change = report.target_change
    if change is not None and change.assignment_epoch != bump.group_epoch:
        change = None  # a later epoch has the same target, and counts it
    handovers = explanation.handovers if change else ()
    downs = [ms for each in handovers if (ms := _down_ms(each, bump.group_epoch)) is not None]
    counts = (
        len(change.moved) + len(change.returned) if change else 0,
        len(change.placed) if change else 0,
        len(change.parked) if change else 0,
    )
    why = bump.cause.why.value
    is_about_work = why.partition("-")[0] in _ABOUT_WORK
    subject = bump.cause.subject if is_about_work else short(bump.cause.subject)
    return PageEpoch(
        bump.group_epoch,
        bump.time_ms,
        why,
        subject,
        bump.actor,
        _title(why, subject, explanation.changed),
        _text(counts, max(downs, default=None), handovers, bump.actor, change is not None),
        *counts,
        explanation.total_ms,
        max(downs, default=None),
        sum(downs) if downs else None,
        _bar(explanation),
    )


def last_rebalance(epochs: Sequence[PageEpoch], configured: int) -> RebalanceFigure | None:
    """Return the latest epoch that moved something, of so many connectors and tasks.

    `epochs` begin with the latest one.
    """
    moving = (each for each in epochs if each.moved)
    last = next(moving, None)
    if last is None:
        return None
    return RebalanceFigure(last.epoch, last.moved, configured, last.down_ms)


def _down_ms(handover: Handover, epoch: int) -> int | None:
    """Return for how long nobody ran what moved, told with the epoch that revoked it."""
    if handover.freed_by not in {None, epoch} or handover.previous_owner is None:
        return None
    exact = handover.downtime_ms
    return handover.downtime_at_least_ms if exact is None else exact


def _title(why: str, subject: str, changed: str) -> str:
    """Return what happened: its cause in words, whom it is about, and what had changed."""
    what = changed or why.replace("-", " ")
    return f"{subject}: {what}" if subject else what.capitalize()


def _text(
    counts: tuple[int, int, int],
    down_ms: int | None,
    handovers: Sequence[Handover],
    actor: str | None,
    is_answered: bool,  # noqa: FBT001  # whether its target is known
) -> str:
    """Return what came of it, and who asked for it."""
    moved, placed, parked = counts
    ways = {
        (short(each.previous_owner.worker), short(each.new_owner.worker))
        for each in handovers
        if each.previous_owner is not None and each.new_owner is not None
    }
    parts = [
        f"{moved} {_way(ways)}" if moved else "",
        f"{placed} started" if placed else "",
        f"{parked} wait{'s' if parked == 1 else ''}" if parked else "",
        f"down {down_ms / 1000:.2f} s" if down_ms is not None else "",
    ]
    told = ", ".join(filter(None, parts)) or ("nothing moved" if is_answered else "")
    return " · ".join(filter(None, (told, f"by {actor}" if actor else "")))


def _way(ways: Collection[tuple[str, str]]) -> str:
    """Return between which workers something moved, if that is one step."""
    if len(ways) != 1:
        return "moved"
    ((before, after),) = ways
    return f"back at {after}" if before == after else f"moved {before} → {after}"


def _bar(explanation: Explanation) -> list[int] | None:
    """Return the percents of waiting, deciding and moving; None if one is not known yet."""
    took = [each.took_ms for each in explanation.phases]
    known = [each or 0 for each in took]
    total = sum(known)
    if explanation.total_ms is None or not total:
        return None
    parts = known[:1], known[1:2], known[2:]
    return [round(100 * sum(each) / total) for each in parts]
