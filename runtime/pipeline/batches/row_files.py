# pyright: basic
"""The file that a row comes from, as people know it, for bad rows."""

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column

COPIES: Final = ".fairlead-copies-"
"""What names of folders with copies of files begin with; they are gone when the batch is over."""


def path_of(uri: "Column") -> "Column":
    """Return the path in a URI of Spark."""
    plain = sf.url_decode(sf.replace(uri, sf.lit("+"), sf.lit("%2B")))
    return sf.regexp_replace(plain, "^file:(//)?", "")


def file_of_row() -> "Column":
    """Return the path of the file that a row comes from; null if there is none, or only a copy."""
    path = path_of(sf.input_file_name())
    return sf.when((path != "") & ~sf.contains(path, sf.lit(f"/{COPIES}")), path)
