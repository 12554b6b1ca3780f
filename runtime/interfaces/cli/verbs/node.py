"""The commands `up`, `down`, `worker`, `prepare`, `demo` and `config`: a node on this machine."""

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from .....events.placement import LARGEST_CAPACITY, flaw_in_labels
from ..adapters.parameters import Argument, Ended, Option
from ..output.printing import (
    FactList,
    Failed,
    Misused,
    Output,
    Section,
    Table,
    say,
    say_aside,
    show,
)
from ..output.progress import show_progress
from ..requests.options import LocalOptions, LocalReadOptions, with_options

if TYPE_CHECKING:
    from ....config.load import Loaded
    from ....node.shown_settings import ShownSetting

WORKER_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")


class LogTo(StrEnum):
    """Where the processes of a node log."""

    FILE = "file"
    STDOUT = "stdout"


@with_options(LocalOptions)
def up(
    options: LocalOptions,
    new_key: Annotated[
        bool,
        Option("--new-key", help="Make a new key if the cluster's is lost, or take another."),
    ] = False,
    log: Annotated[
        LogTo | None,
        Option("--log", help="Where its processes log; default: log.to.", show_default=False),
    ] = None,
    detach: Annotated[
        bool,
        Option("--detach", help="Return when it is ready; it goes on, and `down` ends it."),
    ] = False,
) -> None:
    """Run this node in the foreground: actors, groups, workers, REST. Ctrl-C ends it."""
    if detach and log is LogTo.STDOUT:
        raise Misused("with --detach nobody reads standard output: leave out --log stdout")
    loaded = options.load()
    _tell_passed_over(options, loaded)
    config, sources = loaded.config, loaded.sources
    if log is not None:
        from ....config.sources import COMMAND_LINE  # noqa: PLC0415

        config, sources = replace(config, log_to=log.value), {**sources, "log.to": COMMAND_LINE}
    from ....node.launcher.commands import up as run  # noqa: PLC0415  # reading verbs load no actors

    raise Ended(run(config, sources, new_key=new_key, detach=detach))


def _tell_passed_over(options: LocalOptions, loaded: "Loaded") -> None:
    """Name the settings of a Connect worker's file that change nothing here."""
    from ....config.connect_worker import describe_passed_over  # noqa: PLC0415

    for line in describe_passed_over(loaded.passed_over):
        say_aside(f"of {options.config}, {line}" if line.startswith("these") else line)


@with_options(LocalOptions)
def down(options: LocalOptions) -> None:
    """Stop the node that runs on this data folder; its workers leave gracefully."""
    config = options.load_config()
    from ....node.launcher.commands import down as run  # noqa: PLC0415

    raise Ended(run(config))


_Name = Annotated[
    str | None, Option("--name", metavar="NAME", help="Its name; default: a free one.")
]
_Zone = Annotated[
    str | None, Option("--zone", metavar="ZONE", help="Its zone; default: the node's.")
]
_Tags = Annotated[
    list[str] | None,
    Option("--tag", metavar="TAG", help="One of its tags, repeatable; default: the node's."),
]
_Capacity = Annotated[
    int | None,
    Option(
        "--capacity",
        metavar="N",
        min=1,
        max=LARGEST_CAPACITY,
        help="How much work it takes, compared with others; default: the node's.",
    ),
]
_Protocol = Annotated[
    str | None,
    Option(
        "--protocol",
        metavar="<connect|classic>",
        help="Its protocol with the group; default: group.protocol, else the node's.",
    ),
]


@with_options(LocalOptions)
def worker(
    options: LocalOptions,
    name: _Name = None,
    zone: _Zone = None,
    tags: _Tags = None,
    capacity: _Capacity = None,
    protocol: _Protocol = None,
) -> None:
    """Run one more worker on the running node. Ctrl-C ends it."""
    _refuse(name, zone, tags or (), protocol)
    loaded = options.load()
    from ....cluster.messages import AddWorker  # noqa: PLC0415
    from ....node.launcher.commands import run_worker  # noqa: PLC0415

    tagged = frozenset(tags) if tags else None
    mode = choose_classic_mode(loaded, protocol)
    order = AddWorker(os.getpid(), name, zone, tagged, capacity, mode)
    raise Ended(run_worker(loaded.config, order))


