"""Names, texts and paths as Spark takes them, whatever is in them."""

from pathlib import Path
from typing import Final

NULL: Final = "NULL"
_GLOB: Final = frozenset("{}[]*?\\")


def quoted(name: str) -> str:
    """Return the name of a column, a field or a table."""
    return f"`{name.replace('`', '``')}`"


def literal(text: str) -> str:
    """Return a text as a literal."""
    if "'" in text or "\\" in text or not text.isprintable():
        return f"CAST(X'{text.encode().hex()}' AS STRING)"
    return f"'{text}'"


def refusal(*parts: str) -> str:
    """Return the expression that ends the job with a message, which expressions make up."""
    return f"raise_error(concat({', '.join(parts)}))"


def path_to_read(path: Path) -> str:
    """Return a path that Spark reads as one file or folder."""
    return "file:" + "".join("\\" + each if each in _GLOB else each for each in str(path))


def path_to_write(path: Path) -> str:
    """Return a path that Spark writes to; there it expands nothing."""
    return f"file:{path}"
