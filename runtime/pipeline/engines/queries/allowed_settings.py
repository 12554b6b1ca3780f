"""The settings `spark.conf.spark.sql.*` that a connector may have, each with why it may.

The author of a config is not the node's operator, so this is a list of what is taken, with the
values of each. A setting that is not on it may load a class, change values without a word, or fill
the JVM that all tasks of a node share; or it comes with a later Spark. All others are the node's.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

_MEBIBYTE: Final = 1 << 20
_UNITS: Final[Mapping[str, int]] = {"": 1, "b": 1, "k": 1 << 10, "m": _MEBIBYTE, "g": 1 << 30}
_SIZE: Final = re.compile(r"([0-9]{1,12})\s*([kmg]?)b?", re.IGNORECASE)
_ZONE: Final = re.compile(r"[A-Za-z0-9_+:/-]{1,64}")

Check = Callable[[str], str]
"""Returns what a value must be, if it is not; else an empty text."""


class AllowedSetting(NamedTuple):
    """Why a connector may have a setting, and the check of its values."""

    why: str
    check: Check


def _flag(value: str) -> str:
    return "" if value.lower() in {"true", "false"} else "true or false"


def _one_of(*names: str) -> Check:
    told = f"one of {', '.join(names)}"
    return lambda value: "" if value.lower() in {each.lower() for each in names} else told


def _number(least: int, most: int) -> Check:
    def check(value: str) -> str:
        is_number = value.isascii() and value.isdecimal() and len(value) < len(str(most)) + 1
        return "" if is_number and least <= int(value) <= most else f"from {least} to {most}"

    return check


def _size(least: int, most: int) -> Check:
    def check(value: str) -> str:
        found = _SIZE.fullmatch(value.strip())
        bytes_ = int(found[1]) * _UNITS[found[2].lower()] if found else -1
        told = f"a size from {least} to {most >> 20}m, such as 64m"
        return "" if value == "-1" or least <= bytes_ <= most else told

    return check


def _zone(value: str) -> str:
    return "" if _ZONE.fullmatch(value) else "the name of a zone, such as Asia/Tokyo"


_QUERIES: Final = "what the connector's own queries mean; a value that does not fit is told"
_PLANS: Final = "only how a query is carried out, within bounds; its rows are the same"
_FILES: Final = "only how the connector's own files are written"
_PARTS: Final = "only into how many parts rows are cut, within bounds; they are the same"

_CODECS: Final = (
    "none",
    "uncompressed",
    "snappy",
    "gzip",
    "lzo",
    "brotli",
    "lz4",
    "lz4_raw",
    "zstd",
)

ALLOWED: Final[Mapping[str, AllowedSetting]] = {
    "spark.sql.ansi.enabled": AllowedSetting(_QUERIES, _flag),
    "spark.sql.caseSensitive": AllowedSetting(_QUERIES, _flag),
    "spark.sql.crossJoin.enabled": AllowedSetting(_QUERIES, _flag),
    "spark.sql.mapKeyDedupPolicy": AllowedSetting(_QUERIES, _one_of("EXCEPTION", "LAST_WIN")),
    "spark.sql.session.timeZone": AllowedSetting(_QUERIES, _zone),
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": AllowedSetting(
        _PLANS, _size(_MEBIBYTE, 1 << 30)
    ),
    "spark.sql.adaptive.coalescePartitions.enabled": AllowedSetting(_PLANS, _flag),
    "spark.sql.adaptive.enabled": AllowedSetting(_PLANS, _flag),
    "spark.sql.adaptive.skewJoin.enabled": AllowedSetting(_PLANS, _flag),
    "spark.sql.autoBroadcastJoinThreshold": AllowedSetting(_PLANS, _size(0, 64 * _MEBIBYTE)),
    "spark.sql.broadcastTimeout": AllowedSetting(_PLANS, _number(1, 3_600)),
    "spark.sql.codegen.wholeStage": AllowedSetting(_PLANS, _flag),
    "spark.sql.execution.arrow.maxRecordsPerBatch": AllowedSetting(_PLANS, _number(1, 100_000)),
    "spark.sql.join.preferSortMergeJoin": AllowedSetting(_PLANS, _flag),
    "spark.sql.files.maxPartitionBytes": AllowedSetting(_PARTS, _size(_MEBIBYTE, 1 << 30)),
    "spark.sql.files.maxPartitionNum": AllowedSetting(_PARTS, _number(1, 10_000)),
    "spark.sql.files.maxRecordsPerFile": AllowedSetting(_PARTS, _number(0, 1_000_000_000)),
    "spark.sql.files.minPartitionNum": AllowedSetting(_PARTS, _number(1, 10_000)),
    "spark.sql.files.openCostInBytes": AllowedSetting(_PARTS, _size(0, 64 * _MEBIBYTE)),
    "spark.sql.shuffle.partitions": AllowedSetting(_PARTS, _number(1, 10_000)),
    "spark.sql.parquet.compression.codec": AllowedSetting(_FILES, _one_of(*_CODECS)),
    "spark.sql.parquet.outputTimestampType": AllowedSetting(
        _FILES, _one_of("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS")
    ),
    "spark.sql.parquet.writeLegacyFormat": AllowedSetting(_FILES, _flag),
}
"""The settings that are taken."""


def flaw_in_setting(name: str, value: str | None) -> str | None:
    """Return why a connector must not have this setting; None: it may. No value: not known yet."""
    if not name.startswith("spark.sql."):
        return "only spark.sql.* can be a connector's own: the others are set on the node, for all"
    if name not in ALLOWED:
        return "it is none of the settings that a connector may have: leave it out"
    must_be = "" if value is None else ALLOWED[name].check(value)
    return f"must be {must_be}" if must_be else None
