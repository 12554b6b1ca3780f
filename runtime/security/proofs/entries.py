"""The file of users, tokens and certificates: `run/access.json` in a data folder.

It is replaced as a whole, so that a reader sees the file before a change or after it, and followed
as all files of who may do what (`followed_files`). Of passwords it holds an Argon2id hash, of
tokens (256 random bits) their SHA-256.
"""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from ....events.log.files import make_directory
from ...cluster.node_files import write_private
from ..followed_files import FollowedFiles, locked, parse_owned
from ..rights import Access, Role, parse_patterns

FILE: Final = "access.json"
_VERSION: Final = 1
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+-]{0,127}")
LONGEST_SUBJECT: Final = 512
"""The longest name of a certificate's subject, in characters."""


class EntryKind(StrEnum):
    """How the holder of an entry proves who they are."""

    USER = "user"
    """By a password."""
    TOKEN = "token"  # noqa: S105  # a word
    CERTIFICATE = "certificate"
    """By the subject of a certificate that a truststore's authority has signed."""


class AccessEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A user, a token or a certificate, and its role."""

    name: str
    """Unique among all entries."""
    kind: EntryKind
    role: Role
    secret: str = ""
    """The PHC string of a password, or the hexadecimal SHA-256 of a token."""
    connectors: str = ""
    """Patterns of connector names, with commas; empty: all."""
    owner: str = ""
    """Who uses a token."""
    created_ms: Annotated[int, Meta(ge=0)] = 0
    expires_ms: Annotated[int, Meta(ge=0)] | None = None

    @property
    def access(self) -> Access:
        """The rights of its holder."""
        return Access.of(self.role, parse_patterns(self.connectors))

    @property
    def label(self) -> str:
        """How its holder is called in the log: `ann`, `ann (token ci)`."""
        if self.kind is EntryKind.TOKEN:
            return f"{self.owner} (token {self.name})" if self.owner else f"token {self.name}"
        return self.name

    def is_expired(self, now_ms: int) -> bool:
        """Return whether it does not count any more."""
        return self.expires_ms is not None and self.expires_ms <= now_ms


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file."""

    version: int
    entries: list[AccessEntry]


class AccessEntries:
    """The entries of a file at one time."""

    def __init__(self, entries: Mapping[str, AccessEntry]) -> None:
        self.by_name = entries
        self.by_token = {
            each.secret: each for each in entries.values() if each.kind is EntryKind.TOKEN
        }
        """The tokens by their digest."""

    def find(self, kind: EntryKind, name: str) -> AccessEntry | None:
        """Return the entry of a kind with this name."""
        entry = self.by_name.get(name)
        return entry if entry is not None and entry.kind is kind else None


NOBODY: Final = AccessEntries({})


def entries_path(data_dir: Path) -> Path:
    """Return the file of a data folder."""
    return data_dir / "run" / FILE


def follow_entries(data_dir: Path) -> FollowedFiles[AccessEntries]:
    """Return the entries of a data folder, which are nobody's until the file can be used."""
    path = entries_path(data_dir)
    return FollowedFiles([path], partial(read_entries, path), NOBODY)


def read_entries(path: Path) -> AccessEntries:
    """Read a file of entries, none if it is missing; raises `FileRefused`."""
    return parse_owned(path, _parse, is_secret=True, missing=NOBODY)


def _parse(text: str) -> AccessEntries:
    """Parse the content of a file; raises `ValueError`."""
    try:
        document = msgspec.json.decode(text, type=_Document)
        flaw = _flaw_in(document)
    except (ValueError, RecursionError) as error:
        raise _damaged(str(error)) from None
    if flaw:
        raise _damaged(flaw)
    return AccessEntries({each.name: each for each in document.entries})


def _damaged(flaw: str) -> ValueError:
    return ValueError(
        f"it is no file of users and tokens ({flaw}): put it back from a backup, or remove it and"
        " add them again with `fairlead auth`"
    )


@contextmanager
def changing_entries(data_dir: Path) -> Generator[dict[str, AccessEntry]]:
    """Lock the file for the context; the entries in the dictionary replace it at its end.

    An exception in the context leaves it as it is. Raises `FileRefused`, `OSError`.
    """
    path = entries_path(data_dir)
    make_directory(data_dir.parent, mode=0o777)
    make_directory(path.parent)
    with locked(path):
        entries = dict(read_entries(path).by_name)
        yield entries
        document = _Document(_VERSION, list(entries.values()))
        content = msgspec.json.format(msgspec.json.encode(document), indent=1)
        write_private(path, content, is_durable=True)


def _flaw_in(document: _Document) -> str:
    """Return what is wrong with the entries of a file; "" if nothing is."""
    if document.version != _VERSION:
        return f"its version is {document.version}, this release knows {_VERSION}"
    if len({each.name for each in document.entries}) < len(document.entries):
        return "two entries have the same name"
    for number, each in enumerate(document.entries):
        flaw = _flaw_in_entry(each)
        if flaw:
            return f"entry {number}: {flaw}"
    return ""


_SECRETS: Final[Mapping[EntryKind, re.Pattern[str]]] = {
    EntryKind.USER: re.compile(
        r"\$argon2id\$v=19\$m=\d{1,7},t=\d{1,2},p=\d{1,2}\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+"
    ),
    EntryKind.TOKEN: re.compile("[0-9a-f]{64}"),
    EntryKind.CERTIFICATE: re.compile(""),
}


def _flaw_in_entry(entry: AccessEntry) -> str:
    if not _SECRETS[entry.kind].fullmatch(entry.secret):
        return f"its secret is not that of a {entry.kind}"
    with suppress(ValueError):
        parse_patterns(entry.connectors)
        return flaw_in_name(entry.kind, entry.name)
    return "its patterns of connector names are malformed"


def flaw_in_name(kind: EntryKind, name: str) -> str:
    """Return why no entry may have a name; "" if it may."""
    if kind is EntryKind.CERTIFICATE:
        is_fine = 0 < len(name) <= LONGEST_SUBJECT and name.isprintable()
        return "" if is_fine else "it is no subject of a certificate"
    return "" if NAME.fullmatch(name) else "a name has letters, digits and . _ @ + - only"
