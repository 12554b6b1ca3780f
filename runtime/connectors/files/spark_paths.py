"""Handing paths to Spark so that it takes them as they are."""

from pathlib import Path

_GLOB = frozenset("{}[]*?\\")


def literal(path: Path) -> str:
    """Return a path that Spark reads as one file or folder, whatever characters are in it."""
    return "file:" + "".join("\\" + each if each in _GLOB else each for each in str(path))


def target(path: Path) -> str:
    """Return a path that Spark writes to; there it expands nothing."""
    return f"file:{path}"
