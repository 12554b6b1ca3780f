"""Options of Spark's readers and writers that a config gives, and which of them are refused.

Names of options are alike in upper and lower case, to Spark and here. Csv files are looked through
before Spark reads them: what would have it read them otherwise than they were looked at is refused,
and so is what would have it leave out files that then count as read.
"""

from collections.abc import Mapping
from typing import Final

from ...spi.config import is_deferred, strip_prefix
from ..evolution.policy import ADD_COLUMNS, EVOLUTION, WIDEN
from . import keys

ENCODING: Final = ("encoding", "charset")
SEPARATOR: Final = ("sep", "delimiter")
COMMENT: Final = "comment"
NULL: Final = "nullvalue"
_LINE_END: Final = "linesep"
_FOUND_OUT: Final = frozenset({COMMENT, _LINE_END, "multiline"})
"""What is found out of each csv file, or dealt with, before Spark reads it."""
_PLACES: Final = frozenset({"path", "paths", "__paths__", "basepath"})
"""What would lead elsewhere."""
_CHOOSING: Final = frozenset({"pathglobfilter", "modifiedbefore", "modifiedafter"})
_FORGIVING: Final = frozenset({"ignorecorruptfiles", "ignoremissingfiles"})
_LETTERS: Final[Mapping[str, str]] = {
    "quote": keys.SOURCE_QUOTE,
    "escape": keys.SOURCE_ESCAPE,
    "chartoescapequoteescaping": keys.SOURCE_ESCAPE,
    COMMENT: keys.SOURCE_FORMAT,
}
"""Options that are of one letter, with the keys under which one of more is told."""


def options_of(prefix: str, config: Mapping[str, str]) -> dict[str, str]:
    """Return the options that a config gives, by their names in lower case.

    A name with a dot is one of Hadoop's settings, which are not alike in upper and lower case.
    """
    given = strip_prefix(prefix, config)
    return {name if "." in name else name.lower(): text for name, text in given.items()}


def options_to_read(fmt: str, config: Mapping[str, str]) -> dict[str, str]:
    """Return the options that Spark's reader of a format is given of a config.

    It is given nothing but UTF-8.
    """
    hidden = {*ENCODING, *(_FOUND_OUT if fmt == "csv" else ())}
    given = options_of(keys.SOURCE_OPTION, config)
    return {name: text for name, text in given.items() if name not in hidden}


def flaws_in_places(config: Mapping[str, str], options: str, path: str) -> Mapping[str, str]:
    """Return what is wrong with options that would lead elsewhere than the key of the path."""
    given = [each for each in strip_prefix(options, config) if each.lower() in _PLACES]
    return {path: f"it alone says where: leave out {options}{given[0]}"} if given else {}


def flaws_in_reading(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return what is wrong with options of a source, by the keys to change."""
    found = dict(flaws_in_places(config, keys.SOURCE_OPTION, keys.SOURCE_PATH))
    for name in strip_prefix(keys.SOURCE_OPTION, config):
        text = config[keys.SOURCE_OPTION + name].lower()
        if name.lower() in _CHOOSING or (name.lower() in _FORGIVING and text != "false"):
            found[keys.SOURCE_GLOB] = (
                f"it alone says which files are read: with {keys.SOURCE_OPTION}{name} some would "
                "count as read of which Spark reads nothing. Leave it out"
            )
    if config.get(keys.SOURCE_FORMAT) == "csv":
        found |= _flaws_in_csv(config)
    return found


def _flaws_in_csv(config: Mapping[str, str]) -> Mapping[str, str]:
    given = options_of(keys.SOURCE_OPTION, config)
    found = {
        key: f"{keys.SOURCE_OPTION}{name} must be one letter, and is {given[name]!r}"
        for name, key in _LETTERS.items()
        if len(given.get(name, "")) > 1 and not is_deferred(given[name])
    }
    if given.get(_LINE_END, "\n") not in {"\n", "\r", "\r\n"}:
        found[keys.SOURCE_FORMAT] = (
            f"leave out {keys.SOURCE_OPTION}lineSep: what ends the lines of a csv file, a line "
            "feed, a carriage return or both, is found out for each"
        )
    name = next((each for each in SEPARATOR if each in given), "")
    if name and given[name] != "\\t" and not is_deferred(given[name]):
        is_long = len(given[name]) > 1 and _asks_names(config, given)
        if is_long or not given[name]:
            found[keys.SOURCE_SEPARATOR] = (
                f"{keys.SOURCE_OPTION}{name} must be one letter, or \\t, and is {given[name]!r}: "
                "with several no header can be read, and no schema be inferred. They are taken "
                f"with {keys.SOURCE_HEADER}=false and {keys.SOURCE_SCHEMA}"
            )
    return found


def _asks_names(config: Mapping[str, str], given: Mapping[str, str]) -> bool:
    """Tell whether the columns of csv files are asked of the files themselves."""
    header = given.get("header", config.get(keys.SOURCE_HEADER, "true")).strip().lower()
    adds = config.get(EVOLUTION) in {ADD_COLUMNS, WIDEN}
    return header == "true" or adds or not config.get(keys.SOURCE_SCHEMA)
