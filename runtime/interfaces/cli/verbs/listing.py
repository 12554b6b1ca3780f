"""The command `get`, which lists objects of one kind: all, or those that are named.

A kind is asked for and laid out by its `ListView`. The rows of its table and the objects in the
answer are the same in the same order: so what is selected and sorted by a column of the table, or
by a path into an object, is selected and sorted in all output formats. With --watch the list is
printed again when the answer is another one.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, NamedTuple

from msgspec import to_builtins

from ..adapters.parameters import Option
from ..output.lists import (
    FORMATS,
    ListFormat,
    ListOutput,
    add_columns,
    change_table,
    order_rows,
    parse_format,
    select_rows,
)
from ..output.paths import expand_template
from ..output.printing import Failed, Misused, Output, Section, Table, say, show, show_sections
from ..requests.client import Client, find_client
from ..requests.files import Recursive
from ..requests.grammar import Kind, NamedObjects, find_similar_kind, join_words, split_words
from ..requests.names import name_argument
from ..requests.options import RemoteOptions, with_options
from ..requests.plugins import fetch_all_plugins
from ..requests.resolving import choose_connectors, fetch_labels
from ..requests.selecting import Choice, NamedInFiles, Selector
from ..requests.several import AbsentError
from .lists import LISTED, LISTS, ListView

WATCH_SECONDS: Final = 1.0
OF_CONNECTORS: Final = (Kind.CONNECTOR, Kind.TASK, Kind.OFFSET)


def _complete_formats(_: object, incomplete: str) -> list[str]:
    return [each for each in FORMATS if each.startswith(incomplete)]


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The order, the labels and the output of a list."""

    selector: Selector = None
    files: NamedInFiles = None
    recursive: Recursive = False
    show_labels: Annotated[
        bool, Option("--show-labels", help="Of connectors and tasks: also all labels.")
    ] = False
    label_columns: Annotated[
        list[str] | None,
        Option(
            "--label-columns",
            "-L",
            metavar="LABEL",
            help="Of connectors and tasks: a column of this label; repeatable, or team,env.",
        ),
    ] = None
    field_selector: Annotated[
        str | None,
        Option(
            "--field-selector",
            metavar="FIELDS",
            help="Those with these values of columns or paths: state=FAILED,worker!=w1.",
        ),
    ] = None
    sort_by: Annotated[
        str | None,
        Option("--sort-by", metavar="COLUMN|PATH", help="STATE, or .status.connector.state."),
    ] = None
    no_headers: Annotated[bool, Option("--no-headers", help="Print no headings.")] = False
    ignore_not_found: Annotated[
        bool, Option("--ignore-not-found", help="A name that there is not is no failure.")
    ] = False
    output: Annotated[
        str,
        Option(
            "--output",
            "-o",
            metavar="FORMAT",
            help="table, wide, name, json, yaml, jsonpath=TEMPLATE or custom-columns=NAME:PATH.",
            complete=_complete_formats,
        ),
    ] = ListOutput.TABLE.value

    @property
    def choice(self) -> Choice:
        """The choice of connectors."""
        return Choice(selector=self.selector, files=self.files, recursive=self.recursive)

    @property
    def labels(self) -> list[str]:
        """The labels that have columns of their own."""
        return [each for text in self.label_columns or () for each in text.split(",")]


class ListRequest(NamedTuple):
    """A list that is asked for, and its form."""

    client: Client
    named: NamedObjects
    view: ListView[Any]
    options: ListOptions
    format: ListFormat


