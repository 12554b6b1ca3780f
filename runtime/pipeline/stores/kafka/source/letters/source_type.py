# pyright: basic
"""`source.type=dead-letter-topic`: a topic of dead letters, whose rows are read once more.

Each record is read once, as those of any topic are. With `source.format` the letters have texts of
files, and its keys say how these are read; without it they were records of Kafka, and the keys of
`source.type=kafka` say how those are decoded.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from .....formats.csv.style import CSV_KEYS
from .....formats.evolution.policy import EVOLUTION, SchemaPolicy
from .....formats.spark.options import SOURCE_OPTION
from .....spi.config import Definition, ParsedConfig
from .....spi.context import Context, ExternalAccess, ProbeResult, SourceColumns
from .....spi.keys.kinds import choice_key
from .....spi.keys.letters import CONNECTOR, FORMAT, LETTER_KEYS, SCHEMA
from ....files import keys as files
from ....files.letters.rows import LetterRows
from ....files.letters.source_type import form_of_rows
from ....files.source.formats import ReadFormat
from ..columns import declared_columns, decoder
from ..decoding import KafkaRows, RecordDecoder
from ..source_type import KafkaSourceType
from .decoding import LetterDecoder

_FORMAT_KEYS: Final = (
    choice_key(
        FORMAT,
        "The format of the files whose rows the letters are; absent: they were records of Kafka.",
        "",
        *(each for each in files.READABLE if each != "parquet"),
        dependents=tuple(each.name for each in CSV_KEYS),
    ),
    *CSV_KEYS,
)


class LetterTopicType(KafkaSourceType):
    """The rows in the dead letters that a connector has in a topic."""

    prefixes = (*KafkaSourceType.prefixes, SOURCE_OPTION)

    @classmethod
    def keys(cls) -> Sequence[Definition]:
        """Return the keys of a source of topics, those of letters and those of texts."""
        return (*super().keys(), *LETTER_KEYS, *_FORMAT_KEYS)

    @classmethod
    def task_keys(cls) -> Sequence[Definition]:
        """Return the keys of a task's share, and those that formats of files look at."""
        return (*super().task_keys(), *files.SOURCE_TASK)

    @classmethod
    def families(cls) -> Sequence[Definition]:
        """Return the consumer overrides, and the options of Spark's readers."""
        return (*super().families(), files.SOURCE_OPTIONS)

    @classmethod
    def complaints(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Require the columns: letters do not tell the types of their values."""
        flaws = {**files.flaws_in_reading(config), **super().complaints(config)}
        if config.get(SCHEMA, "").strip():
            return flaws
        return {SCHEMA: "give the columns that the rows in the letters have", **flaws}

    @classmethod
    def probe(cls, config: Mapping[str, str], outside: ExternalAccess) -> ProbeResult:
        """Check that the cluster and the topic exist."""
        found = super().probe(config, outside)
        if not config.get(FORMAT):
            return found
        columns = SourceColumns(config.get(SCHEMA, ""), SCHEMA, is_given=True)
        return replace(found, columns=columns)

    @classmethod
    def letter_keys(
        cls, config: Mapping[str, str], task_config: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Return its own keys: its letters are those that it has read."""
        del task_config
        return {key: value for key, value in config.items() if key.startswith("source.")}

    @classmethod
    def has_headers(cls, config: Mapping[str, str], settings: ParsedConfig) -> bool:
        """Tell whether the headers of records are read: they say what a letter is."""
        del config, settings
        return True

    @classmethod
    def decoder(
        cls,
        context: Context,
        config: Mapping[str, str],
        settings: ParsedConfig,
        sample: Callable[[], pa.Table],
    ) -> RecordDecoder:
        """Return the decoder of letters."""
        connector, rows = (
            settings.text(CONNECTOR),
            KafkaRows((), has_text_keys=False, separates_bad=True),
        )
        if settings.text(FORMAT):
            texts = LetterRows(connector, form_of_rows(config, settings))
            return LetterDecoder(rows, texts, None)
        policy = SchemaPolicy.of(settings.text(EVOLUTION), is_given=True, is_exact=True)
        form = ReadFormat("json", declared_columns(settings).ddl, tolerant=True, policy=policy)
        records = decoder(context, config, settings, sample)
        return LetterDecoder(rows, LetterRows(connector, form), records)
