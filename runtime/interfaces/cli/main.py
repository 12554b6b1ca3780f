"""The entry point of the command line: its commands, error messages and exit codes.

Exit codes: 0 success, 1 failure, 2 usage error, 3 cluster unreachable, 130 Ctrl-C. A traceback is
shown only with FAIRLEAD_DEBUG=1. A verb's module is imported when it is called.
"""

import gc
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Final

import click

from .adapters.parameters import HELP, make_command, write_examples
from .catalogue import HABITS, VERBS, Panel, Verb
from .output.printing import FAILED, MISUSED, PROGRAM, Failed, Misused, escape_controls, say

COMPLETIONS: Final = {
    "bash": ".local/share/bash-completion/completions/{}",
    "zsh": ".zfunc/_{}",
    "fish": ".config/fish/completions/{}.fish",
}
"""Where each shell looks for the completion of a program, below the home folder."""
INTERRUPTED: Final = 130
"""As a shell has it: 128, and the number of the signal."""
BASH_ADDS: Final = "COMPREPLY+=($value)"
BASH_ADDS_KEYS: Final = f"{BASH_ADDS}; [[ $value != *= ]] || compopt -o nospace"
"""What click's script for bash does with a word; behind `KEY=` there is no blank."""
ZSH: Final = "; put `fpath+=~/.zfunc; autoload -Uz compinit; compinit` into ~/.zshrc"


VerbTable = Mapping[str, Callable[..., None] | Mapping[str, Callable[..., None]]]
"""The verbs of a subject by name, or the verbs of a part of it."""


class SuggestingGroup(click.Group):
    """Names the verb that a misspelt one, or one of another program, may be meant for."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb that is called: its name, itself, and the words after it."""
        names = self.list_commands(ctx)
        is_wrong = args[0] not in names and not ctx.resilient_parsing  # as for completion
        words = [*ctx.command_path.split()[1:], args[0]]
        if is_wrong and (here := HABITS.get(" ".join(words))):
            ctx.fail(f"No such command {args[0]!r}: here it is `{PROGRAM} {here}`.")
        if is_wrong and (close := get_close_matches(args[0], names, 1)):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)


class SubGroup(SuggestingGroup):
    """The verbs of one subject, in their own order."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return their names."""
        del ctx
        return [*self.commands]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of them, with whole sentences."""
        del ctx
        rows = [(name, _line(each.help or "")) for name, each in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples of a subject."""
        write_examples(ctx, formatter)


class VerbGroup(SuggestingGroup):
    """Lists all verbs by their names and a line of help, and loads the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs."""
        del ctx
        return [*VERBS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return what help and completion show of a verb."""
        del ctx
        found = VERBS.get(cmd_name)
        return click.Command(cmd_name, help=found.help) if found else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb that is called: its name, itself, and the words after it.

        `help VERB` is `VERB --help`.
        """
        if args[0] == "help" and len(args) > 1:
            args = [*args[1:], "--help"]
        name, shown, rest = super().resolve_command(ctx, args)
        return name, shown and load_verb(name or ""), rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of verbs, in parts."""
        del ctx
        widest = max(map(len, VERBS))
        for panel, verbs in groupby(VERBS.items(), key=_panel_of):
            with formatter.section(panel.value):
                formatter.write_dl([(name.ljust(widest), _line(verb.help)) for name, verb in verbs])


def load_verb(name: str) -> click.Command:
    """Import a verb, and return its command."""
    module, _, attribute = VERBS[name].target.partition(":")
    imported = import_module(f".{module}", __package__)
    if attribute:
        command = make_command(name, getattr(imported, attribute))
        if below := VERBS[name].below:
            return _make_group(name, import_module(f".{below}", __package__).VERBS, command)
        return command
    return _make_group(name, imported.VERBS)


def _make_group(name: str, verbs: VerbTable, alone: click.Command | None = None) -> click.Group:
    """Return the verbs of a subject; `alone` is what the subject does without one of them."""
    if alone is None:
        told = VERBS[name].help if name in VERBS else f"The verbs of a {name}: {', '.join(verbs)}."
        group = SubGroup(name, help=told, context_settings=HELP, no_args_is_help=True)
    else:
        group = SubGroup(
            name,
            help=alone.help,
            context_settings=HELP,
            params=alone.params,
            callback=_unless_a_verb_follows(alone),
            invoke_without_command=True,
        )
    for each, verb in verbs.items():
        below = make_command(each, verb) if callable(verb) else _make_group(each, verb)
        group.add_command(below)
    return group


def _unless_a_verb_follows(alone: click.Command) -> Callable[..., None]:
    """Return a function that runs a command if no verb stands behind it."""

    def run(**values: object) -> None:
        context = click.get_current_context()
        if context.invoked_subcommand is None and alone.callback is not None:
            alone.callback(**values)

    return run


def _panel_of(item: tuple[str, Verb]) -> Panel:
    return item[1].panel


def _line(told: str) -> str:
    """Return the first sentence of a verb's help."""
    return " ".join(told.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")


def _show_version(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version  # noqa: PLC0415  # slow, and rarely used

        from ...pipeline.installed import DISTRIBUTION  # noqa: PLC0415

        say(f"{PROGRAM} {version(DISTRIBUTION)}")
        ctx.exit()


def _install_completion(ctx: click.Context, _: click.Parameter, shell: str | None) -> None:
    if shell is not None:
        say(_write_completion(shell or Path(os.environ.get("SHELL", "")).name))
        ctx.exit()


def _write_completion(shell: str) -> str:
    """Write the script that click has for a shell; return what was done.

    Raises `Failed` if the file cannot be written, `Misused` for a shell that is not known.
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415  # once in a life

    kind = get_completion_class(shell) if shell in COMPLETIONS else None
    if kind is None:
        known = ", ".join(COMPLETIONS)
        raise Misused(f"there is completion for {known}, not for {shell or 'no shell'}")
    path = Path.home() / COMPLETIONS[shell].format(PROGRAM)
    script = kind(VerbGroup(PROGRAM), {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE").source()
    script = script.replace(BASH_ADDS, BASH_ADDS_KEYS)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{script}\n")
    except OSError as error:
        raise Failed(f"{path} cannot be written: {error.strerror or error}") from None
    return f"completion for {shell} is in {path}{ZSH if shell == 'zsh' else ''}; start a new shell"


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
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        gc.freeze()  # to collect what was imported when the process ends takes a third of its time
    _fill_closed_places()
    _survive_any_text()
    words = ["--help"] if words in ([], ["help"]) else words
    try:
        ended = app.main(words, prog_name=PROGRAM, standalone_mode=False)
    except SystemExit as completed:  # by a shell
        return completed.code if isinstance(completed.code, int) else FAILED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        sys.stderr.write(f"{PROGRAM}: interrupted: what was done before stays\n")
        return INTERRUPTED
    except Exception as error:  # the last place before the user
        if os.environ.get("FAIRLEAD_DEBUG") == "1":
            raise
        return _report(error)
    return ended if isinstance(ended, int) else 0


def _fill_closed_places() -> None:
    """Open /dev/null in place of each closed standard stream.

    Otherwise the next opened file, such as a log, would get its descriptor, and the output of
    libraries and child processes would be written to it.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
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
