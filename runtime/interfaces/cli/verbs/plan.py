"""`plan`: what would come of changes that nobody has made yet."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from ....planning.report import Plan
from ..command.client import client_of
from ..command.exit_codes import Misused
from ..command.options import ReadThere, takes
from ..command.printing import show
from ..tables.plan import plan_tables
from .connectors import read_connectors

SCALE: Final = re.compile(r"(?P<connector>.+)=(?P<tasks>[0-9]{1,10})", re.DOTALL)
NOTHING: Final = (
    "say what is to be planned: a file of connectors (-f), --add-worker, --remove-worker, --drain,"
    " --scale or --delete"
)


@dataclass(frozen=True, slots=True)
class Proposed(ReadThere):
    """A cluster, and what somebody thinks of changing there."""

    file: Annotated[
        list[Path] | None,
        typer.Option(
            "--filename", "-f", metavar="FILE", help="Connectors to create or change, JSON or YAML."
        ),
    ] = None
    add_worker: Annotated[
        int, typer.Option("--add-worker", metavar="N", min=0, help="So many workers join.")
    ] = 0
    tag: Annotated[
        list[str] | None, typer.Option("--tag", metavar="TAG", help="A tag of the added workers.")
    ] = None
    zone: Annotated[
        str | None, typer.Option("--zone", metavar="ZONE", help="The zone of the added workers.")
    ] = None
    capacity: Annotated[
        int | None,
        typer.Option("--capacity", metavar="C", min=1, help="What the added workers can take."),
    ] = None
    remove_worker: Annotated[
        list[str] | None,
        typer.Option("--remove-worker", metavar="WORKER", help="A worker leaves in good order."),
    ] = None
    drain: Annotated[
        list[str] | None,
        typer.Option("--drain", metavar="WORKER", help="A worker gives up what it has, and stays."),
    ] = None
    scale: Annotated[
        list[str] | None,
        typer.Option("--scale", metavar="CONNECTOR=N", help="A connector gets another tasks.max."),
    ] = None
    delete: Annotated[
        list[str] | None,
        typer.Option("--delete", metavar="CONNECTOR", help="A connector is deleted."),
    ] = None
    group: Annotated[
        str | None, typer.Option("--group", metavar="NAME", help="Another group than the node's.")
    ] = None

    def body(self) -> Mapping[str, object]:
        """Return the changes as the cluster takes them; raises `Failed`, `Misused`."""
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
            "connectors": _connectors(self.file or []),
            "scale": _scaled(self.scale or []),
        }
        return {name: each for name, each in proposed.items() if each}


@takes(Proposed)
def plan(asked: Proposed) -> None:
    """Show what would move, start, stop and stay if changes were made; makes none.

    Computed by the code that does it, from the group as it is now. Changes are made in this
    order: workers join, drain, leave; connectors are deleted, created or changed, scaled; each
    once the group has come to rest after the one before.
    """
    body = asked.body()
    if not body:
        raise Misused(NOTHING)
    group_id = asked.group or asked.configured().group_id
    found = client_of(asked).post(Plan, "groups", group_id, "plan", body=body)
    show(asked.output, found, plan_tables(found))


def _connectors(files: list[Path]) -> list[dict[str, object]]:
    return [
        {"name": name, "config": config} for file in files for name, config in read_connectors(file)
    ]


def _scaled(given: list[str]) -> dict[str, int]:
    """Return the numbers of tasks by connector; raises `Misused`."""
    scaled: dict[str, int] = {}
    for each in given:
        found = SCALE.fullmatch(each)
        if found is None:
            raise Misused(f"--scale {each!r}: CONNECTOR=N is expected, such as flights=8")
        connector, tasks = found["connector"], int(found["tasks"])
        if scaled.setdefault(connector, tasks) != tasks:
            raise Misused(
                f"--scale says {scaled[connector]} and {tasks} of {connector}: which one?"
            )
        if not tasks:
            raise Misused(
                f"--scale {each!r}: no connector has less than one task; --delete ends it"
            )
    return scaled
