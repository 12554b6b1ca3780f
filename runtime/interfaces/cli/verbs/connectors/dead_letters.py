"""The command `dead-letters`: the bad rows that a connector has kept, and their retry."""

import sys
from collections.abc import Iterator
from typing import Annotated, Final

from msgspec import to_builtins
from msgspec.structs import replace

from ....replies.connectors import DeadLetterInfo, DeadLetterList, DeadLetterRetry
from ...adapters.parameters import Argument, Option
from ...output.layout import TableLayout
from ...output.phrases import format_time
from ...output.printing import FactList, Misused, format_json, say, say_aside, show
from ...requests.client import Client, find_client
from ...requests.grammar import CONNECTORS, split_words
from ...requests.names import complete_names
from ...requests.options import RemoteReadOptions, with_options

RETRY: Final = "retry"
PAGE: Final = 1_000
"""How many letters a node answers with at most."""


@with_options(RemoteReadOptions)
def dead_letters(
    options: RemoteReadOptions,
    words: Annotated[
        list[str],
        Argument(
            metavar="[retry] [KIND] NAME",
            help="The name of a connector; `retry` retries its letters. KIND is connector.",
            complete=complete_names(CONNECTORS),
        ),
    ],
    *,
    limit: Annotated[
        int, Option("--limit", metavar="N", min=1, max=100_000, help="How many, the newest ones.")
    ] = 50,
    export: Annotated[
        bool, Option("--export", help="All of them, each as an object of JSON in a line.")
    ] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Of `retry`: only show the config that it would have.")
    ] = False,
) -> None:
    """List the dead letters of a connector, the newest first, or retry them.

    A letter has the reason, the place and the text of a bad row. They are read from the folder or
    topic of dead letters, by the node that is asked. `retry` makes a connector NAME-retry, which
    reads each letter once and writes as the first one does now.
    """
    if words[0] == RETRY and len(words) > 1:
        name = _one_of(split_words("dead-letters retry", words[1:], CONNECTORS).names)
        _retry(options, name, is_dry=dry_run)
        return
    name = _one_of(split_words("dead-letters", words, CONNECTORS).names)
    if dry_run:
        raise Misused("--dry-run is of `fairlead dead-letters retry NAME`")
    pages = _fetch_pages(find_client(options), name, None if export else limit)
    if export:
        for page in pages:
            for each in page.letters:
                say(format_json(to_builtins(each)))
            sys.stdout.flush()
        return
    *before, last = pages
    letters = [each for page in (*before, last) for each in page.letters]
    show(options.output, replace(last, letters=letters), [LETTERS.lay_out(letters)])
    if last.next is not None:
        say_aside(f"{last.where} has more: --limit {2 * limit}, or --export for all")


def _one_of(names: list[str]) -> str:
    """Return the only name; raises `Misused`."""
    if len(names) > 1:
        raise Misused("`fairlead dead-letters` is of one connector")
    return names[0]


def _retry(options: RemoteReadOptions, name: str, *, is_dry: bool) -> None:
    """Make the connector that retries letters, or show what it would be."""
    path = "connectors", name, "dead-letters", "retry"
    query = {"dry_run": "true"} if is_dry else {}
    answer = find_client(options).post(DeadLetterRetry, *path, **query)
    config = FactList(sorted(answer.config.items()), "Config")
    show(options.output, answer, [FactList((("Name", answer.name), ("Retries", name))), config])
    for each in answer.warnings:
        say_aside(f"warning: {answer.name}: {each}")
    if is_dry:
        say_aside("this was a dry run: nothing was made")
    else:
        does = "is made, and reads all letters" if answer.is_new else "goes on with new letters"
        say_aside(f"{answer.name} {does}; `fairlead describe {answer.name}` shows how far it is")


def _fetch_pages(client: Client, name: str, most: int | None) -> Iterator[DeadLetterList]:
    """Yield dead letters page by page, the newest first; None: all of them."""
    path, query = ("connectors", name, "dead-letters"), dict[str, str]()
    left = PAGE if most is None else most
    while True:
        page = client.get(DeadLetterList, *path, limit=str(min(PAGE, left)), **query)
        yield page
        left -= 0 if most is None else len(page.letters)
        if page.next is None or not left:
            return
        query = {"cursor": page.next}


LETTERS: Final = TableLayout(
    DeadLetterInfo,
    "TIME: time_ms, STAGE: stage, PLACE: place, REASON: reason, TEXT: raw",
    {"TIME": format_time},
    empty="no dead letters",
    folded=("REASON", "TEXT"),
)
