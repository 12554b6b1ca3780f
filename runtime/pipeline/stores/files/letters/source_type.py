"""`source.type=dead-letters`: a folder of dead letters, whose rows are read once more.

Each file of letters is read once, as files of any source are. `source.format`, `source.schema` and
the keys of a csv dialect are about the texts in the letters.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....formats.evolution.policy import EVOLUTION, SchemaPolicy
from ....spi.config import Definition, ParsedConfig
from ....spi.context import Context
from ....spi.keys.letters import CONNECTOR, IS_INFERRED, LETTER_KEYS
from ....spi.source import Limit
from .. import keys
from ..source.formats import ReadFormat
from ..source.offsets import Folder
from ..source.source_type import FilesSourceType
from .rows import LETTER_COLUMNS, LetterRows
from .source import LetterSource


class LettersSourceType(FilesSourceType):
    """The rows in the dead letters that a connector has in a folder."""

    @classmethod
    def keys(cls) -> Sequence[Definition]:
        """Return the keys of a source of files, and those of letters."""
        return (*super().keys(), *LETTER_KEYS)

    @classmethod
    def complaints(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Require the columns: letters do not tell the types of their values."""
        flaws = super().complaints(config)
        if config.get(keys.SOURCE_SCHEMA, "").strip():
            return flaws
        return {keys.SOURCE_SCHEMA: "give the columns that the rows in the letters have", **flaws}

    @classmethod
    def letter_keys(
        cls, config: Mapping[str, str], task_config: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Return its own keys: its letters have the texts of those that it has read."""
        del task_config
        return {key: value for key, value in config.items() if key.startswith("source.")}

    @classmethod
    def source(
        cls, context: Context, config: Mapping[str, str], settings: ParsedConfig
    ) -> LetterSource:
        """Make the source of one share; raises `ConfigInvalid` for a folder that is not allowed."""
        context.check_path(keys.SOURCE_PATH, config[keys.SOURCE_PATH])
        most = Limit(
            sys.maxsize,
            settings.number(keys.SOURCE_MAX_BYTES),
            settings.number(keys.SOURCE_MAX_FILES),
        )
        policy = SchemaPolicy.of("", is_given=True, is_exact=True)
        letters = ReadFormat("json", LETTER_COLUMNS, tolerant=True, policy=policy)
        rows = LetterRows(settings.text(CONNECTOR), form_of_rows(config, settings))
        by_spark = replace(context, by_arrow=False)
        return LetterSource(Folder.of(settings, config), letters, by_spark, most, rows)


def form_of_rows(config: Mapping[str, str], settings: ParsedConfig) -> ReadFormat:
    """Return the format of the rows, as the connector whose letters they are has it."""
    form = ReadFormat.of(settings, config, tolerant=True)
    is_inferred, mode = settings.flag(IS_INFERRED), settings.text(EVOLUTION)
    policy = SchemaPolicy.of(mode, is_given=not is_inferred, is_exact=form.name == "json")
    return replace(form, is_inferred=is_inferred, policy=policy)
