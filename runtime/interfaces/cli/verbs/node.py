"""`up`, `down`, `worker` and `demo`: the processes of a node on this machine."""

import os
import re
from pathlib import Path
from typing import Annotated, Final

import typer

from .....events.placement.abilities import LARGEST_CAPACITY
from .....events.placement.config import flaw_in_labels
from ..command.exit_codes import Misused
from ..command.options import Here, takes

WORKER_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")


@takes(Here)
def up(
    place: Here,
    new_key: Annotated[
        bool, typer.Option("--new-key", help="Make a new key where the cluster's is lost.")
    ] = False,
) -> None:
    """Run this node in the foreground: actors, groups, workers, REST. Ctrl-C ends it."""
    config = place.configured()
    from ....node.commands import up as run  # noqa: PLC0415  # the actors are no matter of reading verbs

    raise typer.Exit(run(config, new_key=new_key))


@takes(Here)
def down(place: Here) -> None:
    """Stop the node that runs on this data folder; its workers leave in good order."""
    config = place.configured()
    from ....node.commands import down as run  # noqa: PLC0415

    raise typer.Exit(run(config))


@takes(Here)
def worker(
    place: Here,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Its name; default: a free one.")
    ] = None,
    zone: Annotated[
        str | None, typer.Option("--zone", metavar="ZONE", help="Its zone; default: the node's.")
    ] = None,
    tags: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TAG", help="A tag of it, repeatable; default: the node's."),
    ] = None,
    capacity: Annotated[
        int | None,
        typer.Option(
            "--capacity",
            metavar="N",
            min=1,
            max=LARGEST_CAPACITY,
            help="How much it takes next to others; default: as the node's.",
        ),
    ] = None,
) -> None:
    """Run one more worker on the node that is up. Ctrl-C lets it leave."""
    if name is not None and not WORKER_NAME.fullmatch(name):
        raise Misused(
            f"a worker cannot be called {name!r}: letters, digits, dots, hyphens and underscores"
            " will do, 64 at most"
        )
    for option, labels in (("--zone", [] if zone is None else [zone]), ("--tag", tags or [])):
        if flaw := flaw_in_labels(labels):
            raise Misused(f"{option}: {flaw}")
    config = place.configured()
    from ....cluster.messages import AddWorker  # noqa: PLC0415
    from ....node.commands import run_worker  # noqa: PLC0415

    tagged = frozenset(tags) if tags else None
    raise typer.Exit(run_worker(config, AddWorker(os.getpid(), name, zone, tagged, capacity)))


def demo(
    seconds: Annotated[
        float,
        typer.Option("--seconds", metavar="S", min=1, max=3600, help="How long data arrives."),
    ] = 30.0,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", min=1, max=16, help="Workers to begin with.")
    ] = 2,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="DIR", help="A new folder for all files, kept afterwards."),
    ] = None,
) -> None:
    """Watch a year of flights go through; a worker joins, one is killed, no row is lost."""
    from ....demo.show import demo as run  # noqa: PLC0415

    raise typer.Exit(run(seconds, workers, keep))
