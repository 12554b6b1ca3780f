# pyright: basic
"""The columns that records have as rows: what a config tells of them, what a sample shows."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from ....spi.config import ConfigInvalid, ParsedConfig
from ....spi.errors import BadInput, NotReady
from ....spi.source import Limit
from ....spi.types import SourceColumns
from ...common_keys import TOLERANCE
from ...evolution.policy import EVOLUTION, SchemaPolicy
from ...files.source.inference import infer
from ...files.source.text import CsvStyle
from .. import keys
from ..cluster import TopicPlace
from ..connection import REQUEST_S
from .decoding import JsonDecoder, KafkaRows, PlainDecoder, RecordDecoder
from .envelope import EnvelopeDecoder
from .reader import PartitionReader

SAMPLE: Final = 500
"""From how many of the last records of a partition columns are inferred."""
_SAMPLE_BYTES: Final = 16 << 20
_PAUSE_S: Final = 0.02
_BESIDE: Final[Mapping[str, str]] = {
    "_key": "STRING",
    "_topic": "STRING",
    "_partition": "INT",
    "_offset": "BIGINT",
    "_timestamp": "TIMESTAMP",
    "_headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
}


def decoder(settings: ParsedConfig) -> RecordDecoder:
    """Return what makes rows of a task's records."""
    rows = KafkaRows(
        _metadata(settings.items(keys.METADATA)),
        has_text_keys=settings.text(keys.KEY_CONVERTER) == "string",
        parts_bad=settings.text(TOLERANCE) == "all",
    )
    kind = keys.converter(settings.text(keys.VALUE_CONVERTER))
    if kind != "json":
        return PlainDecoder(rows, has_texts=kind == "string")
    if settings.flag(keys.VALUE_SCHEMAS):
        return EnvelopeDecoder(rows)
    is_given, mode = bool(settings.text(keys.SCHEMA)), settings.text(EVOLUTION)
    policy = SchemaPolicy.of(mode, is_given=is_given, is_exact=True)
    return JsonDecoder(rows, settings.text(keys.TASK_SCHEMA), policy)


def needs_schema(settings: ParsedConfig) -> bool:
    """Tell whether the columns of values must be known before they are read."""
    kind = keys.converter(settings.text(keys.VALUE_CONVERTER))
    return kind == "json" and not settings.flag(keys.VALUE_SCHEMAS)


def told_columns(settings: ParsedConfig) -> SourceColumns:
    """Return the columns as far as a config tells them."""
    kind = keys.converter(settings.text(keys.VALUE_CONVERTER))
    values = {"string": "_value STRING", "bytes": "_value BINARY"}.get(kind, "")
    if needs_schema(settings):
        values = settings.text(keys.SCHEMA)
    if not values:
        return SourceColumns()
    key = {"_key": "BINARY"} if settings.text(keys.KEY_CONVERTER) == "bytes" else {}
    types = {**_BESIDE, **key}
    beside = (f"{name} {types[name]}" for name in _metadata(settings.items(keys.METADATA)))
    return SourceColumns(", ".join((values, *beside)), keys.SCHEMA, is_given=True)


def inferred(reader: PartitionReader, starts: Mapping[TopicPlace, int]) -> str:
    """Return the columns of some values in JSON as DDL; raises `NotReady` if there are none."""
    values = [each for each in _sample(reader, starts) if each]
    if not values:
        raise NotReady(
            f"no record is there to infer columns from; put one there, or give {keys.SCHEMA}"
        )
    with TemporaryDirectory() as folder:
        sample = Path(folder) / "sample.json"
        sample.write_bytes(b"\n".join(each.replace(b"\n", b" ") for each in values) + b"\n")
        try:
            return infer("json", [sample], CsvStyle(), _SAMPLE_BYTES)
        except BadInput as error:
            why = str(error).replace(str(sample), "the last records")
            raise ConfigInvalid(f"{keys.SCHEMA}: it cannot be inferred: {why}") from None


def _sample(reader: PartitionReader, starts: Mapping[TopicPlace, int]) -> Sequence[bytes]:
    found: list[bytes] = []
    deadline = time.monotonic() + REQUEST_S
    reader.go_to(starts)
    while reader.has_more and len(found) < SAMPLE * len(starts) and time.monotonic() < deadline:
        records = reader.read(Limit(SAMPLE * len(starts) - len(found), _SAMPLE_BYTES, 1))
        if records is None:
            time.sleep(_PAUSE_S)
        else:
            found += records.table["_value"].to_pylist()
    return found


def _metadata(names: Sequence[str]) -> Sequence[str]:
    return [f"_{name.removeprefix('_')}" for name in names]
