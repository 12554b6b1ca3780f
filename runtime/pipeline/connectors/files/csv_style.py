"""How csv files are written, by the keys and options of a config, and what their headers say."""

import codecs
import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from ...spi.config import ConfigInvalid, ParsedConfig
from ...spi.errors import BadInput
from . import keys
from .line_ends import CommentFilter
from .options import COMMENT, ENCODING, NULL, SEPARATOR, flaws_in_reading, options_of

_AS_IT_IS: Final = frozenset({"utf-8", "ascii"})


@dataclass(frozen=True, slots=True)
class CsvStyle:
    """How text is written; the default is RFC 4180 in UTF-8, with a header.

    `escape` is the letter before a quote that is part of a value; empty: such a quote is
    doubled. `nulls` are what stands for no value beside nothing at all. A line that begins with
    `comment` is none; empty: there are no such lines.
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
        """Return how text is written, as the keys or the options of Spark's reader say.

        Raises `ConfigInvalid` for options that cannot be followed, if they were not known before.
        """
        for key, flaw in flaws_in_reading(config).items():
            raise ConfigInvalid(f"{key}: {flaw}")
        options = options_of(keys.SOURCE_OPTION, config)

        def option(key: str, *names: str) -> str:
            given = (options[name] for name in names if name in options)
            return next(given, settings.text(key)).replace("\\t", "\t")

        quote = option(keys.SOURCE_QUOTE, "quote")
        escape = option(keys.SOURCE_ESCAPE, "escape")
        return cls(
            header=option(keys.SOURCE_HEADER, "header").lower() == "true",
            separator=option(keys.SOURCE_SEPARATOR, *SEPARATOR),
            quote=quote,
            nulls=settings.items(keys.SOURCE_NULLS) or tuple(filter(None, [options.get(NULL)])),
            escape="" if escape == quote else escape,
            trim=settings.flag(keys.SOURCE_TRIM),
            encoding=option(keys.SOURCE_ENCODING, *ENCODING),
            comment=options.get(COMMENT, "").replace("\0", ""),
        )

    @property
    def needs_copy(self) -> bool:
        """Whether files are of an encoding that Spark does not read."""
        return codecs.lookup(self.encoding).name not in _AS_IT_IS

    def comments(self) -> CommentFilter:
        """Return what leaves out lines that are comments, of one text."""
        return CommentFilter(self.comment, self.separator, self.quote, self.escape)


def header_of(head: bytes, style: CsvStyle) -> tuple[str, ...]:
    """Return the names in the first line of a csv; a nameless column has Spark's name, `_c0`.

    Raises `BadInput`, which does not name the file.
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
            f"no name in its header may have more than {csv.field_size_limit()} letters, and one "
            f"has ({error}): nothing of it was read; shorten the name, or move the file away"
        ) from None
    stripped = (name.strip() if style.trim else name for name in names)
    return tuple(name or f"_c{number}" for number, name in enumerate(stripped))
