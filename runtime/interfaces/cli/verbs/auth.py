"""The command `auth`: users, tokens and certificates of a node, and who one is oneself.

They are written to the data folder, also while no node runs on it; a running node reads them with
its next request. A password comes from the terminal or stdin, and a token is printed once: neither
is on a command line, which every user of a machine can read.
"""

import getpass
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ....security.followed_files import FileRefused
from ....security.proofs.entries import (
    AccessEntry,
    EntryKind,
    changing_entries,
    entries_path,
    flaw_in_name,
    read_entries,
)
from ....security.rights import Right, Role, parse_patterns
from ...replies.node import CallerDescription
from ..adapters.parameters import Argument, Ended, Option
from ..output.layout import TableLayout
from ..output.phrases import format_time
from ..output.printing import FactList, Failed, Misused, say, say_aside, show
from ..requests.client import Client, find_client
from ..requests.grammar import Kind, parse_task, split_words
from ..requests.names import name_argument
from ..requests.options import (
    LocalOptions,
    LocalReadOptions,
    RemoteOptions,
    RemoteReadOptions,
    with_options,
)
from ..requests.waiting import parse_duration

if TYPE_CHECKING:
    from ....config.load import Config

NO: Final = 1
DAY_MS: Final = 86_400_000
ORDERS_TO_WORKERS: Final = ("cordon", "uncordon", "drain", "expect", "remove")
RIGHT_OF: Final[Mapping[str, Right]] = {
    **{each.value: each for each in Right},
    **dict.fromkeys(
        (
            *("status", "get", "describe", "history", "explain", "events", "plan", "diff", "top"),
            *("wait", "logs", "dead-letters", "version", "cluster-info", "support-bundle"),
        ),
        Right.VIEW,
    ),
    **dict.fromkeys(
        ("pause", "resume", "stop", "restart", "offsets", "rebalance", "owner", *ORDERS_TO_WORKERS),
        Right.OPERATE,
    ),
    **dict.fromkeys(
        (
            *("create", "import", "sample", "apply", "patch", "edit", "scale", "delete"),
            *("rollout", "log-level", "group-config"),
        ),
        Right.ADMINISTER,
    ),
}
"""The right that a verb needs for all that it does, and the rights by their own names."""


def _complete_entries(values: Mapping[str, Any], incomplete: str) -> Iterator[str]:
    """Yield the names of users, tokens and certificates that begin so."""
    with suppress(Exception):  # a shell would show what is wrong in the middle of a line
        options = LocalOptions(**{each: values.get(each) for each in LocalOptions.__slots__})
        there = read_entries(entries_path(options.load_config().data_path)).by_name
        yield from (name for name in there if name.startswith(incomplete))


SUBJECTS: Final = (Kind.CONNECTOR, Kind.TASK, Kind.WORKER, Kind.GROUP)
"""The kinds that a right may be to."""
Name = Annotated[str, Argument(metavar="NAME")]
Names = Annotated[
    list[str],
    Argument(metavar="NAME...", help="As `auth list` shows them.", complete=_complete_entries),
]


class ShownEntry(Struct, frozen=True):
    """An entry without its secret."""

    name: str
    kind: EntryKind
    role: Role
    connectors: str
    owner: str
    created_ms: int
    expires_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntryOptions(LocalOptions):
    """The node of a new entry, and what the entry is for."""

    role: Annotated[
        Role, Option("--role", help="viewer reads; operator also pauses, restarts, drains.")
    ]
    connectors: Annotated[
        str,
        Option(
            "--connectors",
            metavar="PATTERN",
            help="Only connectors with such names, as 'orders-*,flights'; default: all.",
        ),
    ] = ""
    expires: Annotated[
        str | None,
        Option("--expires", metavar="TIME", help="When it ends: in 90d, 12h; default: never."),
    ] = None
    replace: Annotated[bool, Option("--replace", help="Replace one of the same name.")] = False

    def entry(self, kind: EntryKind, name: str, secret: str = "", owner: str = "") -> AccessEntry:
        """Return the entry; raises `Misused`."""
        now_ms = time.time_ns() // 1_000_000
        end_ms = None if self.expires is None else now_ms + _parse_length(self.expires)
        try:
            patterns = ",".join(parse_patterns(self.connectors))
        except ValueError as error:
            raise Misused(f"--connectors: {error}") from None
        if flaw := flaw_in_name(kind, name):
            raise Misused(f"{name!r} cannot be the name of a {kind}: {flaw}")
        return AccessEntry(name, kind, self.role, secret, patterns, owner, now_ms, end_ms)


