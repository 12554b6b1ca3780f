"""The csv dialect of a config, and the parsing of headers."""

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
        """Return the dialect from the `source.*` keys and the options of Spark's reader.

        Raises `ConfigInvalid` for unsupported options, such as in a config of an older release.
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
