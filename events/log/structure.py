"""A log's data file looked at as bytes, before LMDB is let near it.

LMDB trusts its file: it dies by SIGBUS on one that was cut short and by SIGABRT on a bad page. What
is here only reads, so it may be run on any bytes.
"""
# pyright: basic

import struct
from pathlib import Path
from typing import Final

from lmdb import verify

from .errors import CorruptLogError

DATA_NAME: Final = "data.mdb"
PAGE_BYTES_MIN: Final = 512
PAGE_BYTES_MAX: Final = 64 << 10

# A meta page: its header, magic, version, two words, page size and 92 bytes more of the two root
# databases, then the last page's number and the transaction's.
_META: Final = struct.Struct("=16xII16xI92xQQ")
_MAGIC: Final = 0xBEEFC0DE
_HEAD: Final = struct.Struct("=Q2xHI")  # page number, flags, pages of an overflow extent
_OVERFLOW: Final = 0x04


def problems(path: Path) -> list[str]:
    """Return what is wrong with the pages of the log at `path`; it should not be written to."""
    try:
        found = verify.verify(str(path), subdir=True)  # type: ignore[no-untyped-call]
    except (verify.VerifyError, OSError, ValueError, struct.error) as error:
        found = [error]
    return [str(problem) for problem in found]


def data_bytes(path: Path) -> int:
    """Return the size of the data file, 0 if there is none."""
    try:
        return (path / DATA_NAME).stat().st_size
    except OSError:
        return 0


def check_not_cut(path: Path) -> None:
    """Raise `CorruptLogError` if the data file ends before the last page that it speaks of."""
    data = path / DATA_NAME
    size = data_bytes(path)
    if size == 0 or size >= _claimed_bytes(data):
        return
    # A last page that was taken and given back within one transaction is never written: a short
    # file may be sound, and only a walk over its pages can tell.
    found = _broken_extents(data) or problems(path)
    if found:
        raise CorruptLogError(
            f"{data} was cut short to {size} bytes ({found[0]}): nothing was changed; restore the"
            " newest backup and keep this file aside"
        )


def _claimed_bytes(data: Path) -> int:
    with data.open("rb") as file:
        head = file.read(PAGE_BYTES_MAX + _META.size)
    newest, claimed = -1, 0
    for start in (0, _page_bytes(head)):
        if len(head) < start + _META.size:
            continue
        magic, _, page_bytes, last_page, transaction = _META.unpack_from(head, start)
        if magic == _MAGIC and transaction > newest:
            newest, claimed = transaction, (last_page + 1) * page_bytes
    return claimed


def _broken_extents(data: Path) -> list[str]:
    """Return the values of several pages that begin in the file and end behind it.

    They are written in one piece, so one such proves a cut; `lmdb.verify` sees first pages only.
    """
    with data.open("rb") as file:
        page_bytes = _page_bytes(file.read(_META.size))
        pages = data.stat().st_size // page_bytes
        for page in range(pages - 1, 1, -1):
            file.seek(page * page_bytes)
            number, flags, length = _HEAD.unpack(file.read(_HEAD.size))
            if number == page and flags == _OVERFLOW and page + length > pages:
                return [f"the {length} pages from {page} on go beyond its end"]
    return []


def _page_bytes(head: bytes) -> int:
    if len(head) < _META.size:
        return PAGE_BYTES_MAX
    page_bytes = int(_META.unpack_from(head)[2])
    return page_bytes if PAGE_BYTES_MIN <= page_bytes <= PAGE_BYTES_MAX else 4096
