"""Secrets that a crew is given, and where they are to be found: nowhere in what it leaves."""

import json
from pathlib import Path
from urllib.parse import quote

from fairlead.events.log.space import LMDB_LOCK_NAME

ENV, FILE, SEALED = "En/v+S3cret_of_ours", "F1le S3cret/of & ours %", "Sea1ed=S3cret?"
"""Secrets: of the environment of all workers, of a file, of a config."""


def hold_secrets(folder: Path) -> list[Path]:
    """The files below a folder that hold a secret; some may vanish as they are looked for.

    LMDB's lock files are not looked into: to close one drops the locks that this process has on it
    as a reader of a log, and who owns the log then takes it for dead.
    """
    looked_at = (each for each in folder.rglob("*") if each.name != LMDB_LOCK_NAME)
    return [each for each in looked_at if each.is_file() and has_secret(_content(each))]


def has_secret(content: bytes) -> bool:
    """Tell whether a secret stands in it, however it is spelled."""
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
