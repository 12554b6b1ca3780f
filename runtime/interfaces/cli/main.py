"""The entry point of the command line: its commands, error messages and exit codes.

Exit codes: 0 success, 1 failure, 2 usage error, 3 cluster unreachable. A traceback is shown only
with FAIRLEAD_DEBUG=1.
"""

import gc
import io
import os
import sys
from collections.abc import Sequence

import click

from .adapters.parameters import HELP
from .command.printing import FAILED, MISUSED, PROGRAM, Failed, escape_controls, say
from .group import VerbGroup


def _show_version(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version  # noqa: PLC0415  # slow, and rarely used

        from ...pipeline.distribution import DISTRIBUTION  # noqa: PLC0415

        say(f"{PROGRAM} {version(DISTRIBUTION)}")
        ctx.exit()


def _install_completion(ctx: click.Context, _: click.Parameter, shell: str | None) -> None:
    if shell is not None:
        from .completion import install  # noqa: PLC0415  # once in a life

        say(install(PROGRAM, shell))
        ctx.exit()


app = VerbGroup(
    PROGRAM,
    help="Run data connectors on Spark, in groups that can explain their decisions.",
    context_settings=HELP,
    no_args_is_help=True,
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version.",
        ),
        click.Option(
            ["--install-completion"],
            is_flag=False,
            flag_value="",
            metavar="[SHELL]",
            is_eager=True,
            expose_value=False,
            callback=_install_completion,
            help="Install completion: of bash, zsh or fish; default: your shell.",
        ),
    ],
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        gc.freeze()  # to collect what was imported when the process ends takes a third of its time
    _fill_closed_places()
    _survive_any_text()
    try:
        app.main(["--help"] if given in ([], ["help"]) else given, prog_name=PROGRAM)
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
    from ....events.entries.codec import CodecError  # noqa: PLC0415  # most commands load no log
    from ....events.log.errors import LogError  # noqa: PLC0415
    from ...config.sources import ConfigError  # noqa: PLC0415

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
