"""`sink.type=files`: appends batches to a folder on a file system that all workers share."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from os.path import normpath
from pathlib import Path, PurePath
from typing import ClassVar

from ......events.commits import Manifest
from ....formats.spark.options import SINK_OPTION
from ....spi.config import Definition, ParsedConfig, has_reference
from ....spi.connector import Delivery
from ....spi.context import Context, ExternalAccess, ProbeResult
from ....spi.lineage import Dataset, dataset_of_path
from ....spi.types import SinkType, WrittenColumns
from ...topics import depends_on_topic
from .. import keys
from ..sink_folder.root import FolderKeys, root_of
from .sink import FileSink
from .topic_folders import TopicFolderSink
from .writing import WriteFormat


class FilesSinkType(SinkType):
    """Files of one format, optionally in folders by partition columns."""

    version: ClassVar[str] = "1.0"
    delivery: ClassVar[Delivery] = Delivery.EXACTLY_ONCE
    prefixes: ClassVar[tuple[str, ...]] = (SINK_OPTION,)
    ignores_case: ClassVar[bool] = True

    def __init__(self, context: Context, config: Mapping[str, str], settings: ParsedConfig) -> None:
        """Start with a config; raises `ConfigInvalid` for a folder that the node does not allow."""
        super().__init__(context, config, settings)
        context.check_path(keys.SINK_PATH, str(root_of(config[keys.SINK_PATH])))

    @classmethod
    def keys(cls) -> Sequence[Definition]:
        """Return the keys of the sink."""
        return keys.SINK

    @classmethod
    def task_keys(cls) -> Sequence[Definition]:
        """Return the key with the claim."""
        return keys.SINK_TASK

    @classmethod
    def families(cls) -> Sequence[Definition]:
        """Return the options of Spark's writers."""
        return (keys.SINK_OPTIONS,)

    @classmethod
    def complaints(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Refuse options that are not taken, and a sink folder within the source folder."""
        source, sink = config.get(keys.SOURCE_PATH, ""), config.get(keys.SINK_PATH, "")
        if source and sink and _normal(sink).is_relative_to(_normal(source)):
            return {keys.SINK_PATH: f"lies in {keys.SOURCE_PATH}: its output would be its input"}
        flaw = _flaw_by_topic(config) if depends_on_topic(sink) else ""
        return {keys.SINK_PATH: flaw} if flaw else keys.flaws_in_writing(config)

    @classmethod
    def datasets(cls, config: Mapping[str, str], manifest: Manifest) -> Sequence[Dataset]:
        """Return the folder, or those of the topics in a batch."""
        path = config[keys.SINK_PATH]
        if not depends_on_topic(path):
            return [dataset_of_path(path)]
        folders = sorted({str(Path(each.path).parent) for each in manifest.parts})
        return [dataset_of_path(f"{root_of(path)}/{each}") for each in folders]

    @classmethod
    def probe(cls, config: Mapping[str, str], outside: ExternalAccess) -> ProbeResult:
        """Check that the folder can be created and written to.

        A temporary file in it is the only reliable check.
        """
        text = config.get(keys.SINK_PATH, "")
        flaw = "" if has_reference(text) else flaw_in_folder(text, config, outside)
        return ProbeResult({keys.SINK_PATH: flaw} if flaw else {})

    @classmethod
    def wants_columns(cls, config: Mapping[str, str]) -> bool:
        """Ask for the columns if there are partition columns."""
        return bool(_folders(config))

    @classmethod
    def check_columns(cls, config: Mapping[str, str], columns: WrittenColumns) -> ProbeResult:
        """Check that the partition columns exist."""
        missing = _missing(_folders(config), columns.names)
        if missing and columns.may_grow:
            warning = f"{keys.SINK_PARTITION_BY}: by a sample of the files, {missing}"
            return ProbeResult(warnings=(warning,))
        return ProbeResult({keys.SINK_PARTITION_BY: missing} if missing else {})

    @classmethod
    def rotates_after_s(cls, settings: ParsedConfig) -> float:
        """Return the rotation interval."""
        return settings.number(keys.SINK_ROTATE_MS) / 1000

    def shared_task_config(self) -> Mapping[str, str]:
        """Claim the folder; return the key with the claim."""
        return FolderKeys().shared_task_config(self.context, self.settings)

    @classmethod
    def sink(
        cls, context: Context, config: Mapping[str, str], settings: ParsedConfig
    ) -> "FileSink | TopicFolderSink":
        """Make the sink of one task; raises `ConfigInvalid` for a folder that is not allowed."""
        path, place = config[keys.SINK_PATH], FolderKeys().place(context, settings)
        context.check_path(keys.SINK_PATH, str(place.root))
        form = WriteFormat.of(settings, config)
        may_evolve = settings.flag(keys.SINK_AUTO_EVOLVE)
        if depends_on_topic(path):
            return TopicFolderSink(
                place, path, context.warn, file_bytes=form.file_bytes, may_evolve=may_evolve
            )
        settings_of_spark = context.spark_settings
        return FileSink(
            place, form, context.warn, may_evolve=may_evolve, spark_settings=settings_of_spark
        )


def flaw_in_folder(text: str, config: Mapping[str, str], outside: ExternalAccess) -> str:
    """Return why a folder cannot be written to; empty if it can."""
    if flaw := outside.reach.flaw_in_path(text):
        return flaw
    path, source = root_of(text), config.get(keys.SOURCE_PATH, "")
    if source and not has_reference(source) and _leads_into(path, Path(source)):
        return f"{path} leads into {source}: its output would be its input"
    there = next(each for each in (path, *path.parents) if os.path.lexists(each))
    try:
        descriptor, name = tempfile.mkstemp(prefix=".fairlead-", dir=there)
        os.close(descriptor)
        Path(name).unlink()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        return f"{path} cannot be written to: {there}: {why}"
    return ""


def _flaw_by_topic(config: Mapping[str, str]) -> str:
    """Return why there cannot be a folder for each topic; empty if there can."""
    if ".." in PurePath(config[keys.SINK_PATH]).parts:
        return "must not lead upwards: folders of topics lie below it"
    wrong = [each for each in config if each.startswith(SINK_OPTION)]
    wrong += [keys.SINK_PARTITION_BY] if config.get(keys.SINK_PARTITION_BY) else []
    if config.get(keys.SINK_FORMAT) == "parquet" and not wrong:
        return ""
    without = f", without {wrong[0]}" if wrong else ""
    return f"with a folder for each topic files are written by Arrow: as parquet{without}"


def _folders(config: Mapping[str, str]) -> list[str]:
    """Return the partition columns."""
    return [
        each.strip() for each in config.get(keys.SINK_PARTITION_BY, "").split(",") if each.strip()
    ]


def _missing(partitions: Sequence[str], columns: Sequence[str]) -> str:
    """Return the error of the partition columns; empty if there is none."""
    known = {name.lower() for name in columns}
    missing = [name for name in partitions if name.lower() not in known]
    if missing:
        return f"there is no column {', '.join(missing)}; there are {', '.join(columns)}"
    if partitions and len({name.lower() for name in partitions}) == len(known):
        return "no column would be left for the files themselves"
    return ""


def _leads_into(inner: Path, outer: Path) -> bool:
    """Return whether a folder is, or lies in, another one, with links resolved."""
    return Path(os.path.realpath(inner)).is_relative_to(os.path.realpath(outer))


def _normal(path: str) -> PurePath:
    return PurePath(normpath(path))
