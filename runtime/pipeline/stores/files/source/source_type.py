"""`source.type=files`: a folder whose files are assigned to tasks by hash buckets.

The split in force is kept if it fits the config, so that neither new files nor another worker
restart tasks.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import ClassVar, Final

from ......events.commits import Document
from ....formats.csv.style import CsvStyle
from ....formats.evolution.policy import EVOLUTION, FAIL
from ....formats.inference import DuplicateColumns
from ....formats.spark.options import SOURCE_OPTION, options_to_read
from ....spi.config import ConfigDef, ConfigInvalid, Definition, ParsedConfig, has_reference
from ....spi.connector import Delivery
from ....spi.context import Context, ExternalAccess, ProbeResult, SourceColumns
from ....spi.errors import Away, BadInput, LettersRefused, NotReady, OffsetRefused
from ....spi.keys.common import TOLERANCE
from ....spi.keys.letters import IS_INFERRED
from ....spi.lineage import Dataset, dataset_of_path
from ....spi.offsets import Offsets, Seek
from ....spi.source import Limit
from ....spi.types import SourceType
from .. import keys
from ..folders import folder_names
from .formats import ReadFormat
from .inference import MULTILINE_JSON, infer_schema
from .listing import walk
from .offsets import BUCKETS, Folder, check_offset, deal, lag_of, seek, spell
from .source import FileSource

MOST_FILES: Final = 100
MOST_BYTES: Final = 4 << 20
"""How many files, and bytes, the check of a config reads."""


class FilesSourceType(SourceType):
    """Files of one format in a folder and its subfolders."""

    version: ClassVar[str] = "1.0"
    delivery: ClassVar[Delivery] = Delivery.EXACTLY_ONCE
    prefixes: ClassVar[tuple[str, ...]] = (SOURCE_OPTION,)

    def __init__(self, context: Context, config: Mapping[str, str], settings: ParsedConfig) -> None:
        """Start with a config; raises `ConfigInvalid` for a folder that the node does not allow."""
        super().__init__(context, config, settings)
        context.check_path(keys.SOURCE_PATH, config[keys.SOURCE_PATH])

    @classmethod
    def keys(cls) -> Sequence[Definition]:
        """Return the keys of the source."""
        return keys.SOURCE

    @classmethod
    def task_keys(cls) -> Sequence[Definition]:
        """Return the keys of a task's share and schema."""
        return keys.SOURCE_TASK

    @classmethod
    def families(cls) -> Sequence[Definition]:
        """Return the options of Spark's readers."""
        return (keys.SOURCE_OPTIONS,)

    @classmethod
    def complaints(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Refuse options that change the path, or that do not agree with the scan of files."""
        return keys.flaws_in_reading(config)

    @classmethod
    def datasets(
        cls, config: Mapping[str, str], partitions: Iterable[Document]
    ) -> Sequence[Dataset]:
        """Return the folder."""
        del partitions
        return [dataset_of_path(config[keys.SOURCE_PATH])]

    @classmethod
    def probe(cls, config: Mapping[str, str], outside: ExternalAccess) -> ProbeResult:
        """Check the folder, and a sample of its files."""
        schema = config.get(keys.SOURCE_SCHEMA, "")
        declared = SourceColumns(schema, keys.SOURCE_SCHEMA, is_given=bool(schema))
        text = config.get(keys.SOURCE_PATH, "")
        if has_reference(text):
            return ProbeResult(columns=declared)
        path, error, warning = Path(text), "", ""
        if flaw := outside.reach.flaw_in_path(text):
            error = flaw
        elif not path.exists():
            warning = f"{keys.SOURCE_PATH}: {path} does not exist: the connector waits for it"
        elif not path.is_dir():
            error = f"{path} is a file: give the folder that it lies in"
        elif not os.access(path, os.R_OK | os.X_OK):
            error = f"{path} cannot be read by this node's user"
        elif not declared.ddl:
            return _sampled(config, is_confined=bool(outside.reach.paths))
        errors = {keys.SOURCE_PATH: error} if error else {}
        return ProbeResult(errors, (warning,) if warning else (), declared)

    @classmethod
    def check_offset(
        cls, config: Mapping[str, str], partition: Document, offset: Document | None
    ) -> None:
        """Refuse a partition that is not a file of the folder, and an invalid offset."""
        check_offset(*_folder(config), partition, offset)

    @classmethod
    def seek(
        cls, config: Mapping[str, str], outside: ExternalAccess, to: Seek, offsets: Offsets
    ) -> Offsets:
        """Return the offsets by the modification times of existing files."""
        root, glob = _folder(config)
        if flaw := outside.reach.flaw_in_path(str(root)):
            raise OffsetRefused(f"{keys.SOURCE_PATH}: {flaw}")
        return seek(root, glob, to, offsets)

    lag_of = staticmethod(lag_of)

    @classmethod
    def letter_keys(
        cls, config: Mapping[str, str], task_config: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Return the format, the dialect and the schema; raises `LettersRefused`.

        An inferred schema is that of the tasks.
        """
        if json.loads(task_config.get(keys.TASK_FOLDERS, "") or "[]"):
            raise LettersRefused(
                "folders name columns of its rows, and the text of a letter does not have these"
            )
        is_inferred = not config.get(keys.SOURCE_SCHEMA, "").strip()
        schema = (
            task_config.get(keys.TASK_SCHEMA, "") if is_inferred else config[keys.SOURCE_SCHEMA]
        )
        if not schema:
            raise LettersRefused(
                f"its schema is not known before its first task has run: wait, or set "
                f"{keys.SOURCE_SCHEMA}"
            )
        where = {keys.SOURCE_PATH, keys.SOURCE_GLOB}
        kept = {k: v for k, v in config.items() if k.startswith("source.") and k not in where}
        return {**kept, keys.SOURCE_SCHEMA: schema, IS_INFERRED: str(is_inferred).lower()}

    def split(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Assign the files to tasks, with one schema for all."""
        root = Path(self.settings.text(keys.SOURCE_PATH))
        glob = self.settings.text(keys.SOURCE_GLOB)
        if flaw := self.context.reach.flaw_in_path(str(root)):  # it may lead elsewhere by now
            raise NotReady(flaw)
        is_confined = bool(self.context.reach.paths)
        paths = sorted(found.path for found in walk(root, glob, is_confined=is_confined))
        given = self.settings.text(keys.SOURCE_SCHEMA)
        schema = given or self._kept_schema() or self._inferred(paths)
        shares = self._kept_shares(max_tasks) or [spell(share) for share in deal(paths, max_tasks)]
        named = self._kept(keys.TASK_FOLDERS) if self._kept_schema() else folder_names_of(paths)
        common = {
            keys.TASK_SCHEMA: schema,
            keys.TASK_FOLDERS: named,
            keys.TASK_ROOTLESS: self._rootless(),
        }
        return [{**common, keys.TASK_BUCKETS: share} for share in shares]

    def split_sample(self) -> Mapping[str, str]:
        """Return the keys of one task for all files, which are read once they are complete."""
        return self.split(1)[0]

    @classmethod
    def source(
        cls, context: Context, config: Mapping[str, str], settings: ParsedConfig
    ) -> FileSource:
        """Make the source of one share; raises `ConfigInvalid` for a folder that is not allowed."""
        context.check_path(keys.SOURCE_PATH, config[keys.SOURCE_PATH])
        folder = Folder.of(settings, config)
        tolerant = settings.text(TOLERANCE) == "all"
        most = Limit(
            sys.maxsize,
            settings.number(keys.SOURCE_MAX_BYTES),
            settings.number(keys.SOURCE_MAX_FILES),
        )
        form = ReadFormat.of(settings, config, tolerant=tolerant)
        return FileSource(folder, form, context, most)

    def _inferred(self, paths: Sequence[str]) -> str:
        tolerant = self.settings.text(TOLERANCE) == "all"
        return _inferred(self.config, self.settings, paths, tolerant=tolerant)

    def _rootless(self) -> str:
        """Return the folder of offsets without a folder; empty if unknown.

        In a split of a release that wrote such offsets, it is the split's own folder.
        """
        split = self.context.split
        if not split:
            return ""
        return split[0].get(keys.TASK_ROOTLESS, split[0].get(keys.SOURCE_PATH, ""))

    def _kept_shares(self, max_tasks: int) -> Sequence[str]:
        """Return the shares in force, if the folder, glob and number of tasks are the same."""
        is_same = self._is_same((keys.SOURCE_PATH, keys.SOURCE_GLOB))
        if not is_same or len(self.context.split) != min(max_tasks, BUCKETS):
            return ()
        return [config.get(keys.TASK_BUCKETS, "") for config in self.context.split]

    def _kept_schema(self) -> str:
        """Return the schema in force, if no `source.*` key has changed."""
        source = {key for key in self.config if key.startswith("source.")}
        return self._kept(keys.TASK_SCHEMA) if self._is_same(source) else ""

    def _kept(self, key: str) -> str:
        return self.context.split[0].get(key, "")

    def _is_same(self, names: Iterable[str]) -> bool:
        if not self.context.split:
            return False
        before = self.context.split[0]
        return all(self.config.get(key) == before.get(key) for key in names)


def folder_names_of(paths: Iterable[str]) -> str:
    """Return the columns that folders name, as a task config has them; empty: none."""
    names = folder_names(paths)
    return json.dumps(names, ensure_ascii=False) if names else ""


def _folder(config: Mapping[str, str]) -> tuple[Path, str]:
    """Return the folder and the glob that a config names; raises `OffsetRefused`."""
    known = [each for each in keys.SOURCE if each.name in {keys.SOURCE_PATH, keys.SOURCE_GLOB}]
    for key in (each.name for each in known if has_reference(config.get(each.name, ""))):
        raise OffsetRefused(
            f"{key} has a ${{...}} reference, which only workers resolve: the files are unknown"
        )
    settings = ConfigDef(tuple(known)).parse(config)
    return Path(settings.text(keys.SOURCE_PATH)), settings.text(keys.SOURCE_GLOB)


def _inferred(
    config: Mapping[str, str],
    settings: ParsedConfig,
    paths: Sequence[str],
    *,
    tolerant: bool,
    strict: bool = False,
) -> str:
    """Infer the schema of files, given by their paths below the folder; raises `NotReady`."""
    root = Path(settings.text(keys.SOURCE_PATH))
    if not paths:
        raise NotReady(
            f"no file in {root} to infer a schema from; put one there, or set "
            f"`{keys.SOURCE_SCHEMA}`"
        )
    fmt = settings.text(keys.SOURCE_FORMAT)
    options = options_to_read(fmt, config) if fmt == "json" else {}
    is_one = options.get("multiline", "").lower() == "true"
    keys.refuse_flaws_in_reading(config)
    return infer_schema(
        MULTILINE_JSON if is_one else fmt,
        [root / path for path in paths],
        CsvStyle.of(settings, config),
        settings.number(keys.SOURCE_SAMPLE_BYTES),
        tolerant=tolerant,
        evolution=settings.text(EVOLUTION) or FAIL,
        strict=strict,
        folders=folder_names(paths),
    )


def _sampled(config: Mapping[str, str], *, is_confined: bool) -> ProbeResult:
    """Infer the columns from a sample of the existing files."""
    source = {key: value for key, value in config.items() if key.startswith("source.")}
    tolerant = config.get(TOLERANCE, "").strip() == "all"
    if any(map(has_reference, source.values())):
        return ProbeResult()
    config = {**source, keys.SOURCE_SAMPLE_BYTES: str(MOST_BYTES)}
    settings = ConfigDef(keys.SOURCE).parse(config)
    try:
        root, glob = Path(settings.text(keys.SOURCE_PATH)), settings.text(keys.SOURCE_GLOB)
        files = walk(root, glob, is_confined=is_confined)
        found = list(islice(files, MOST_FILES + 1))
        is_sample = len(found) > MOST_FILES or sum(each.size for each in found) > MOST_BYTES
        paths = sorted(each.path for each in found[:MOST_FILES])
        schema = _inferred(config, settings, paths, tolerant=tolerant, strict=not tolerant)
    except NotReady:
        return ProbeResult()
    except DuplicateColumns as error:
        return ProbeResult({keys.SOURCE_PATH: str(error)})
    except (Away, BadInput, ConfigInvalid, OSError) as error:
        return ProbeResult(warnings=(f"{keys.SOURCE_PATH}: {error}",))
    may_grow = settings.text(keys.SOURCE_FORMAT) == "json"
    columns = SourceColumns(schema, keys.SOURCE_SCHEMA, is_sample=is_sample, may_grow=may_grow)
    return ProbeResult(columns=columns)
