"""The verbs of `config` about contexts: clusters with names, and the one that is meant."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Final

from msgspec import Struct
from msgspec.structs import replace

from ..adapters.parameters import Argument, Option
from ..output.layout import TableLayout
from ..output.printing import Failed, Misused, Output, say, say_aside, show
from ..requests.contexts import (
    CONTEXT_VARIABLE,
    URL_VARIABLE,
    ClusterContext,
    ContextFile,
    check_context_name,
    check_context_url,
    find_context,
    read_contexts,
    write_contexts,
)
from ..requests.options import complete_contexts, with_options
from ..requests.several import pick


class ContextLine(Struct, frozen=True):
    """A context as it is listed: without what is secret."""

    current: str
    """`*` for the one that is meant if nothing else is said."""
    name: str
    url: str
    user: str
    opens: str
    """What opens its door."""


CONTEXTS: Final = TableLayout(
    ContextLine,
    "CURRENT: current, NAME: name, URL: url, USER: user, DOOR: opens",
    empty="no contexts: add one with `fairlead config set-context NAME --url URL`",
)
_Name = Annotated[
    str, Argument(metavar="NAME", help="The name of a context.", complete=complete_contexts)
]


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """The members of a context, None for those that stay."""

    url: Annotated[
        str | None, Option("--url", metavar="URL", help="The cluster's REST interface.")
    ] = None
    ca: Annotated[
        Path | None,
        Option("--ca", metavar="FILE", help="The authorities of its certificate, in PEM."),
    ] = None
    cert: Annotated[
        Path | None,
        Option("--cert", metavar="FILE", help="Your certificate and its key, in PEM."),
    ] = None
    token_file: Annotated[
        Path | None,
        Option("--token-file", metavar="FILE", help="A file with your token, for you only."),
    ] = None
    user: Annotated[str | None, Option("--user", metavar="NAME", help="Who you are there.")] = None
    password_file: Annotated[
        Path | None,
        Option("--password-file", metavar="FILE", help="A file with your password, for you only."),
    ] = None


@with_options(ContextOptions)
def set_context(
    options: ContextOptions,
    name: Annotated[str, Argument(metavar="NAME", help="The name that you give the cluster.")],
    *,
    use: Annotated[bool, Option("--use", help="Make it the current context, too.")] = False,
) -> None:
    """Give a cluster a name, or change what is kept of one; what is not said stays.

    An empty text removes what is kept: `--ca ""`. Secrets stay in their own files, and only the
    paths of these are kept.
    """
    check_context_name(name)
    stored = read_contexts()
    is_new = name not in stored.contexts
    changes = {key: _as_kept(each) for key, each in asdict(options).items() if each is not None}
    context = replace(stored.contexts.get(name, ClusterContext()), **changes)
    check_context_url(context.url, f"the context {name}")
    current = name if use else stored.current
    write_contexts(ContextFile(current=current, contexts={**stored.contexts, name: context}))
    say(f"context {name} {'added' if is_new else 'changed'}{'; it is current' if use else ''}")


def _as_kept(value: str | Path) -> str:
    """Return a value as the file has it: a path from the root, so that it holds anywhere."""
    if isinstance(value, str):
        return value
    return "" if value == Path() else str(value.expanduser().absolute())


def use_context(name: _Name) -> None:
    """Make a context the current one: verbs are for its cluster if nothing else is said."""
    stored = read_contexts()
    address = find_context(name, "use-context")
    write_contexts(replace(stored, current=name))
    say(f"context {name} is current: {address.url}")


def current_context() -> None:
    """Show the name of the context that is meant if nothing else is said."""
    name = os.environ.get(CONTEXT_VARIABLE, "")
    if name:
        say_aside(f"as {CONTEXT_VARIABLE} says")
    name = name or read_contexts().current
    if url := os.environ.get(URL_VARIABLE, ""):
        say_aside(f"{URL_VARIABLE} comes first: verbs are for {url}")
    if not name:
        raise Failed(
            "there is no current context: verbs are for the node of a data folder; `fairlead config"
            " use-context NAME` changes that"
        )
    say(name)


def get_contexts(
    names: Annotated[
        list[str] | None,
        Argument(metavar="[NAME...]", help="Only these.", complete=complete_contexts),
    ] = None,
    *,
    output: Annotated[Output, Option("--output", "-o", help="The output format.")] = Output.TABLE,
) -> None:
    """List the contexts, without their secrets."""
    stored = read_contexts()
    picked = pick("context", names or [], [*stored.contexts], lambda name: [name])
    current = os.environ.get(CONTEXT_VARIABLE, "") or stored.current
    lines = [_line(name, stored.contexts[name], current) for name in picked]
    show(output, lines, [CONTEXTS.lay_out(lines)])


def _line(name: str, context: ClusterContext, current: str) -> ContextLine:
    opens = {
        "token": context.token or context.token_file,
        "password": context.password_file,
        "certificate": context.cert,
        "authority": context.ca,
    }
    told = ", ".join(each for each, value in opens.items() if value)
    return ContextLine("*" if name == current else "", name, context.url, context.user, told)


def delete_context(name: _Name) -> None:
    """Forget a context; the files that it names stay."""
    stored = read_contexts()
    pick("context", [name], [*stored.contexts], lambda each: [each])
    rest = {each: kept for each, kept in stored.contexts.items() if each != name}
    current = "" if stored.current == name else stored.current
    write_contexts(ContextFile(current=current, contexts=rest))
    say(f"context {name} deleted")
    if not current and stored.current:
        say_aside("it was the current one: now verbs are for the node of a data folder")


def rename_context(
    name: _Name,
    new: Annotated[str, Argument(metavar="NEW", help="Its new name.")],
) -> None:
    """Give a context another name."""
    check_context_name(new)
    stored = read_contexts()
    pick("context", [name], [*stored.contexts], lambda each: [each])
    if new in stored.contexts:
        raise Misused(f"there is a context {new} already: delete it first, or choose another name")
    contexts = {new if each == name else each: kept for each, kept in stored.contexts.items()}
    current = new if stored.current == name else stored.current
    write_contexts(ContextFile(current=current, contexts=contexts))
    say(f"context {name} is {new} now")


VERBS: Final = {
    "set-context": set_context,
    "use-context": use_context,
    "current-context": current_context,
    "get-contexts": get_contexts,
    "rename-context": rename_context,
    "delete-context": delete_context,
    "remove-context": delete_context,
}
