"""The key of a record: what tells a fact from others of its kind, as values and as bytes.

As bytes a key is short enough for LMDB, and its first parts are a prefix of the whole, so that
all keys that begin with a connector's name can be scanned.
"""

import hashlib
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

from .model import CommitId, Document, identity

Key = tuple[str | int, ...]

LONGEST_PARTITION = 200
"""Bytes of a source partition that stand in a key; a digest tells the remainder."""


class KeyFields(NamedTuple):
    """The fields of a record that are its key: those of text, then those that are numbers.

    A field is given by its path, such as `token.generation`.
    """

    texts: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()

    def reader(self) -> Callable[[Any], Key]:
        """Return what reads the key of a record."""
        paths = self.texts + self.numbers
        if len(paths) == 1:
            read = attrgetter(paths[0])
            return lambda record: (read(record),)
        return attrgetter(*paths) if paths else lambda _: ()

    def parse(self, packed: bytes) -> Key:
        """Return the key that bytes spell; raises ValueError where they spell none of this form."""
        *parts, rest = packed.decode().split("\0")
        texts = len(self.texts)
        key: Key = (*parts[:texts], *map(int, parts[texts:]))
        if rest or len(key) != texts + len(self.numbers) or pack_key(key) != packed:
            raise ValueError(f"{packed!r} is no key of {', '.join(self.texts + self.numbers)}")
        return key


def pack_key(key: Key) -> bytes:
    """Return the bytes of a key, or the prefix of all keys that begin with these parts."""
    return b"".join(str(part).encode() + b"\0" for part in key)


def offset_key(connector: str, partition: Document) -> Key:
    """Return the key under which the offset of a source partition is kept."""
    return (connector, spell_partition(partition))


def commit_key(commit_id: CommitId) -> Key:
    """Return the key under which a batch is kept until it is published."""
    return (commit_id.connector, commit_id.task, *commit_id.token, commit_id.batch)


def spell_partition(partition: Document) -> str:
    """Return a source partition as keys spell it: short, and without the NUL that ends a part."""
    spelled = identity(partition).replace("\0", "\\0")
    packed = spelled.encode()
    if len(packed) <= LONGEST_PARTITION:
        return spelled
    digest = hashlib.blake2b(packed, digest_size=16).hexdigest()
    return packed[:LONGEST_PARTITION].decode(errors="ignore") + "#" + digest
