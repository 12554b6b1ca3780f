"""The bytes on disk are promises: they are spelled out here, and read by two libraries."""

import hashlib
import zlib

import pytest

from fairlead.events.log.errors import CorruptLogError, InvalidEntryError
from fairlead.events.log.frame import (
    KEY_BYTES_MAX,
    OFFSET,
    Entry,
    LogCommit,
    NewEntry,
    next_chain,
    pack_commit,
    seal,
    unpack_commit,
    unseal,
)
from fairlead_tests.log.samples import TIME_MS, packed, unpacked

at = OFFSET.pack
ENTRY = NewEntry(5, 1, b"W1", packed({"epoch": 3}))
GOLDEN = bytes.fromhex("6c9c94f1 95 05 01 c4025731 cf0000018bcfe56800 81a565706f636803")


def test_a_frame_has_these_bytes() -> None:
    assert seal(at(7), ENTRY, TIME_MS).hex() == GOLDEN.hex()
    assert unseal(7, GOLDEN) == Entry(7, 5, 1, b"W1", TIME_MS, ENTRY.value)


@pytest.mark.parametrize(
    "value", [{}, {"a": [1, -1, 2**63, 1.5, None, True, "ü", b"\0"]}, "", 0, ["x" * 70_000]]
)
def test_msgpack_writes_and_reads_the_same_frames(value: object) -> None:
    body = packed([17, 2, b"key", TIME_MS, value])
    checksum = zlib.crc32((99).to_bytes(8) + body).to_bytes(4)
    entry = NewEntry(17, 2, b"key", packed(value))
    assert seal(at(99), entry, TIME_MS) == checksum + body
    assert unseal(99, checksum + body) == Entry(99, 17, 2, b"key", TIME_MS, packed(value))
    assert unpacked(seal(at(99), entry, TIME_MS)[4:]) == [17, 2, b"key", TIME_MS, value]


def test_nil_is_a_tombstone() -> None:
    frame = seal(at(0), NewEntry(5, 1, b"W1", None), TIME_MS)
    assert unpacked(frame[4:]) == [5, 1, b"W1", TIME_MS, None]
    assert unseal(0, frame) == Entry(0, 5, 1, b"W1", TIME_MS, None)


def test_a_commit_is_the_same_for_both_libraries() -> None:
    commit = LogCommit(40, 2, 3, TIME_MS, bytes(range(16)))
    assert pack_commit(commit) == packed([2, 3, TIME_MS, bytes(range(16))])
    assert unpack_commit(40, pack_commit(commit)) == commit
    header = b"".join(number.to_bytes(8) for number in (40, 2, 3, TIME_MS))
    chain = hashlib.blake2b(b"before" + header + b"checksums", digest_size=16).digest()
    assert next_chain(b"before", commit, b"checksums") == chain


@pytest.mark.parametrize("position", range(len(GOLDEN)))
def test_a_frame_with_one_flipped_bit_is_corrupt(position: int) -> None:
    damaged = bytearray(GOLDEN)
    damaged[position] ^= 1 << position % 8
    with pytest.raises(CorruptLogError, match="entry 7"):
        unseal(7, bytes(damaged))


def test_a_frame_at_another_offset_is_corrupt() -> None:
    with pytest.raises(CorruptLogError):
        unseal(8, GOLDEN)


@pytest.mark.parametrize(
    "body", [b"", b"\xc1", b"\x95\x05", b"\xdd\xff\xff\xff\xff", b"\x91" * 100_000, b"\x95\x05\x01"]
)
def test_a_sound_checksum_over_nonsense_is_corrupt(body: bytes) -> None:
    checksum = zlib.crc32((7).to_bytes(8) + body).to_bytes(4)
    with pytest.raises(CorruptLogError):
        unseal(7, checksum + body)


@pytest.mark.parametrize(
    "entry",
    [
        NewEntry(-1, 1, b"", b"\x00"),
        NewEntry(1 << 16, 1, b"", b"\x00"),
        NewEntry(1, -1, b"", b"\x00"),
        NewEntry(1, 1, bytes(KEY_BYTES_MAX + 1), b"\x00"),
        NewEntry(1, 1, b"", b""),
        NewEntry(1, 1, b"", b"\x00\x00"),
        NewEntry(1, 1, b"", b"\x81\x00"),
        NewEntry(1, 1, b"", b"\x91" * 100_000),
    ],
)
def test_what_could_not_be_read_back_is_refused(entry: NewEntry) -> None:
    with pytest.raises(InvalidEntryError, match="nothing was written"):
        seal(at(0), entry, TIME_MS)
