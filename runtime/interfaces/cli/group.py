"""The group of all verbs, which imports a verb when it is called."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from itertools import groupby

import click

from .adapters.parameters import HELP, make_command
from .catalogue import VERBS, Panel, Verb


class SuggestingGroup(click.Group):
    """Names the verb that a misspelt one may be meant for."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb that is called: its name, itself, and the words after it."""
        names = self.list_commands(ctx)
        is_wrong = args[0] not in names and not ctx.resilient_parsing  # as for completion
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
        return make_command(name, getattr(imported, attribute))
    verbs: Mapping[str, Callable[..., None]] = imported.VERBS
    group = SubGroup(name, help=VERBS[name].help, context_settings=HELP, no_args_is_help=True)
    for each, verb in verbs.items():
        group.add_command(make_command(each, verb))
    return group


def _panel_of(item: tuple[str, Verb]) -> Panel:
    return item[1].panel


def _line(told: str) -> str:
    """Return the first sentence of a verb's help."""
    return " ".join(told.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")
