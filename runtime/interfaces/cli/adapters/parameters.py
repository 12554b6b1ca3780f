"""Verbs as functions: each parameter is annotated with the option or the argument that it is.

`Annotated[int, Option("--tasks", metavar="N", min=1, help="…")]` is an option with a whole number
from 1. A parameter without a default is required, a list may have several values, and None is the
value of a list that nobody gave. The commands are click's.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, get_args, get_origin

import click

Ended = click.exceptions.Exit
"""Ends a verb with an exit code, without a message."""

HELP: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
NODE: Final = "Which node or cluster"
OF_NODE: Final = frozenset({"config", "overrides", "data_dir", "url", "context", "ca", "cert"})
"""The parameters that say which node a verb is for, if it has all that a node has."""
Complete = Callable[[Mapping[str, Any], str], Iterable[str]]
"""Returns what may stand for an incomplete word, given the parameters before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """The properties that options and arguments share."""

    metavar: str | None = None
    help: str = ""
    min: int | None = None
    max: int | None = None
    show_default: bool = True
    case_sensitive: bool = True
    complete: Complete | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument(Parameter):
    """A word of a verb, by its place."""


@dataclass(frozen=True, slots=True, init=False)
class Option(Parameter):
    """An option of a verb; without names it is called as its parameter."""

    names: tuple[str, ...]

    def __init__(self, *names: str, **more: Any) -> None:  # noqa: ANN401  # those of `Parameter`
        Parameter.__init__(self, **more)
        object.__setattr__(self, "names", names)


class _Choice(click.Choice[str]):
    """One of the values of an enumeration."""

    def __init__(self, kind: type[Enum], *, case_sensitive: bool) -> None:
        super().__init__([str(each.value) for each in kind], case_sensitive)
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        return self._kind(super().convert(value, param, ctx))


class _Words(click.Argument):
    """An argument that `--help` explains."""

    def __init__(self, names: list[str], told: str, **more: Any) -> None:  # noqa: ANN401
        super().__init__(names, **more)
        self.told = told

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return (self.make_metavar(ctx), self.told)


class VerbCommand(click.Command):
    """A verb, with its arguments explained before its options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the tables of `--help`; what says which node is meant comes last."""
        parts: dict[str, list[click.Parameter]] = {"Arguments": [], "Options": [], NODE: []}
        is_of_node = any(each.name == "config" for each in self.params)
        for each in self.get_params(ctx):
            title = NODE if is_of_node and each.name in OF_NODE else "Options"
            parts[title if isinstance(each, click.Option) else "Arguments"].append(each)
        for title, parameters in parts.items():
            rows = [record for each in parameters if (record := each.get_help_record(ctx))]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write its examples."""
        write_examples(ctx, formatter)


def write_examples(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the lines of `--help` that can be copied."""
    from ..output.examples import EXAMPLES  # noqa: PLC0415  # only for --help

    program, _, verb = ctx.command_path.partition(" ")
    if lines := EXAMPLES.get(verb, ()):
        with formatter.section("Examples"):
            for line in lines:
                formatter.write(f"{'':{formatter.current_indent}}{program} {line}\n")


def make_command(name: str, verb: Callable[..., None]) -> click.Command:
    """Return the command of a function whose parameters are annotated."""
    kinds = inspect.signature(verb, eval_str=True).parameters
    parameters = [_parameter(each) for each in kinds.values()]
    several = {each for each, kind in kinds.items() if get_origin(_unwrap(kind)[0]) is list}

    def run(**values: Any) -> None:  # noqa: ANN401  # the values that click has read
        for each in several:
            values[each] = list(values[each]) or kinds[each].default
        verb(**values)

    told = inspect.getdoc(verb) or ""
    return VerbCommand(
        name, callback=run, params=parameters, help=_unwrapped(told), context_settings=HELP
    )


def _unwrapped(text: str) -> str:
    """Join the lines of each paragraph: they are wrapped at the terminal's width."""
    return "\n\n".join(" ".join(each.splitlines()) for each in text.split("\n\n"))


def _unwrap(parameter: inspect.Parameter) -> tuple[Any, Parameter]:
    """Return the type of a parameter, without None, and what it is on the command line."""
    kind, declared = parameter.annotation, Option()
    if get_origin(kind) is Annotated:
        kind, declared = get_args(kind)[0], kind.__metadata__[0]
    if get_origin(kind) is UnionType:
        (kind,) = (each for each in get_args(kind) if each is not type(None))
    return kind, declared


def _parameter(parameter: inspect.Parameter) -> click.Parameter:
    kind, declared = _unwrap(parameter)
    is_required = parameter.default is inspect.Parameter.empty
    is_several = get_origin(kind) is list
    item = get_args(kind)[0] if is_several else kind
    default = None if is_required else parameter.default
    shared: dict[str, Any] = {"required": is_required, "metavar": declared.metavar}
    if declared.complete is not None:
        shared["shell_complete"] = _completion(declared.complete)
    if isinstance(default, Enum):
        default = default.value
    if default is not None:
        shared["default"] = default
    if isinstance(declared, Argument):
        nargs = -1 if is_several else 1
        return _Words(
            [parameter.name], declared.help, type=_type(item, declared), nargs=nargs, **shared
        )
    is_shown = declared.show_default and default not in (None, False, "")
    names = getattr(declared, "names", ()) or (f"--{parameter.name.replace('_', '-')}",)
    if item is bool:
        return click.Option(
            [*names, parameter.name], is_flag=True, default=bool(default), help=declared.help
        )
    return click.Option(
        [*names, parameter.name],
        type=_type(item, declared),
        multiple=is_several,
        help=declared.help,
        show_default=is_shown,
        **shared,
    )


def _completion(
    complete: Complete,
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return the completion of a word as click calls it."""

    def completed(ctx: click.Context, _: click.Parameter, word: str) -> list[str]:
        words = ctx.params.get("words") or ctx.args  # behind an option click has not sorted them
        return [*complete({**ctx.params, "words": words}, word)]

    return completed


def _type(item: Any, declared: Parameter) -> click.ParamType[Any]:  # noqa: ANN401  # a type
    """Return how click reads a word."""
    if item is int:
        return click.IntRange(declared.min, declared.max)
    if item is float:
        return click.FloatRange(declared.min, declared.max)
    if item is Path:
        return click.Path(path_type=Path)
    if isinstance(item, type) and issubclass(item, Enum):
        return _Choice(item, case_sensitive=declared.case_sensitive)
    return click.STRING