@with_options(RemoteOptions)
@with_options(ListOptions)
def get(
    listed: ListOptions,
    options: RemoteOptions,
    words: Annotated[
        list[str] | None,
        name_argument(
            LISTED,
            " to list, all without one; of tasks and offsets: of connectors",
            is_listing=True,
            may_be_all=True,
        ),
    ] = None,
    *,
    every: Annotated[
        bool,
        Option("--all", help="Of plugins: also converters, transforms and predicates."),
    ] = False,
    types: Annotated[
        list[str] | None,
        Option("--types", "-t", metavar="TYPE", help="Of plugins: source, sink, transformation …"),
    ] = None,
    watch: Annotated[
        bool, Option("--watch", "-w", help="Print it again when it changes, until Ctrl-C.")
    ] = False,
) -> None:
    """List connectors, tasks, workers and so on: all, or those that are named.

    With -o jsonpath or custom-columns a path leads into what -o json prints: `[*]` are all
    elements of a list, or all members, `.info.config.labels` a member of members.
    """
    if not words and not listed.files:
        kinds = join_words([each.plural for each in LISTED])
        raise Misused(f"say of what: `fairlead get connectors`; a kind is {kinds}")
    named = split_words("get", words or (), LISTED, may_be_all=True)
    view = LISTS[named.kind]
    if named.kind is not Kind.PLUGIN and (every or types):
        raise Misused("--all and --types are of plugins")
    if every or types:
        view = replace(view, fetch=_with_types(types or ()))
    _check(listed, named)
    named = named._replace(names=[*listed.choice.read_names(), *named.names])
    request = ListRequest(find_client(options), named, view, listed, parse_format(listed.output))
    last = _show_first(request)
    try:
        while watch:
            sys.stdout.flush()
            time.sleep(WATCH_SECONDS)
            last = _show(request, last)
    except KeyboardInterrupt:  # the normal end of `--watch`
        return


def _check(listed: ListOptions, named: NamedObjects) -> None:
    listed.choice.check(named.names)
    if listed.files and named.kind not in OF_CONNECTORS:
        raise Misused(f"files name connectors, not {named.kind.plural}")
    is_about_labels = listed.selector or listed.show_labels or listed.label_columns
    if is_about_labels and named.kind not in OF_CONNECTORS:
        raise Misused(f"labels are of connectors and their tasks, not of {named.kind.plural}")
    if (listed.show_labels or listed.label_columns) and named.kind is Kind.OFFSET:
        raise Misused("offsets have no columns of labels: --selector selects their connectors")


def _with_types(types: Sequence[str]) -> Any:  # noqa: ANN401  # as a `ListView` has it
    """Return what asks for all plugins of some types; of all types without one."""
    wanted = {each for text in types for each in text.lower().split(",")}

    def fetch(client: Client, names: Sequence[str]) -> Any:  # noqa: ANN401
        found = fetch_all_plugins(client, names)
        return [
            each for each in found if not wanted or wanted & {each.type, each.type.split(" ")[0]}
        ]

    return fetch


def _show_first(request: ListRequest) -> object:
    """Print the objects, and return them; a first name that may be meant as a kind is told."""
    named = request.named
    try:
        return _show(request, None)
    except AbsentError as error:
        if request.options.ignore_not_found:
            return None
        if named.is_told or not named.names:
            raise
        if named.names == ["all"]:
            raise Failed(f"{error}; `fairlead status` shows all that there is") from None
        meant = find_similar_kind(named.names[0], LISTED)
        kinds = join_words([each.plural for each in LISTED])
        hint = f"did you mean {meant}?" if meant else f"a kind is {kinds}"
        raise Failed(f"{error}; {hint}") from None


def _show(request: ListRequest, last: object) -> object:
    """Ask the cluster, print the objects unless they are the last ones, and return them."""
    objects = _fetch(request)
    if objects == last:
        return objects
    listing = _lay_out(request, objects)
    match request.format:
        case ListFormat(template=str(template)):
            sys.stdout.write(expand_template(template, listing.data))
        case ListFormat(columns=columns) if columns:
            cells = [[each.cell(row) for each in columns] for row in listing.rows]
            own = Table([each.heading for each in columns], cells)
            show_sections([replace(own, has_headings=not request.options.no_headers)])
        case ListFormat(ListOutput.NAME):
            for name in listing.names:
                say(name)
        case ListFormat(ListOutput.WIDE):
            show_sections([_uncut(each) for each in listing.sections])
        case _:
            show(Output(request.format.output.value), listing.data, listing.sections)
    return objects