@with_options(NewEntryOptions)
def add_user(options: NewEntryOptions, name: Name) -> None:
    """Add a user with a password, which is asked for, or read from stdin."""
    from ....security.proofs.passwords import hash_password  # noqa: PLC0415  # loads cryptography

    entry = options.entry(EntryKind.USER, name)
    _add(options, replace(entry, secret=hash_password(_read_password())))


@with_options(NewEntryOptions)
def add_token(
    options: NewEntryOptions,
    name: Name,
    owner: Annotated[
        str | None, Option("--owner", metavar="USER", help="Who uses it; default: you.")
    ] = None,
) -> None:
    """Add a token, and print it: this once, on stdout."""
    from ....security.proofs.passwords import digest_token, make_token  # noqa: PLC0415

    owner, token = getpass.getuser() if owner is None else owner, make_token()
    if owner and (flaw := flaw_in_name(EntryKind.USER, owner)):
        raise Misused(f"--owner {owner!r}: {flaw}")
    _add(options, options.entry(EntryKind.TOKEN, name, digest_token(token), owner))
    say(token)


@with_options(NewEntryOptions)
def add_certificate(
    options: NewEntryOptions, subject: Annotated[str, Argument(metavar="SUBJECT")]
) -> None:
    """Add the holder of a certificate: by its whole subject (RFC 4514), or its common name."""
    _add(options, options.entry(EntryKind.CERTIFICATE, subject))


@with_options(LocalReadOptions)
def list_entries(options: LocalReadOptions) -> None:
    """List users, tokens and certificates, without their secrets."""
    path = entries_path(options.load_config().data_path)
    try:
        entries = read_entries(path).by_name
    except FileRefused as error:
        raise Failed(str(error)) from None
    shown = [
        ShownEntry(e.name, e.kind, e.role, e.connectors, e.owner, e.created_ms, e.expires_ms)
        for e in entries.values()
    ]
    show(options.output, shown, [ENTRIES.lay_out(shown)])


@with_options(LocalOptions)
def revoke(options: LocalOptions, names: Names) -> None:
    """Remove users, tokens and certificates: they count no more from the next request on."""
    try:
        with changing_entries(options.load_config().data_path) as entries:
            if unknown := [each for each in names if each not in entries]:
                there = ", ".join(entries) or "none"
                raise Failed(
                    f"there is no {', '.join(unknown)}: nothing was revoked; there is: {there}"
                )
            for each in dict.fromkeys(names):
                del entries[each]
    except FileRefused as error:
        raise Failed(str(error)) from None
    say(f"revoked: {', '.join(dict.fromkeys(names))}")


@with_options(RemoteReadOptions)
def whoami(options: RemoteReadOptions) -> None:
    """Show who the cluster takes you for, and what you may do there."""
    caller = find_client(options).get(CallerDescription, "whoami")
    facts = [
        ("Name", caller.name),
        ("By", caller.authentication),
        ("May", "; ".join(_phrases_of(caller))),
    ]
    show(options.output, caller, [FactList(facts)])


@with_options(RemoteOptions)
def can_i(
    options: RemoteOptions,
    verb: Annotated[
        str,
        Argument(
            metavar="VERB",
            help="A verb of this program, as pause or delete; or view, operate, administer.",
            complete=lambda _, word: [each for each in RIGHT_OF if each.startswith(word)],
        ),
    ],
    words: Annotated[
        list[str] | None,
        name_argument(SUBJECTS, "; without one, the whole node", may_be_all=True),
    ] = None,
) -> None:
    """Say whether you may do something, with connectors or the whole node; exit 1 if not."""
    right = RIGHT_OF.get(verb)
    if right is None:
        raise Misused(f"{verb!r} is none of {', '.join(RIGHT_OF)}")
    kinds = (Kind.WORKER, *SUBJECTS) if verb in ORDERS_TO_WORKERS else SUBJECTS
    kind, names, _ = split_words(f"auth can-i {verb}", words or (), kinds, may_be_all=True)
    client = find_client(options)
    may = all(right.value in _rights_to(client, kind, each) for each in names or [""])
    say("yes" if may else "no")
    if not may:
        raise Ended(NO)


