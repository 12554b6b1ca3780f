"""The options of Spark's readers and writers that a config may set, each with why it may.

The author of a config is not the node's operator, so this is a list of what is taken, by format. An
option that is not on it may reach Hadoop's settings, with which a path leads elsewhere and classes
are loaded, may leave rows out, or come with a later Spark. Names are here in lower case.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from ...spi.config import has_reference, strip_prefix

SOURCE_OPTION: Final = "source.option."
SINK_OPTION: Final = "sink.option."
"""What the keys of such options begin with."""
ENCODING: Final = ("encoding", "charset")
SEPARATOR: Final = ("sep", "delimiter")
COMMENT: Final = "comment"
NULL: Final = "nullvalue"
LINE_END: Final = "linesep"
_FOUND_OUT: Final = frozenset({COMMENT, LINE_END, "multiline"})
"""Options that the scan of each csv file replaces."""

_SHAPE: Final = "only how a text is cut into values; the scan of each file follows it"
_VALUES: Final = "only how a value is written as text; one that does not fit is an error"
_NAMES: Final = "only which columns a reader takes; the scan of each file follows it"
_NOTHING: Final = "no effect: the columns and their types are known before Spark reads"
_LENIENT: Final = "only what counts as JSON; the columns are found with it"
_BOUNDED: Final = "only the largest row that is taken, up to a maximum"
_OLD_DATES: Final = "what days before 1582 mean in files of old writers, which do not say so"
_PACKED: Final = "only how files are packed, by a short name; a class is not taken"
_LAYOUT: Final = "only how a parquet file is laid out, up to a maximum"
_PARTS: Final = "only into how many files rows are cut; all of them are named in the manifest"

_TEXTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("charset", "encoding", "linesep"), _SHAPE),
    **dict.fromkeys(
        (
            "dateformat",
            "enabledatetimeparsingfallback",
            "locale",
            "timeformat",
            "timestampformat",
            "timestampntzformat",
            "timezone",
        ),
        _VALUES,
    ),
}
_CSV: Final[Mapping[str, str]] = {
    **_TEXTS,
    **dict.fromkeys(
        (
            "chartoescapequoteescaping",
            "comment",
            "delimiter",
            "escape",
            "header",
            "ignoreleadingwhitespace",
            "ignoretrailingwhitespace",
            "quote",
            "sep",
            "unescapedquotehandling",
        ),
        _SHAPE,
    ),
    **dict.fromkeys(("emptyvalue", "nanvalue", "negativeinf", "nullvalue", "positiveinf"), _VALUES),
}
_READ: Final[Mapping[str, str]] = {
    **dict.fromkeys(("columnnameofcorruptrecord", "mode"), _NAMES),
    # Those that leave files out have messages of their own.
    **dict.fromkeys(("ignorecorruptfiles", "ignoremissingfiles"), _NOTHING),
    **dict.fromkeys(("inferschema", "mergeschema", "preferdate", "samplingratio"), _NOTHING),
}
READING: Final[Mapping[str, Mapping[str, str]]] = {
    "csv": {
        **_READ,
        **_CSV,
        **dict.fromkeys(("columnpruning", "enforceschema"), _NAMES),
        "multiline": _SHAPE,
        **dict.fromkeys(("maxcharspercolumn", "maxcolumns"), _BOUNDED),
    },
    "json": {
        **_READ,
        **_TEXTS,
        "multiline": _SHAPE,
        **dict.fromkeys(
            (
                "allowbackslashescapinganycharacter",
                "allowcomments",
                "allownonnumericnumbers",
                "allownumericleadingzeros",
                "allowsinglequotes",
                "allowunquotedcontrolchars",
                "allowunquotedfieldnames",
                "dropfieldifallnull",
                "infertimestamp",
                "prefersdecimal",
                "primitivesasstring",
            ),
            _LENIENT,
        ),
    },
    "parquet": {**_READ, **dict.fromkeys(("datetimerebasemode", "int96rebasemode"), _OLD_DATES)},
}
"""The options of a source, with the reason why no harm comes of them."""

WRITING: Final[Mapping[str, Mapping[str, str]]] = {
    "csv": {
        **_CSV,
        **dict.fromkeys(("escapequotes", "quoteall"), _SHAPE),
        **dict.fromkeys(("codec", "compression"), _PACKED),
        "maxrecordsperfile": _PARTS,
    },
    "json": {
        **_TEXTS,
        **dict.fromkeys(
            ("ignorenullfields", "pretty", "writenonasciicharacterascodepoint"), _VALUES
        ),
        **dict.fromkeys(("codec", "compression"), _PACKED),
        "maxrecordsperfile": _PARTS,
    },
    "parquet": {
        "compression": _PACKED,
        "maxrecordsperfile": _PARTS,
        **dict.fromkeys(
            (
                "parquet.block.size",
                "parquet.bloom.filter.enabled",
                "parquet.bloom.filter.expected.ndv",
                "parquet.bloom.filter.fpp",
                "parquet.bloom.filter.max.bytes",
                "parquet.compression.codec.zstd.level",
                "parquet.dictionary.page.size",
                "parquet.enable.dictionary",
                "parquet.page.row.count.limit",
                "parquet.page.size",
                "parquet.writer.version",
            ),
            _LAYOUT,
        ),
    },
}
"""The options of a sink, with the reason why no harm comes of them.

