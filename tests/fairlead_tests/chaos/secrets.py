"""Secrets of a crew, and a search for leaks of them in all files of the crew."""

import json
from pathlib import Path
from urllib.parse import quote

from fairlead.events.log.space import LMDB_LOCK_NAME

ENV, FILE, SEALED = "En/v+S3cret_of_ours", "F1le S3cret/of & ours %", "Sea1ed=S3cret?"
"""Secrets in the environment of all workers, in a file, and in a config."""


def hold_secrets(folder: Path) -> list[Path]:
    """Return the files below a folder that contain a secret; files may vanish meanwhile.

    LMDB's lock files are skipped: closing one would release the locks of this process as a reader
    of the log, which the owner of the log would take for dead.
    """
    looked_at = (each for each in folder.rglob("*") if each.name != LMDB_LOCK_NAME)
    return [each for each in looked_at if each.is_file() and has_secret(_content(each))]


def has_secret(content: bytes) -> bool:
    """Return whether a text contains a secret, in any spelling."""
    spelled = [
        spelling
        for each in (ENV, FILE, SEALED)
        for spelling in (each, quote(each), json.dumps(each)[1:-1], repr(each)[1:-1])
    ]
    return any(each.encode() in content for each in spelled)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
