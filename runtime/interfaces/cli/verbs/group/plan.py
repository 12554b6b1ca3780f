"""The command `plan`: a dry run of changes, and the tables of its result.

The changes are sent as one request to the node, whose group computes what it would do, and changes
nothing. The answer has each resource that moves, starts or stops, the loads of the workers before
and after, and a verdict; here it is only laid out.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from .....planning.report import (
    ExpectedDowntime,
    Plan,
    PlannedLoad,
    PlannedRound,
    PlannedSeat,
    PlannedSplit,
    PlannedWorker,
)
from ...adapters.parameters import Option
from ...output.phrases import (
    format_reply_cause,
    format_time,
    group_ids,
    shorten_member,
    shorten_worker,
)
from ...output.printing import FactList, Misused, Section, Table, show
from ...requests.client import find_client
from ...requests.files import Recursive, read_all_connectors
from ...requests.grammar import CONNECTORS, WORKERS
from ...requests.names import OfGroup, complete_names, find_group_id
from ...requests.options import RemoteReadOptions, with_options

UNMEASURED: Final = "not measured yet"
SCALE: Final = re.compile(r"(?P<connector>.+)=(?P<tasks>[0-9]{1,10})", re.DOTALL)
NOTHING: Final = (
    "say what is to be planned: a file of connectors (-f), --add-worker, --remove-worker, --drain,"
    " --scale or --delete"
)


@dataclass(frozen=True, slots=True)
class PlanOptions(RemoteReadOptions):
    """A cluster, and the proposed changes."""

    file: Annotated[
        list[Path] | None,
        Option(
            "--filename", "-f", metavar="FILE", help="Connectors to create or change, JSON or YAML."
        ),
    ] = None
    recursive: Recursive = False
    add_worker: Annotated[
        int, Option("--add-worker", metavar="N", min=0, help="This number of workers joins.")
    ] = 0
    tag: Annotated[
        list[str] | None, Option("--tag", metavar="TAG", help="A tag of the added workers.")
    ] = None
    zone: Annotated[
        str | None, Option("--zone", metavar="ZONE", help="The zone of the added workers.")
    ] = None
    capacity: Annotated[
        int | None,
        Option("--capacity", metavar="C", min=1, help="The capacity of the added workers."),
    ] = None
    remove_worker: Annotated[
        list[str] | None,
        Option(
            "--remove-worker",
            metavar="WORKER",
            help="A worker leaves gracefully.",
            complete=complete_names(WORKERS),
        ),
    ] = None
    drain: Annotated[
        list[str] | None,
        Option(
            "--drain",
            metavar="WORKER",
            help="A worker gives up its work, and stays.",
            complete=complete_names(WORKERS),
        ),
    ] = None
    scale: Annotated[
        list[str] | None,
        Option("--scale", metavar="CONNECTOR=N", help="A connector gets another tasks.max."),
    ] = None
    delete: Annotated[
        list[str] | None,
        Option(
            "--delete",
            metavar="CONNECTOR",
            help="A connector is deleted.",
            complete=complete_names(CONNECTORS),
        ),
    ] = None
    group: OfGroup = None

    def body(self) -> Mapping[str, object]:
        """Return the changes as the body of a request; raises `Failed`, `Misused`."""
        asked = {"zone": self.zone, "tags": self.tag, "capacity": self.capacity}
        worker = {name: each for name, each in asked.items() if each not in (None, [])}
        if worker and not self.add_worker:
            raise Misused("--tag, --zone and --capacity are of workers that --add-worker adds")
        proposed = {
            "add_workers": self.add_worker,
            "worker": worker,
            "drain": self.drain,
            "remove_workers": self.remove_worker,
            "delete": self.delete,
            "connectors": [
                {"name": name, "config": config}
                for name, config in read_all_connectors(
                    self.file or [], recursive=self.recursive
                ).items()
            ],
            "scale": _scaled(self.scale or []),
        }
        return {name: each for name, each in proposed.items() if each}


@with_options(PlanOptions)
def plan(options: PlanOptions) -> None:
    """Show what would move, start, stop and stay after changes; change nothing.

    The code of the real group computes it, from the group as it is now. The order of changes:
    workers join, drain, leave; connectors are deleted, created or changed, scaled. Each change
    begins when the group is stable after the one before.
    """
    body = options.body()
    if not body:
        raise Misused(NOTHING)
    client = find_client(options)
    group_id = find_group_id(options, client, options.group)
    outcome = client.post(Plan, "groups", group_id, "plan", body=body)
    show(options.output, outcome, tabulate_plan(outcome))


def _scaled(given: list[str]) -> dict[str, int]:
    """Return the numbers of tasks by connector; raises `Misused`."""
    scaled: dict[str, int] = {}
    for each in given:
        match = SCALE.fullmatch(each)
        if match is None:
            raise Misused(f"--scale {each!r}: CONNECTOR=N is expected, such as flights=8")
        connector, tasks = match["connector"], int(match["tasks"])
        if scaled.setdefault(connector, tasks) != tasks:
            raise Misused(
                f"--scale says {scaled[connector]} and {tasks} of {connector}: which one?"
            )
        if not tasks:
            raise Misused(
                f"--scale {each!r}: no connector has less than one task; --delete ends it"
            )
    return scaled


def tabulate_plan(plan: Plan) -> list[Section]:
    """Return the sections of a plan; the last one is a summary."""
    names = _Names(plan)
    return [
        FactList([*_facts(plan)]),
        Table(
            ("RESOURCE", "FROM", "TO", "WHY", "EXPECTED DOWNTIME"),
            [*_changes(plan, names)],
            "nothing moves, starts or stops",
            rigid=True,
        ),
        Table(
            ("WORKER", "CONNECTORS", "TASKS", "WEIGHT", "STAYS"),
            [_worker(each, names) for each in plan.workers],
            "no workers",
        ),
        FactList([*_remarks(plan, names), ("Verdict", _verdict(plan))]),
    ]


def _facts(plan: Plan) -> Iterator[tuple[str, str]]:
    settled = "" if plan.settled else "; planned from where it comes to rest"
    yield "Group", f"{plan.group_id}, {plan.state.value} at epoch {plan.group_epoch}{settled}"
    yield "Assignor", plan.assignor
    for one_round in plan.rounds:
        causes = ", ".join(
            format_reply_cause(each.cause, each.subject) for each in one_round.causes
        )
        yield "Epoch", f"{causes}: {_round(one_round)}"
    left_out = {each.id for each in plan.unplaceable}
    for split in plan.splits:
        yield "Tasks", _split(split, is_run=split.connector not in left_out)


def _round(each: PlannedRound) -> str:
    counts = (
        (each.moved, "move"),
        (each.placed, "start"),
        (each.retired, "stop"),
        (each.displaced, "find no place any more"),
    )
    return ", ".join(f"{count} {verb}" for count, verb in counts if count) or "nothing moves"


def _split(each: PlannedSplit, *, is_run: bool) -> str:
    name, before = each.connector, each.before
    if not is_run:
        why = "only a running connector changes its tasks"
        return f"{name} keeps {before} until a worker runs it: {why}"
    restart = "; what stays is restarted" if each.restarts else ""
    if before == each.after:
        return f"{name} keeps {before}{restart}"
    most = ", if it makes as many as it may" if each.is_most else ""
    return f"{name} has {before}, will have {each.after}{most}{restart}"


class _Names:
    """The names of the workers in a plan; workers with the same name have their member ids."""

    def __init__(self, plan: Plan) -> None:
        self._counts = Counter(shorten_worker(each.worker) for each in plan.workers)
        """The number of members by worker name."""

    def of(self, seat: PlannedSeat | PlannedWorker) -> str:
        """Return the name of a member."""
        name = shorten_worker(seat.worker)
        return shorten_member(seat.worker, seat.member_id) if self._counts[name] > 1 else name


def _changes(plan: Plan, names: _Names) -> Iterator[tuple[str, ...]]:
    for move in plan.moves:
        why = ", ".join(filter(None, (move.reason, move.detail)))
        expected = _downtime(move.expected_downtime)
        yield move.id, names.of(move.giver), names.of(move.taker), why, expected
    for start in plan.starts:
        yield start.id, "", names.of(start.taker), "starts", ""
    for stop in plan.stops:
        yield stop.id, names.of(stop.giver), "", "stops", ""


def _downtime(expected: ExpectedDowntime | None) -> str:
    if expected is None:
        return UNMEASURED
    whose = "" if expected.of == "connector" else ", of all connectors"
    median, p99 = (_seconds(each) for each in (expected.median_ms, expected.p99_ms))
    return f"{median}, p99 {p99} ({expected.measured} measured{whose})"


def _seconds(parse_duration: int) -> str:
    return f"{parse_duration / 1000:.2f} s"


def _worker(each: PlannedWorker, names: _Names) -> tuple[str, ...]:
    before, after = _counts(each.before), _counts(each.after)
    loads = (
        old if old == new else f"{old} > {new}" for old, new in zip(before, after, strict=True)
    )
    return names.of(each), *loads, str(each.stays)


def _counts(load: PlannedLoad | None) -> tuple[str, str, str]:
    if load is None:
        return "-", "-", "-"
    return str(load.connectors), str(load.tasks), str(load.weight)


def _remarks(plan: Plan, names: _Names) -> Iterator[tuple[str, str]]:
    if plan.cold:
        cold = " ".join(map(names.of, plan.cold))
        yield "Not warm yet", f"{cold}: what they will take then is not in this plan"
    for warning in plan.warnings:
        yield "Warning", warning
    for reason, ids in group_ids((each.reason, each.id) for each in plan.unplaceable):
        yield "Unplaceable", f"{ids}: {reason}"
    for each in plan.parked:
        yield "Parked", f"{each.id} until {format_time(each.deadline_ms)}"


def _verdict(plan: Plan) -> str:
    moves, starts, stops = map(len, (plan.moves, plan.starts, plan.stops))
    total = moves + stops + plan.stays
    verdict = [f"{moves} of {total} resources move, {plan.stays} stay"]
    if restarts := sum(each.restarts for each in plan.splits):
        verdict.append(f"{restarts} of these are restarted")
    verdict += [f"{count} {verb}" for count, verb in ((starts, "start"), (stops, "stop")) if count]
    if plan.unplaceable:
        verdict.append(f"{len(plan.unplaceable)} cannot be placed")
    if plan.handovers > moves:
        verdict.append(f"{plan.handovers} hand-overs on the way")
    return "; ".join(verdict)
