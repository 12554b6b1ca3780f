"""The csv dialect of a config: its keys, what they mean together, and the parsing of headers."""

import codecs
import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from .....actors.settings import Value
from ...spi.config import Importance, ParsedConfig, Width
from ...spi.errors import BadInput
from ...spi.keys.kinds import flag_key, list_key, text_key
from ..spark.options import COMMENT, ENCODING, NULL, SEPARATOR, SOURCE_OPTION, options_of
from .line_ends import CommentFilter

SOURCE_HEADER = "source.header"
SOURCE_SEPARATOR = "source.separator"
SOURCE_QUOTE = "source.quote"
SOURCE_ESCAPE = "source.escape"
SOURCE_TRIM = "source.trim"
SOURCE_ENCODING = "source.encoding"
SOURCE_NULLS = "source.null.values"

_AS_IT_IS: Final = frozenset({"utf-8", "ascii"})
"""Encodings whose texts are UTF-8 already."""


def _one_letter(value: Value) -> str | None:
    fits = isinstance(value, str) and (len(value) == 1 or value == "\\t")
    return None if fits else "must be one character, or \\t"


def _one_letter_or_none(value: Value) -> str | None:
    return None if value in ("", None) else _one_letter(value)


def _encoding(value: Value) -> str | None:
    try:
        "".encode(str(value))
    except (LookupError, ValueError):
        return "is an unknown encoding; known ones are UTF-8, UTF-16, ISO-8859-1, windows-1252"
    return None


CSV_KEYS = (
    flag_key(
        SOURCE_HEADER,
        "Whether each csv file begins with a line of column names, which must match the schema.",
        default=True,
    ),
    text_key(
        SOURCE_SEPARATOR,
        "The separator of columns in csv files: one character, or \\t.",
        ",",
        importance=Importance.LOW,
        validator=_one_letter,
        width=Width.SHORT,
    ),
    text_key(
        SOURCE_QUOTE,
        "The character that encloses csv values with separators or line breaks.",
        '"',
        importance=Importance.LOW,
        validator=_one_letter,
        width=Width.SHORT,
    ),
    text_key(
        SOURCE_ESCAPE,
        "The character before a quote within a quoted csv value, such as `\\`. "
        "Without it such a quote is doubled, as in RFC 4180.",
        "",
        importance=Importance.LOW,
        validator=_one_letter_or_none,
        width=Width.SHORT,
    ),
    flag_key(
        SOURCE_TRIM,
        "Whether to trim blanks around unquoted values and names in csv files.",
        default=False,
        importance=Importance.LOW,
    ),
    text_key(
        SOURCE_ENCODING,
        "The encoding of csv and json files. The task fails at bytes that are invalid in it, with "
        "an error that names the file and the position.",
        "UTF-8",
        validator=_encoding,
        recommended=("UTF-8", "UTF-16", "ISO-8859-1", "windows-1252"),
        width=Width.SHORT,
    ),
    list_key(
        SOURCE_NULLS,
        "The texts for null in csv files, beside an empty field: `NA`. "
        'More than one text is slower. `""` is an empty text, not null.',
        recommended=("NA", "NULL", "\\N"),
    ),
)
"""The keys of the dialect, and of the encoding of any text."""


@dataclass(frozen=True, slots=True)
class CsvStyle:
    """A csv dialect; the default is RFC 4180 in UTF-8, with a header.

    `escape` is the character before a quote within a value; empty: the quote is doubled. `nulls`
    are the texts for null, beside an empty field. Lines that begin with `comment` are ignored;
    empty: there are no comments.
    """

    header: bool = True
    separator: str = ","
    quote: str = '"'
    nulls: tuple[str, ...] = ()
    escape: str = ""
    trim: bool = False
    encoding: str = "UTF-8"
    comment: str = ""

    @classmethod
    def of(cls, settings: ParsedConfig, config: Mapping[str, str]) -> Self:
        """Return the dialect from the `source.*` keys and the options of Spark's reader."""
        options = options_of(SOURCE_OPTION, config)

        def option(key: str, *names: str) -> str:
            given = (options[name] for name in names if name in options)
            return next(given, settings.text(key)).replace("\\t", "\t")

        quote = option(SOURCE_QUOTE, "quote")
        escape = option(SOURCE_ESCAPE, "escape")
        return cls(
            header=option(SOURCE_HEADER, "header").lower() == "true",
            separator=option(SOURCE_SEPARATOR, *SEPARATOR),
            quote=quote,
            nulls=settings.items(SOURCE_NULLS) or tuple(filter(None, [options.get(NULL)])),
            escape="" if escape == quote else escape,
            trim=settings.flag(SOURCE_TRIM),
            encoding=option(SOURCE_ENCODING, *ENCODING),
            comment=options.get(COMMENT, "").replace("\0", ""),
        )

    @property
    def needs_copy(self) -> bool:
        """Whether files must be transcoded to UTF-8 for Spark."""
        return codecs.lookup(self.encoding).name not in _AS_IT_IS

    def comments(self) -> CommentFilter:
        """Return a filter of comment lines, for one text."""
        return CommentFilter(self.comment, self.separator, self.quote, self.escape)


def header_of(head: bytes, style: CsvStyle) -> tuple[str, ...]:
    """Parse the column names of a csv header; an empty name becomes Spark's name, `_c0`.

    Raises `BadInput` without the name of the file.
    """
    text = head.decode(errors="ignore")
    rows = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=style.separator,
        quotechar=style.quote or None,
        quoting=csv.QUOTE_MINIMAL if style.quote else csv.QUOTE_NONE,
        doublequote=not style.escape,
        escapechar=style.escape or None,
    )
    try:
        names = next((row for row in rows if row), list[str]())
    except csv.Error as error:
        raise BadInput(
            f"a name in its header has more than {csv.field_size_limit()} characters ({error}): "
            "nothing of it was read; shorten the name, or move the file away"
        ) from None
    stripped = (name.strip() if style.trim else name for name in names)
    return tuple(name or f"_c{number}" for number, name in enumerate(stripped))
