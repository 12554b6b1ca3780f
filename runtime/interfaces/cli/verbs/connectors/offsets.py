"""The command `offsets`: get, set, reset and seek the source offsets of a connector."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, cast

from ....replies.node import Message
from ....replies.progress import (
    ConnectorOffset,
    ConnectorOffsets,
    Document,
    OffsetMove,
    OffsetsSought,
)
from ...adapters.parameters import Option
from ...output.layout import TableLayout
from ...output.printing import FactList, Failed, Misused, Section, Table, say, show
from ...requests.client import Client, find_client
from ...requests.files import read_json
from ...requests.grammar import CONNECTORS, split_words
from ...requests.names import OfConnectors, name_argument
from ...requests.options import RemoteOptions, RemoteReadOptions, with_options
from ...requests.resolving import find_connectors
from ...requests.selecting import Choice
from ...requests.several import for_each

STANDARD_INPUT: Final = Path("-")
OffsetsOfNamed = ConnectorOffsets | dict[str, ConnectorOffsets]
"""The offsets of a connector, or of several by name."""
OneConnector = Annotated[list[str], name_argument(CONNECTORS)]


@with_options(RemoteReadOptions)
@with_options(Choice)
def get(choice: Choice, options: RemoteReadOptions, words: OfConnectors = None) -> None:
    """List the offset of each source partition.

    `offsets set` accepts what -o json prints of one connector.
    """
    client, names = find_connectors(options, "offsets get", words, choice)
    offsets = fetch_offsets(client, names)
    show(options.output, offsets, tabulate_offsets(offsets))


def fetch_offsets(client: Client, names: Sequence[str]) -> OffsetsOfNamed:
    """Return the offsets of a connector, or of several by name."""
    found = {
        name: client.get(ConnectorOffsets, "connectors", name, "offsets")
        for name in dict.fromkeys(names)
    }
    return next(iter(found.values())) if len(found) == 1 else found


@with_options(RemoteOptions)
def set_offsets(
    options: RemoteOptions,
    words: OneConnector,
    *,
    file: Annotated[
        Path | None,
        Option(
            "--filename", "-f", metavar="FILE", help="JSON, as `offsets get -o json` prints it."
        ),
    ] = None,
    partition: Annotated[
        str | None, Option(metavar="JSON", help='One partition, {"path": "a.csv"}.')
    ] = None,
    offset: Annotated[
        str | None, Option(metavar="JSON", help="Its offset; null removes it.")
    ] = None,
) -> None:
    """Set offsets of a stopped connector: all offsets in a file, or one."""
    name, *more = split_words("offsets set", words, CONNECTORS).names
    if more:
        raise Misused("`fairlead offsets set` is of one connector: their partitions differ")
    if (file is None) == (partition is None) or (partition is None) != (offset is None):
        raise Misused("give either --filename, or --partition with --offset")
    body: object
    if file is not None:
        body = _offsets_in(_parsed(_read(file), str(file)))
    else:
        pair = {"partition": (partition, "--partition"), "offset": (offset, "--offset")}
        body = {"offsets": [{key: _parsed(*each) for key, each in pair.items()}]}
    say(find_client(options).patch(Message, "connectors", name, "offsets", body=body).message)


@with_options(RemoteOptions)
@with_options(Choice)
def reset(choice: Choice, options: RemoteOptions, words: OfConnectors = None) -> None:
    """Remove all offsets of stopped connectors: they then read their sources from the beginning."""
    client, names = find_connectors(options, "offsets reset", words, choice)

    def order(name: str) -> None:
        told = client.delete(Message, "connectors", name, "offsets")
        say(told.message if told else f"the offsets of {name} are reset")

    for_each(names, order)


def _complete_ends(_: Mapping[str, Any], word: str) -> list[str]:
    return [end for end in ("earliest", "latest") if end.startswith(word)]


@with_options(RemoteReadOptions)
@with_options(Choice)
def seek(
    choice: Choice,
    options: RemoteReadOptions,
    words: OfConnectors = None,
    *,
    to: Annotated[
        str,
        Option(
            metavar="PLACE",
            help="earliest, latest, or a time: 2026-01-01T00:00:00Z.",
            show_default=False,
            complete=_complete_ends,
        ),
    ],
    dry_run: Annotated[
        bool, Option("--dry-run", help="Only show which offsets would change.")
    ] = False,
) -> None:
    """Move the offsets of stopped connectors to an end of their sources, or to a time."""
    body = {"to": to, "dry_run": dry_run}
    client, names = find_connectors(options, "offsets seek", words, choice)
    seeks: dict[str, OffsetsSought] = {}

    def order(name: str) -> None:
        path = "connectors", name, "offsets", "seek"
        seeks[name] = client.post(OffsetsSought, *path, body=body)

    try:
        for_each(names, order)
    finally:
        if len(names) == 1:
            for each in seeks.values():
                show(options.output, each, tabulate_seek(each))
        elif seeks:  # what is refused hides nothing of the others
            tables = (tabulate_seek(each, f"Connector {name}") for name, each in seeks.items())
            show(options.output, seeks, [section for each in tables for section in each])


def tabulate_offsets(offsets: OffsetsOfNamed) -> list[Section]:
    """Return the table of each connector's offsets, and what is left to read."""
    if isinstance(offsets, ConnectorOffsets):
        return _tabulate_connector(offsets)
    if not offsets:
        return [Table((), (), "no connectors")]
    found = [_tabulate_connector(each, f"Connector {name}") for name, each in offsets.items()]
    return [section for sections in found for section in sections]


