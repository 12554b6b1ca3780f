"""Names and texts as SQL takes them, whatever is in them and however Spark reads backslashes."""

from typing import Final

NULL: Final = "NULL"


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
