"""Quoting of names, texts and paths with any characters for Spark."""

from pathlib import Path
from typing import Final

NULL: Final = "NULL"
_GLOB: Final = frozenset("{}[]*?\\")


def quoted(name: str) -> str:
    """Return the quoted name of a column, a field or a table."""
    return f"`{name.replace('`', '``')}`"


def literal(text: str) -> str:
    """Return a text as an SQL literal."""
    if "'" in text or "\\" in text or not text.isprintable():
        return f"CAST(X'{text.encode().hex()}' AS STRING)"
    return f"'{text}'"


def refusal(*parts: str) -> str:
    """Return an expression that fails the job; its message is the concatenated expressions."""
    return f"raise_error(concat({', '.join(parts)}))"


def path_to_read(path: Path) -> str:
    """Return a path for a read, escaped so that Spark expands no glob pattern in it."""
    return "file:" + "".join("\\" + each if each in _GLOB else each for each in str(path))


def path_to_write(path: Path) -> str:
    """Return a path for a write, where Spark expands no glob patterns."""
    return f"file:{path}"
