"""Builds what is said of all connectors together: the verdict, the troubles, the figures.

The verdict is that of `/status` and `/health`: the same troubles are counted, by the same rules.
For a caller who sees some of the connectors alone, it is judged of these.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ......projections.page.shapes import BAD, WAIT
from .....cluster.node_files import UP
from ...live.state import PageFigures, PageTrouble, PageVerdict, PageWorker, RebalanceFigure
from ...node import Health
from ...overview import BACKING_OFF, HEALTHY, judge, sum_troubles, with_troubles
from .facts import NodeFacts
from .rows import ORDER, PageRow

WARM: Final = "warm"
_KEPT: Final = "Nothing has been lost: what is behind will be read when its cause is gone."
_FOLDER_TROUBLES: Final = frozenset({"failed", "missing"})
"""The states of a folder of connector files that somebody has to look at."""
Rows = Mapping[str, PageRow]


def make_troubles(rows: Rows, facts: NodeFacts, *, is_limited: bool = False) -> list[PageTrouble]:
    """Return all troubles, the worst first; without reasons of the node for a limited caller."""
    of_rows = [each for row in rows.values() for each in row.troubles]
    of_rows.sort(key=lambda each: (ORDER.index(each.kind), each.since_ms or 0))
    of_node = [*_of_node(facts, is_limited=is_limited)]
    is_first = facts.refusal is not None or bool(facts.hold)
    return of_node + of_rows if is_first else of_rows + of_node


def make_verdict(rows: Rows, facts: NodeFacts, *, is_limited: bool = False) -> PageVerdict:
    """Return the verdict on the connectors and the node."""
    counts = sum_troubles(
        (each.counts for each in rows.values() if each.counts),
        (each.state for each in facts.processes),
        facts.engine.state if facts.engine else "",
    )
    health = with_troubles(facts.refusal or Health(status=HEALTHY, message=""), counts)
    status = judge(health, counts).status
    if facts.refusal is not None:
        text = "It takes no commands for now." if is_limited else facts.refusal.message
        return PageVerdict(status, f"The node is {status}", text)
    shapes = Counter(each.row.shape for each in rows.values())
    return PageVerdict(status, *_words(len(rows), shapes[BAD], shapes[WAIT], counts))


def _words(total: int, bad: int, waiting: int, counts: Mapping[str, int]) -> tuple[str, str]:
    fine = total - bad - waiting
    others = f"{fine} {'is' if fine == 1 else 'are'} fine. " if fine else ""
    rest = f"{others}{_KEPT}" if total else ""
    if bad:
        need = "needs" if bad == 1 else "need"
        also = f"{waiting} more wait{'s' if waiting == 1 else ''}. " if waiting else ""
        return f"{bad} of {_connectors(total)} {need} you", f"{also}{rest}"
    if waiting:
        return f"{waiting} of {_connectors(total)} wait{'s' if waiting == 1 else ''}", rest
    if counts:
        what = ", ".join(f"{count} {each}" for each, count in counts.items())
        return f"The node needs you: {what}", rest
    if not total:
        return "There is no connector yet", "What is created appears here."
    return ("The connector is fine" if total == 1 else f"All {total} connectors are fine"), ""


def _connectors(count: int) -> str:
    return f"{count} connector{'' if count == 1 else 's'}"


def _of_node(facts: NodeFacts, *, is_limited: bool) -> Iterator[PageTrouble]:
    """Yield the troubles of the disk, the processes, and the folder of connector files."""
    if facts.hold:
        saved = "What is committed stays; tasks go on by themselves once there is space."
        yield _trouble("disk", None, "the disk is full", facts.hold, saved)
    for each in facts.processes:
        if each.state == BACKING_OFF:
            saved = "Its tasks go to other workers, or wait for it; their offsets are in the log."
            text = "" if is_limited else each.detail
            yield _trouble("worker", each.name, f"worker {each.name} is down", text, saved)
    if facts.engine is not None and facts.engine.state == BACKING_OFF:
        saved = "Tasks wait for it, and go on behind their last commits."
        text = "" if is_limited else facts.engine.detail
        yield _trouble("engine", None, "the shared JVM is down", text, saved)
    folder = facts.folder
    if folder is not None and folder.state in _FOLDER_TROUBLES and not is_limited:
        text = folder.errors[0].line if folder.errors else folder.summary
        saved = "Connectors stay as they are."
        yield _trouble("folder", None, "connectors.dir is not in step", text, saved)


def _trouble(kind: str, worker: str | None, title: str, text: str, saved: str) -> PageTrouble:
    name = f"{kind}:{worker}" if worker else kind
    rest = (title, text, None, None, saved, ["log"], False)
    return PageTrouble(name, kind, None, [], worker, *rest)


def make_figures(
    rows: Rows,
    workers: Sequence[PageWorker],
    facts: NodeFacts,
    last: RebalanceFigure | None,
    rows_today: int | None,
) -> PageFigures:
    """Return the figures of connectors and workers together."""
    behind = [(each.row.behind_ms, name) for name, each in rows.items() if each.row.behind_ms]
    most, name = max(((ms, name) for ms, name in behind if ms), default=(None, None))
    known = any(each.row.behind_ms is not None for each in rows.values())
    used = [each.memory_bytes for each in facts.usage.values()]
    return PageFigures(
        round(sum(each.row.rows_per_second for each in rows.values()), 1),
        rows_today,
        most if name else (0 if known else None),
        name,
        last,
        sum(bool(each.member_id) for each in workers),
        max(facts.workers_wanted, len(workers)),
        sum(used) if used else None,
        facts.memory_total_bytes,
        "" if facts.engine is None else WARM if facts.engine.state == UP else facts.engine.state,
    )
