"""The entry point of the command line: its commands, error messages and exit codes.

Exit codes: 0 success, 1 failure, 2 usage error, 3 cluster unreachable. A traceback is shown only
with FAIRLEAD_DEBUG=1.
"""

import gc
import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from ....events.entries.codec import CodecError
from ....events.log.errors import LogError
from ...config.sources import ConfigError
from ...pipeline.distribution import DISTRIBUTION
from .command.printing import FAILED, MISUSED, Failed, escape_controls
from .verbs import (
    configs,
    connectors,
    following,
    history,
    listing,
    log,
    node,
    offsets,
    plan,
    reading,
    simulate,
    workers,
)

PROGRAM: Final = "fairlead"
RUN, LOOK, CHANGE = "Run", "Look", "Change"

app = typer.Typer(
    name=PROGRAM,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415  # slow, and rarely used

        sys.stdout.write(f"{PROGRAM} {version(DISTRIBUTION)}\n")
        raise typer.Exit


@app.callback()
def fairlead(
    version: Annotated[  # its callback does all the work
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Run data connectors on Spark, in groups that can explain their decisions."""


for _verb in (
    node.up,
    node.down,
    node.worker,
    node.prepare,
    node.demo,
    simulate.simulate,
):
    app.command(rich_help_panel=RUN)(_verb)
for _verb in (
    reading.status,
    listing.get,
    reading.describe,
    history.history,
    history.explain,
    plan.plan,
    configs.diff,
    following.top,
    following.logs,
    node.config,
):
    app.command(rich_help_panel=LOOK)(_verb)
app.add_typer(
    log.log,
    name="log",
    help="Read, check and copy a group's logs, also without a running cluster.",
    rich_help_panel=LOOK,
)
for _verb in (
    configs.create,
    configs.apply,
    configs.patch,
    configs.scale,
    configs.edit,
    connectors.delete,
    connectors.pause,
    connectors.resume,
    connectors.stop,
    connectors.restart,
    connectors.wait,
    following.log_level,
    workers.cordon,
    workers.uncordon,
    workers.drain,
    workers.expect,
    workers.remove,
    workers.rebalance,
):
    app.command(rich_help_panel=CHANGE)(_verb)
app.add_typer(
    offsets.offsets,
    name="offsets",
    help="Show, set, reset and seek the offsets of a connector.",
    rich_help_panel=CHANGE,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        gc.freeze()  # to collect what was imported when the process ends takes a third of its time
    _fill_closed_places()
    _survive_any_text()
    try:
        app(given or ["--help"], prog_name=PROGRAM)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else FAILED
    except Exception as error:  # the last door before the user
        if os.environ.get("FAIRLEAD_DEBUG") == "1":
            raise
        return _report(error)
    return 0


def _fill_closed_places() -> None:
    """Open /dev/null in place of each closed standard stream.

    Otherwise the next opened file, such as a log, would get its descriptor, and the output of
    libraries and child processes would be written to it.
    """
    for place in range(3):
        try:
            os.fstat(place)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115  # it stays open
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def _survive_any_text() -> None:
    """Escape characters that the encoding of a standard stream cannot represent."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # pyright: ignore[reportUnknownMemberType]


def _report(error: Exception) -> int:
    """Print the error, one line for each problem, and return the exit code."""
    status = FAILED
    match error:
        case ConfigError():
            lines, status = list(error.problems), MISUSED
        case Failed():
            lines, status = str(error).splitlines(), error.status
        case LogError() | CodecError():
            lines = [str(error)]
        case OSError():
            lines = [f"{error}: what was done before stays; see to it and try again"]
        case _:
            lines = [
                f"a fault of fairlead itself: {type(error).__name__}: {error}; what was done"
                " before stays. FAIRLEAD_DEBUG=1 shows where it comes from"
            ]
    for line in lines:
        sys.stderr.write(f"{PROGRAM}: {escape_controls(line)}\n")
    return status
