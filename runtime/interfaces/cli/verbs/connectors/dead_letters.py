"""The command `dead-letters`: the bad rows that a connector has kept."""

import sys
from collections.abc import Iterator
from typing import Annotated, Final

from msgspec import to_builtins
from msgspec.structs import replace

from ....replies.connectors import DeadLetterInfo, DeadLetterList
from ...adapters.parameters import Option
from ...output.layout import TableLayout
from ...output.phrases import format_time
from ...output.printing import Misused, format_json, say, say_aside, show
from ...requests.client import Client, find_client
from ...requests.grammar import CONNECTORS, split_words
from ...requests.names import name_argument
from ...requests.options import RemoteReadOptions, with_options

PAGE: Final = 1_000
"""How many letters a node answers with at most."""


@with_options(RemoteReadOptions)
def dead_letters(
    options: RemoteReadOptions,
    words: Annotated[list[str], name_argument(CONNECTORS)],
    *,
    limit: Annotated[
        int, Option("--limit", metavar="N", min=1, max=100_000, help="How many, the newest ones.")
    ] = 50,
    export: Annotated[
        bool, Option("--export", help="All of them, each as an object of JSON in a line.")
    ] = False,
) -> None:
    """List the dead letters of a connector, the newest first: reason, place and text of bad rows.

    They are read from its folder or topic of dead letters, by the node that is asked.
    """
    name, *more = split_words("dead-letters", words, CONNECTORS).names
    if more:
        raise Misused("`fairlead dead-letters` is of one connector")
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