def _fetch(request: ListRequest) -> Any:  # noqa: ANN401  # as a `ListView` has it
    names = request.named.names
    if request.options.selector is not None:
        names = choose_connectors(request.client, (), Choice(selector=request.options.selector))
        if not names:
            return [] if request.named.kind is Kind.TASK else {}
    while True:
        try:
            return request.view.fetch(request.client, names)
        except AbsentError as error:
            others = [each for each in names if each != error.name]
            if not request.options.ignore_not_found or others in ([], names):
                raise
            names = others


class Listing(NamedTuple):
    """The printed parts of some objects."""

    data: Any
    rows: list[Any]
    """The objects in `data`, in the order of the table."""
    sections: list[Section]
    names: Sequence[str]


def _lay_out(request: ListRequest, objects: Any) -> Listing:  # noqa: ANN401  # as a `ListView` has it
    """Return the objects as plain data and as tables, with labels and in the wanted order."""
    options, view = request.options, request.view
    data = to_builtins(objects)
    rows = view.list_rows(data)
    sections = [*view.sections(objects)]
    table = next((each for each in sections if isinstance(each, Table)), None)
    names = view.names(objects) if view.names else [row[0] for row in table.rows] if table else []
    if table is not None and (options.show_labels or options.labels):
        table = _with_labels(request, table, rows)
    if (options.sort_by is not None or options.field_selector is not None) and rows:
        whole = table if table is not None and len(table.rows) == len(rows) else None
        order = _arrange(options, rows, whole)
        names = [names[at] for at in order] if len(names) == len(rows) else names
        data, rows = _reorder(data, rows, order, view.member), [rows[at] for at in order]
        if whole is not None:
            table = replace(whole, rows=[whole.rows[at] for at in order])
    if table is not None:
        final = replace(table, has_headings=not options.no_headers)
        sections = change_table(sections, lambda _: final)
    return Listing(data, rows, sections, names)


def _with_labels(request: ListRequest, table: Table, rows: Sequence[Any]) -> Table:
    """Return a table of connectors or tasks with columns of their labels."""
    options, labels = request.options, fetch_labels(request.client)
    is_of_tasks = request.named.kind is Kind.TASK
    owners = [row["connector"] for row in rows] if is_of_tasks else [it[0] for it in table.rows]
    headings = [each.upper() for each in options.labels]
    cells = [[labels.get(each, {}).get(label, "") for label in options.labels] for each in owners]
    if options.show_labels:
        headings.append("LABELS")
        for each, more in zip(owners, cells, strict=True):
            more.append(",".join(f"{key}={value}" for key, value in labels.get(each, {}).items()))
    return add_columns(table, headings, cells)


def _arrange(options: ListOptions, rows: Sequence[Any], table: Table | None) -> list[int]:
    """Return which rows are listed, in their order."""
    order = [*range(len(rows))]
    if options.field_selector is not None:
        order = select_rows(options.field_selector, rows, table)
    if options.sort_by is not None:
        wanted = {*order}
        order = [at for at in order_rows(options.sort_by, rows, table) if at in wanted]
    return order


def _reorder(data: Any, rows: Sequence[Any], order: Sequence[int], member: str) -> Any:  # noqa: ANN401  # plain data
    """Return an answer with some of its objects, in another order."""
    if member:
        return {**data, member: _reorder(data[member], rows, order, "")}
    if isinstance(data, list):
        return [rows[at] for at in order]
    keys = [*data]
    return {keys[at]: data[keys[at]] for at in order} if len(keys) == len(rows) else data


def _uncut(section: Section) -> Section:
    return replace(section, brief=()) if isinstance(section, Table) else section