One of parquet may have a column behind `#`.
"""

_MEBIBYTE: Final = 1 << 20
_MOST: Final[Mapping[str, int]] = {
    "maxcharspercolumn": 64 * _MEBIBYTE,
    "maxcolumns": 100_000,
    "parquet.block.size": 512 * _MEBIBYTE,
    "parquet.bloom.filter.max.bytes": 16 * _MEBIBYTE,
    "parquet.dictionary.page.size": 64 * _MEBIBYTE,
    "parquet.page.row.count.limit": 1_000_000,
    "parquet.page.size": 64 * _MEBIBYTE,
}
"""The maxima of options that take memory of the JVM, which all tasks share."""
_SHORT_NAME: Final = re.compile(r"[A-Za-z0-9_]+")


def options_of(prefix: str, config: Mapping[str, str]) -> dict[str, str]:
    """Return the options in a config, with names in lower case.

    A name with a dot is a setting of Hadoop, which is case sensitive.
    """
    given = strip_prefix(prefix, config)
    return {name if "." in name else name.lower(): text for name, text in given.items()}


def options_to_read(fmt: str, config: Mapping[str, str]) -> dict[str, str]:
    """Return the options for Spark's reader of a format, which always reads UTF-8."""
    hidden = {*ENCODING, *(_FOUND_OUT if fmt == "csv" else ())}
    given = options_of(SOURCE_OPTION, config)
    return {name: text for name, text in given.items() if name not in hidden}


def flaws_in_options(
    allowed: Mapping[str, Mapping[str, str]], fmt: str, given: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield each option that is not taken, with the reason; an unknown format may have any."""
    everything = {name for each in allowed.values() for name in each}
    names = allowed.get(fmt, everything)
    for name, value in given.items():
        plain = name.lower().partition("#")[0] if "." in name else name.lower()
        if plain not in names:
            yield name, f"is none of the options that {fmt} takes here: leave it out"
        elif has_reference(value):
            continue
        elif plain in {"codec", "compression"} and not _SHORT_NAME.fullmatch(value):
            yield name, "must be a short name, such as gzip"
        elif (most := _MOST.get(plain)) and not _is_at_most(most, value):
            yield name, f"must be a number, at most {most}: all tasks share the JVM's memory"


def _is_at_most(most: int, value: str) -> bool:
    return value == "-1" or (value.isascii() and value.isdecimal() and int(value) <= most)
