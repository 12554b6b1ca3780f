"""A whole page at one moment, and its encoded forms."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from msgspec import UNSET, Raw, structs
from msgspec.json import encode

from ......projections.explain.limits import Sees
from ......projections.page.recent import ConnectorMark
from ......projections.page.rings import STEP_MS
from ......projections.watch.lines import EventLine
from .....security.rights import Access
from ...live.events import describe_event
from ...live.state import (
    ConnectorRow,
    PageChange,
    PageEpoch,
    PageFigures,
    PageHours,
    PageState,
    PageStep,
    PageTrouble,
    PageVerdict,
    PageWorker,
    RowHistory,
)
from .epochs import KnownEpoch, last_rebalance
from .facts import NodeFacts
from .history import PageHistory
from .rows import PageRow
from .verdicts import make_figures, make_troubles, make_verdict


@dataclass(frozen=True, slots=True)
class PageView:
    """All that a page shows, as of one moment; `PageState` explains members of the same names."""

    version: str
    group: str
    cluster_id: str
    position: int
    time_ms: int
    epoch: int
    assignment_epoch: int
    group_state: str
    assignor: str
    verdict: PageVerdict
    troubles: list[PageTrouble]
    figures: PageFigures
    """Without their last hour."""
    workers: list[PageWorker]
    rows: Mapping[str, PageRow]
    """The connectors, by name."""
    epochs: list[PageEpoch]
    """The latest one first."""
    known: Sequence[KnownEpoch]
    """What these are the lines of, in the same order; none on the page of a limited caller."""
    lines: Sequence[EventLine]
    """The latest one last."""
    marks: Mapping[str, Sequence[ConnectorMark]]
    """What happened to each connector, the latest last."""
    facts: NodeFacts
    is_limited: bool = False
    """Whether it is the page of a caller who does not see all connectors."""

    def limited_to(self, access: Access) -> "PageView":
        """Return the page of a caller who sees some connectors alone.

        The reasons of processes may name others, so they are left out.
        """
        sees = access.sees
        rows = {name: each for name, each in self.rows.items() if sees(name)}
        tasks = Counter(owner for each in rows.values() for owner in each.owners)
        workers = [
            structs.replace(each, tasks=tasks[each.member_id], detail="") for each in self.workers
        ]
        epochs = [own for each in self.known if (own := each.line_for(access))]
        last = last_rebalance(epochs, sum(1 + len(each.row.cells) for each in rows.values()))
        return replace(
            self,
            verdict=make_verdict(rows, self.facts, is_limited=True),
            troubles=make_troubles(rows, self.facts, is_limited=True),
            figures=make_figures(rows, workers, self.facts, last, None),
            workers=workers,
            rows=rows,
            epochs=epochs,
            known=(),
            lines=[each for each in self.lines if each.resource and sees(each.resource.connector)],
            is_limited=True,
        )

    def encode(self, sequence: int, history: PageHistory) -> bytes:
        """Return the page as JSON; `sequence` is the number of the last message it contains.

        A caller who does not see all connectors gets no history of all of them together.
        """
        rows = {name: Raw(each.encoded) for name, each in self.rows.items()}
        figures = structs.replace(self.figures, history=history.of_figures())
        workers = [
            structs.replace(each, history=history.of_worker(each.name)) for each in self.workers
        ]
        return encode(
            PageState(
                self.version,
                self.group,
                self.cluster_id,
                self.position,
                sequence,
                self.time_ms,
                history.began_ms,
                STEP_MS,
                self.epoch,
                self.assignment_epoch,
                self.group_state,
                self.assignor,
                self.verdict,
                self.troubles,
                self.figures if self.is_limited else figures,
                workers,
                cast("dict[str, ConnectorRow]", rows),
                self.epochs,
                [*map(describe_event, reversed(self.lines))],
            )
        )

    def encode_hours(self, sequence: int, history: PageHistory) -> bytes:
        """Return the last hour of each connector as JSON; `sequence` is as that of `encode`."""
        hours = {name: Raw(history.of_row(name)) for name in self.rows}
        return encode(PageHours(sequence, cast("dict[str, RowHistory]", hours)))


def limit_step(step: PageStep, view: PageView, sees: Sees) -> PageStep:
    """Return the message of a step for such a caller; see `limit_change`."""
    connectors = {name: each for name, each in step.connectors.items() if sees(name)}
    return structs.replace(step, connectors=connectors, figures=view.figures)


def limit_change(change: PageChange, view: PageView, sees: Sees) -> PageChange:
    """Return a message for a caller who sees some connectors alone; `view` is their page."""
    rows, gone, lines = change.connectors, change.gone, change.lines
    changed = {each.epoch for each in change.epochs or ()}
    return structs.replace(
        change,
        verdict=view.verdict,
        troubles=view.troubles,
        figures=view.figures,
        connectors=rows and {name: each for name, each in rows.items() if sees(name)},
        gone=gone and [*filter(sees, gone)],
        workers=change.workers and view.workers,
        epochs=change.epochs and [each for each in view.epochs if each.epoch in changed],
        lines=lines and [each for each in lines if each.connector and sees(each.connector)],
        client_groups=UNSET,
    )
