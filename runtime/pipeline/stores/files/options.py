"""Options of Spark's readers and writers in a config, and checks of them.

`spark_options` lists those that are taken. Their names are case insensitive. Files are scanned
before Spark reads them: options that make Spark read them in another way than the scan are refused,
and so are options that make Spark skip files, which would count as read.
"""

from collections.abc import Mapping
from typing import Final

from ...formats.evolution.policy import ADD_COLUMNS, EVOLUTION, WIDEN
from ...spi.config import is_deferred, strip_prefix
from . import keys
from .spark_options import READING, WRITING, flaws_in_options

ENCODING: Final = ("encoding", "charset")
SEPARATOR: Final = ("sep", "delimiter")
COMMENT: Final = "comment"
NULL: Final = "nullvalue"
_LINE_END: Final = "linesep"
_FOUND_OUT: Final = frozenset({COMMENT, _LINE_END, "multiline"})
"""Options that the scan of each csv file replaces."""
_PLACES: Final = frozenset({"path", "paths", "__paths__", "basepath"})
"""Options that would change the path."""
_CHOOSING: Final = frozenset({"pathglobfilter", "modifiedbefore", "modifiedafter"})
_FORGIVING: Final = frozenset({"ignorecorruptfiles", "ignoremissingfiles"})
_LETTERS: Final[Mapping[str, str]] = {
    "quote": keys.SOURCE_QUOTE,
    "escape": keys.SOURCE_ESCAPE,
    "chartoescapequoteescaping": keys.SOURCE_ESCAPE,
    COMMENT: keys.SOURCE_FORMAT,
}
"""Options of one character, with the keys to report an error under."""


def options_of(prefix: str, config: Mapping[str, str]) -> dict[str, str]:
    """Return the options in a config, with names in lower case.

    A name with a dot is a setting of Hadoop, which is case sensitive.
    """
    given = strip_prefix(prefix, config)
    return {name if "." in name else name.lower(): text for name, text in given.items()}


def options_to_read(fmt: str, config: Mapping[str, str]) -> dict[str, str]:
    """Return the options for Spark's reader of a format, which always reads UTF-8."""
    hidden = {*ENCODING, *(_FOUND_OUT if fmt == "csv" else ())}
    given = options_of(keys.SOURCE_OPTION, config)
    return {name: text for name, text in given.items() if name not in hidden}


def flaws_in_places(config: Mapping[str, str], options: str, path: str) -> Mapping[str, str]:
    """Return an error, by the key of the path, for an option that would change the path."""
    given = [each for each in strip_prefix(options, config) if each.lower() in _PLACES]
    return {path: f"only this key sets the path: leave out {options}{given[0]}"} if given else {}


def flaws_in_reading(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return the errors of a source's options, by the key to change."""
    found = dict(flaws_in_places(config, keys.SOURCE_OPTION, keys.SOURCE_PATH))
    for name in strip_prefix(keys.SOURCE_OPTION, config):
        text = config[keys.SOURCE_OPTION + name].lower()
        if name.lower() in _CHOOSING or (name.lower() in _FORGIVING and text != "false"):
            found[keys.SOURCE_GLOB] = (
                f"only this key selects files: leave out {keys.SOURCE_OPTION}{name}, with which "
                "Spark would skip files that count as read"
            )
    if config.get(keys.SOURCE_FORMAT) == "csv":
        found |= _flaws_in_csv(config)
    fmt, given = config.get(keys.SOURCE_FORMAT, ""), strip_prefix(keys.SOURCE_OPTION, config)
    named = {each: given[each] for each in given if each.lower() not in _PLACES | _CHOOSING}
    for name, why in flaws_in_options(READING, fmt, named):
        found.setdefault(keys.SOURCE_FORMAT, f"{keys.SOURCE_OPTION}{name} {why}")
    return found


def flaws_in_writing(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return the errors of a sink's options, by the key to change."""
    found = dict(flaws_in_places(config, keys.SINK_OPTION, keys.SINK_PATH))
    fmt, given = config.get(keys.SINK_FORMAT, ""), strip_prefix(keys.SINK_OPTION, config)
    named = {each: given[each] for each in given if each.lower() not in _PLACES}
    for name, why in flaws_in_options(WRITING, fmt, named):
        found.setdefault(keys.SINK_FORMAT, f"{keys.SINK_OPTION}{name} {why}")
    return found


def _flaws_in_csv(config: Mapping[str, str]) -> Mapping[str, str]:
    given = options_of(keys.SOURCE_OPTION, config)
    found = {
        key: f"{keys.SOURCE_OPTION}{name} must be one character, and is {given[name]!r}"
        for name, key in _LETTERS.items()
        if len(given.get(name, "")) > 1 and not is_deferred(given[name])
    }
    if given.get(_LINE_END, "\n") not in {"\n", "\r", "\r\n"}:
        found[keys.SOURCE_FORMAT] = (
            f"leave out {keys.SOURCE_OPTION}lineSep: the line end of each csv file (line feed, "
            "carriage return or both) is detected"
        )
    name = next((each for each in SEPARATOR if each in given), "")
    if name and given[name] != "\\t" and not is_deferred(given[name]):
        is_long = len(given[name]) > 1 and _asks_names(config, given)
        if is_long or not given[name]:
            found[keys.SOURCE_SEPARATOR] = (
                f"{keys.SOURCE_OPTION}{name} must be one character, or \\t, and is "
                f"{given[name]!r}: with several characters, headers cannot be read and schemas "
                f"cannot be inferred. Set {keys.SOURCE_HEADER}=false and {keys.SOURCE_SCHEMA} to "
                "use it"
            )
    return found


def _asks_names(config: Mapping[str, str], given: Mapping[str, str]) -> bool:
    """Tell whether the columns of csv files come from the files themselves."""
    header = given.get("header", config.get(keys.SOURCE_HEADER, "true")).strip().lower()
    adds = config.get(EVOLUTION) in {ADD_COLUMNS, WIDEN}
    return header == "true" or adds or not config.get(keys.SOURCE_SCHEMA)