def _refuse(name: str | None, zone: str | None, tags: Sequence[str], protocol: str | None) -> None:
    """Check the options of a new worker before a node is asked for it; raises `Misused`."""
    if name is not None and not WORKER_NAME.fullmatch(name):
        raise Misused(
            f"a worker cannot be called {name!r}: letters, digits, dots, hyphens and underscores"
            " will do, 64 at most"
        )
    for option, labels in (("--zone", [] if zone is None else [zone]), ("--tag", tags)):
        if flaw := flaw_in_labels(labels):
            raise Misused(f"{option}: {flaw}")
    if protocol not in {None, "connect", "classic"}:
        raise Misused(f"--protocol is connect or classic, not {protocol!r}")


def choose_classic_mode(loaded: "Loaded", protocol: str | None) -> str | None:
    """Return the `connect.protocol` of a classic worker, None for the node's default.

    The option overrides `group.protocol`, which a file may set for the whole node.
    """
    if protocol is None and "group.protocol" not in loaded.sources:
        return None
    said = protocol or loaded.config.group_protocol
    return loaded.config.connect_protocol if said == "classic" else ""


def prepare() -> None:
    """Have Spark start a third sooner from now on, by an archive of its classes (180 MB)."""
    from ....node.engine.class_data import NotWritten, write_archive  # noqa: PLC0415
    from ....processes.java import JavaNotFound  # noqa: PLC0415

    try:
        with show_progress("archiving Spark's classes"):
            archive = write_archive(say)
    except (NotWritten, JavaNotFound) as error:
        raise Failed(str(error)) from None
    say(f"Spark's classes are in {archive}")


class Scene(StrEnum):
    """The scenes of the demo."""

    FLIGHTS = "flights"
    CDC = "cdc"
    HOSTS = "hosts"


def demo(
    scene: Annotated[
        Scene,
        Argument(
            help="flights: files into files; cdc: changes of a PostgreSQL table; hosts: two nodes,"
            " of which the owner is killed."
        ),
    ] = Scene.FLIGHTS,
    seconds: Annotated[
        float,
        Option(
            "--seconds", metavar="S", min=1, max=3600, help="For how many seconds data arrives."
        ),
    ] = 30.0,
    workers: Annotated[
        int,
        Option("--workers", metavar="N", min=1, max=16, help="The number of workers at the start."),
    ] = 2,
    keep: Annotated[
        Path | None,
        Option("--keep", metavar="DIR", help="A new folder for all files, kept afterwards."),
    ] = None,
    *,
    plugin: Annotated[
        bool,
        Option("--plugin", help="cdc: by Debezium's plugin for Kafka Connect, which is fetched."),
    ] = False,
) -> None:
    """Watch a year of flights pass; a worker joins, one is killed, no row is lost."""
    if plugin and scene is not Scene.CDC:
        raise Misused("--plugin is for `demo cdc`: its connectors are Debezium's then")
    if scene is Scene.CDC:
        from ....demo.cdc.show import demo_cdc  # noqa: PLC0415

        raise Ended(demo_cdc(seconds, workers, keep, by_debezium=plugin))
    if scene is Scene.HOSTS:
        from ....demo.hosts.show import demo_hosts  # noqa: PLC0415

        raise Ended(demo_hosts(seconds, workers, keep))
    from ....demo.show import demo as run  # noqa: PLC0415

    raise Ended(run(seconds, workers, keep))


@with_options(LocalReadOptions)
def config(options: LocalReadOptions) -> None:
    """Show every setting: its value, default, unit and meaning, and where its value is from.

    Behind it may stand one of the commands for contexts, which are names for clusters: `fairlead
    get connectors --context prod` asks the cluster that `fairlead config set-context prod` has
    named.
    """
    loaded = options.load()
    _tell_passed_over(options, loaded)
    from ....node.shown_settings import list_settings  # noqa: PLC0415

    lines = list_settings(loaded.config, loaded.sources)
    show(options.output, lines, _sections(lines) if options.output is Output.TABLE else ())


def _sections(lines: Sequence["ShownSetting"]) -> list[Section]:
    """Return two tables, values and meanings: one would be too wide for a terminal."""
    rows = [(each.key, each.value, each.unit, each.source) for each in lines]
    meanings = [(each.key, f"{each.meaning}{_default(each)}") for each in lines]
    return [
        Table(("KEY", "VALUE", "UNIT", "SOURCE"), rows, rigid=True),
        FactList(meanings, "What they mean"),
    ]


def _default(line: "ShownSetting") -> str:
    if not line.default:
        return ""
    unit = " ms" if line.unit == "ms" else ""
    return f" Default: {line.default}{unit}."