def _tabulate_connector(offsets: ConnectorOffsets, title: str = "") -> list[Section]:
    sections: list[Section] = [OFFSETS.lay_out(offsets.offsets, title)]
    if (lag := offsets.lag) is not None:
        unread = f"{lag.bytes} bytes" if lag.records is None else f"{lag.records} records"
        sections.append(FactList([("Left to read", f"{lag.ranges} ranges, {unread}")]))
    return sections


def tabulate_seek(seek: OffsetsSought, title: str = "") -> list[Section]:
    """Lay out the offsets that a seek changes, or would change."""
    moves = replace(CHANGES.lay_out(seek.first, title), empty=seek.message)
    if more := seek.partitions - len(seek.first):
        moves = replace(moves, rows=[*moves.rows, (f"and {more} more", "", "")])
    return [moves, FactList([("In all", seek.message)])] if moves.rows else [moves]


def format_document(document: Document | None) -> str:
    """Return a partition or an offset in one line; "" for None."""
    return "" if document is None else json.dumps(dict(document), ensure_ascii=False)


def _read(file: Path) -> str:
    try:
        return sys.stdin.read() if file == STANDARD_INPUT else file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Failed(f"{file} cannot be read: {error}") from None


def _offsets_in(found: object) -> object:
    """Return the body of a request, without the other fields of `get`."""
    if not isinstance(found, Mapping):
        return found
    members = cast("Mapping[str, object]", found)
    return {"offsets": members["offsets"]} if "offsets" in members else members


def _parsed(text: str | None, where: str) -> object:
    try:
        return read_json(text or "", where, as_texts=False)
    except (ValueError, RecursionError) as error:
        raise Misused(f"{where} is no JSON: {error}") from None


OFFSETS: Final = TableLayout(
    ConnectorOffset,
    "PARTITION: partition, OFFSET: offset",
    dict.fromkeys(("PARTITION", "OFFSET"), format_document),
    empty="no offsets",
)
CHANGES: Final = TableLayout(
    OffsetMove,
    "PARTITION: partition, FROM: before, TO: after",
    dict.fromkeys(("PARTITION", "FROM", "TO"), format_document),
)
VERBS: Final = {
    "get": get,
    "set": set_offsets,
    "reset": reset,
    "seek": seek,
}
"""The verbs of `fairlead offsets`."""