def _rights_to(client: Client, kind: Kind, name: str) -> list[str]:
    """Return the rights of the caller to a connector, or to the node, which has the workers."""
    if not name or kind in {Kind.WORKER, Kind.GROUP}:
        return client.get(CallerDescription, "whoami").node
    task = parse_task(name) if kind is Kind.TASK else None
    connector = task.connector if task else name
    return client.get(CallerDescription, "whoami", connector=connector).connector


def _phrases_of(caller: CallerDescription) -> Iterator[str]:
    for each in caller.grants:
        which = f"connectors {', '.join(each.connectors)}" if each.connectors else "everything"
        yield f"{', '.join(each.rights)} {which}"


def _parse_length(expires: str) -> int:
    """Parse a time such as 90d or 12h, in milliseconds; raises `Misused`."""
    days = expires.strip().removesuffix("d")
    is_days = days != expires.strip() and days.isdecimal() and len(days) < len("100000")
    return int(days) * DAY_MS if is_days else parse_duration(expires)


def _add(options: NewEntryOptions, entry: AccessEntry) -> None:
    """Add an entry to the file of a data folder, and say so on stderr; raises `Failed`."""
    config = options.load_config()
    try:
        with changing_entries(config.data_path) as entries:
            if entry.name in entries and not options.replace:
                raise Failed(
                    f"there is a {entries[entry.name].kind} {entry.name} already, which stays as it"
                    " is: --replace replaces it, and with `fairlead auth revoke` it ends"
                )
            entries[entry.name] = entry
    except FileRefused as error:
        raise Failed(f"nothing was added: {error}") from None
    which = f"connectors {entry.connectors}" if entry.connectors else "all connectors"
    say_aside(f"{entry.kind} {entry.name} is {entry.role} of {which} from now on")
    _tell_unasked(config, entry.kind)


def _tell_unasked(config: "Config", kind: EntryKind) -> None:
    """Say that the node does not ask for what was added, if its settings say so."""
    words = {EntryKind.USER: "basic", EntryKind.TOKEN: "token", EntryKind.CERTIFICATE: "mtls"}
    if words[kind] not in config.access().authentication:
        say_aside(
            f"rest.authentication is {config.rest_authentication} here: with {words[kind]} among"
            " its words the node asks for it"
        )


def _read_password() -> str:
    """Return a new password; raises `Failed`."""
    from ....security.proofs.passwords import LONGEST_PASSWORD, SHORTEST_PASSWORD  # noqa: PLC0415

    if sys.stdin.isatty():
        password = getpass.getpass("Password: ")
        if getpass.getpass("Once more: ") != password:
            raise Failed("the two passwords differ: nothing was added")
    else:
        password = sys.stdin.readline().removesuffix("\n")
    if not len(password) >= SHORTEST_PASSWORD or len(password.encode()) > LONGEST_PASSWORD:
        raise Failed(
            f"a password has at least {SHORTEST_PASSWORD} characters, and at most"
            f" {LONGEST_PASSWORD} bytes: nothing was added"
        )
    return password


ENTRIES: Final = TableLayout(
    ShownEntry,
    "NAME: name, KIND: kind, ROLE: role, CONNECTORS: connectors, OWNER: owner, EXPIRES: expires_ms",
    {"EXPIRES": format_time},
    empty="no users, tokens or certificates: `fairlead auth user add NAME --role admin`",
)
VERBS: Final = {
    "user": {"add": add_user},
    "token": {"add": add_token},
    "certificate": {"add": add_certificate},
    "list": list_entries,
    "revoke": revoke,
    "whoami": whoami,
    "can-i": can_i,
}
"""The verbs of `fairlead auth`."""
