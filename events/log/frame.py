"""The sealed frame: one entry of the log as bytes, and back (LOG.md §2).

A frame is `crc32(offset || body) || body`, the offset as 8 bytes and the checksum as 4, both big
endian, so that a frame that lies at the wrong offset is found out as well as a damaged one. The
body is the msgpack array `[type, version, key, timestamp_ms, value]`; the value nil says that
the key is deleted (a tombstone). A commit is the msgpack array `[length, epoch, timestamp_ms,
chain]`, the chain a blake2b-16 over the chain before it, the commit's header and the checksums of
its entries: nothing can be taken out of the log, or put into its past, unseen.
"""

import struct
from hashlib import blake2b
from typing import Annotated, Final, NamedTuple
from zlib import crc32

from msgspec import Meta, MsgspecError, Raw
from msgspec.msgpack import Decoder, Encoder

from .errors import CorruptLogError, InvalidEntryError

OFFSET: Final = struct.Struct(">Q")
CHECKSUM_BYTES: Final = 4
CHAIN_BYTES: Final = 16
FIRST_CHAIN: Final = bytes(CHAIN_BYTES)
KEY_BYTES_MAX: Final = 509  # LMDB's 511, less the type that the view puts in front
NUMBER_MAX: Final = 0xFFFF

_HEADER = struct.Struct(">QQQQ")
_NIL = b"\xc0"
_NOT_A_BODY = (MsgspecError, RecursionError)  # the latter for arrays in arrays in arrays
_pack_offset = OFFSET.pack
_encode = Encoder().encode
_Number = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
_Key = Annotated[bytes, Meta(max_length=KEY_BYTES_MAX)]
_decode_body = Decoder(tuple[_Number, _Number, _Key, int, Raw]).decode
_decode_commit = Decoder(tuple[int, int, int, bytes]).decode


class NewEntry(NamedTuple):
    """An entry to be appended; `value` is one msgpack value, None deletes the key."""

    type: int
    version: int
    """The version of the value's format."""
    key: bytes
    value: bytes | None


class Entry(NamedTuple):
    """An entry as it was read; `value` is its msgpack bytes, None for a tombstone."""

    offset: int
    type: int
    version: int
    """The version of the value's format."""
    key: bytes
    timestamp_ms: int
    value: bytes | None


class LogCommit(NamedTuple):
    """One append: its entries are `base` up to `end`; `chain` ties it to all before it."""

    base: int
    length: int
    """The number of entries."""
    epoch: int
    """The epoch of the owner that wrote it."""
    timestamp_ms: int
    chain: bytes

    @property
    def end(self) -> int:
        """The offset behind the last entry."""
        return self.base + self.length


def seal(packed_offset: bytes, entry: NewEntry, timestamp_ms: int) -> bytes:
    """Return the frame of an entry at an offset of 8 bytes.

    Raises `InvalidEntryError` if it could not be read back: the value is not exactly one msgpack
    value, or a field is out of range.
    """
    kind, version, key, value = entry
    try:
        body = _encode((kind, version, key, timestamp_ms, Raw(_NIL if value is None else value)))
        _decode_body(body)
    except (*_NOT_A_BODY, OverflowError) as error:
        raise InvalidEntryError(
            f"an entry of type {kind}, version {version} and a key of {len(key)} bytes cannot be"
            f" stored ({error}): types and versions go to {NUMBER_MAX}, keys to {KEY_BYTES_MAX}"
            " bytes, a value is one msgpack value; nothing was written"
        ) from error
    return crc32(packed_offset + body).to_bytes(CHECKSUM_BYTES) + body


def unseal(offset: int, frame: bytes) -> Entry:
    """Return the entry in a frame; raises `CorruptLogError` if it is damaged."""
    body = frame[CHECKSUM_BYTES:]
    if crc32(body, crc32(_pack_offset(offset))).to_bytes(CHECKSUM_BYTES) != frame[:CHECKSUM_BYTES]:
        raise CorruptLogError(f"the checksum of entry {offset} does not match its bytes")
    try:
        kind, version, key, timestamp_ms, raw = _decode_body(body)
    except _NOT_A_BODY as error:
        raise CorruptLogError(f"entry {offset} is no frame: {error}") from error
    value = bytes(raw)
    fields = (offset, kind, version, key, timestamp_ms, None if value == _NIL else value)
    return Entry._make(fields)


def next_chain(before: bytes, commit: LogCommit, checksums: bytes) -> bytes:
    """Return the chain of a commit from the chain before it and its entries' checksums."""
    header = _HEADER.pack(commit.base, commit.length, commit.epoch, commit.timestamp_ms)
    return blake2b(before + header + checksums, digest_size=CHAIN_BYTES).digest()


def pack_commit(commit: LogCommit) -> bytes:
    """Return a commit as bytes, without its base, which is its key."""
    return _encode(commit[1:])


def unpack_commit(base: int, packed: bytes) -> LogCommit:
    """Return the commit at a base offset; raises `CorruptLogError` if it is damaged."""
    try:
        commit = LogCommit(base, *_decode_commit(packed))
    except MsgspecError as error:
        raise CorruptLogError(f"the commit at offset {base} is damaged: {error}") from error
    if commit.length < 1 or len(commit.chain) != CHAIN_BYTES:
        raise CorruptLogError(f"the commit at offset {base} is damaged: {commit}")
    return commit
