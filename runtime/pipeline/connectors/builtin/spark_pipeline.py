"""The built-in connector: any folder of files, through SQL, into any other."""

from collections.abc import Iterable, Mapping, Sequence
from os.path import normpath
from pathlib import Path, PurePath
from typing import ClassVar

from ...transforms import catalogue as transforms
from ..config import ConfigDef, ConfigInvalid, ParsedConfig, Validation, refuse, under
from ..context import Context, Findings, Outside
from ..files import keys as files
from ..files.formats import ReadFormat
from ..files.inference import infer
from ..files.listing import BUCKETS, deal, spell, walk
from ..files.sink import FileSink, WriteFormat
from ..files.sink_marks import SinkClaim
from ..files.sink_root import SinkLocation, claim_sink
from ..files.source import FileSource, Folder
from ..files.text import CsvStyle
from ..spi import Connector, Delivery, Limit, NotReady, Pace, Pipeline, SinkAway
from . import pipeline_keys as keys
from .outside import check_outside


class SparkPipeline(Connector):
    """Files of one format, transformed by Spark, appended to a folder as files of another."""

    version: ClassVar[str] = "1.0"
    delivery: ClassVar[Delivery] = Delivery.EXACTLY_ONCE
    full_name: ClassVar[str] = "fairlead.runtime.connectors.spark_pipeline.SparkPipeline"

    def __init__(self) -> None:
        self._config: Mapping[str, str] = {}
        """The config as it was taken up, references resolved."""
        self._settings = ParsedConfig({})
        """The same, parsed."""
        self._split: Sequence[Mapping[str, str]] = ()
        """The task configs that were in force at the start, in the order of the tasks."""
        self._context: Context | None = None
        """None before the start."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions; those of transforms come with the config that names them."""
        return keys.KEYS

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Validation:
        """Check each key, each transform, and that the output is not read as input."""
        definitions = _with_transforms(keys.KEYS, config)
        return definitions.check(config).plus(_complaints(config))

    @classmethod
    def check_outside(cls, config: Mapping[str, str], outside: Outside) -> Findings:
        """Look at the folders, at a sample of the files, and at what Spark says of the SQL."""
        return check_outside(config, outside, cls._sampled)

    @classmethod
    def _sampled(cls, config: Mapping[str, str], paths: Sequence[str]) -> str:
        """Return the schema that some files have."""
        connector = cls()
        connector._config = config
        connector._settings = _with_transforms(keys.KEYS, config).parse(config)
        return connector._inferred(Path(config[files.SOURCE_PATH]), paths)

    def start(self, context: Context, config: Mapping[str, str]) -> None:
        """Take up a config, and tell what is strange about it."""
        validation = self.validate(config)
        refuse(validation)
        for remark in validation.remarks:
            context.warn(remark)
        _refuse_paths(config, context)
        self._config = dict(config)
        self._split = context.split
        self._context = context
        self._settings = _with_transforms(keys.KEYS, config).parse(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Deal the files to tasks, and tell each the schema that all of them have.

        A split that is in force is kept as far as it fits the config: neither files that came
        since nor another worker are a reason to restart tasks.
        """
        settings = self._settings
        root = Path(settings.text(files.SOURCE_PATH))
        paths = sorted(found.path for found in walk(root, settings.text(files.SOURCE_GLOB)))
        given = settings.text(files.SOURCE_SCHEMA)
        schema = given or self._kept_schema() or self._inferred(root, paths)
        shares = self._kept_shares(max_tasks) or [spell(share) for share in deal(paths, max_tasks)]
        common = {
            **self._config,
            files.TASK_SCHEMA: schema,
            files.TASK_CLAIM: self._claim(),
            files.TASK_ROOTLESS: self._rootless(),
        }
        return [{**common, files.TASK_BUCKETS: share} for share in shares]

    def _claim(self) -> str:
        """Return by what right the tasks write to the sink."""
        context, before = self._context, self._split[0] if self._split else None
        if context is None:
            raise RuntimeError("the connector was not started")
        name = context.resource.connector
        try:
            return str(claim_sink(self._settings, context.cluster_id, name, before))
        except SinkAway as away:
            raise NotReady(str(away)) from None

    def _rootless(self) -> str:
        """Return the folder that offsets without a folder belong to, empty if nobody knows.

        Task configs of a release that wrote such offsets do not say it: it is their own.
        """
        if not self._split:
            return ""
        before = self._split[0]
        return before.get(files.TASK_ROOTLESS, before.get(files.SOURCE_PATH, ""))

    def _kept_shares(self, max_tasks: int) -> Sequence[str]:
        """Return the shares in force if they are of as many tasks, over the same files."""
        is_same = self._source_is_same((files.SOURCE_PATH, files.SOURCE_GLOB))
        if not is_same or len(self._split) != min(max_tasks, BUCKETS):
            return ()
        return [config.get(files.TASK_BUCKETS, "") for config in self._split]

    def _kept_schema(self) -> str:
        """Return the schema in force if nothing that it was inferred from has changed."""
        source = {key for key in self._config if key.startswith("source.")}
        return self._split[0].get(files.TASK_SCHEMA, "") if self._source_is_same(source) else ""

    def _source_is_same(self, source: Iterable[str]) -> bool:
        if not self._split:
            return False
        before = self._split[0]
        return all(self._config.get(key) == before.get(key) for key in source)

    def pipeline(self, context: Context, task_config: Mapping[str, str]) -> Pipeline:
        """Make the pipeline that a task config describes."""
        settings = _with_transforms(keys.TASK_KEYS, task_config).parse(task_config)
        tolerant = settings.text(keys.TOLERANCE) == "all"
        _refuse_paths(task_config, context)
        return Pipeline(
            FileSource(
                Folder.of(settings, task_config),
                ReadFormat.of(settings, task_config, tolerant=tolerant),
                context,
            ),
            transforms.make_chain(task_config, context),
            FileSink(
                SinkLocation(
                    Path(settings.text(files.SINK_PATH)),
                    context.cluster_id,
                    context.resource.connector,
                    SinkClaim.read(settings.text(files.TASK_CLAIM)),
                    settings.flag(files.SINK_ADOPT),
                ),
                WriteFormat.of(settings, task_config),
                context.warn,
            ),
            Pace(
                Limit(
                    settings.number(files.SOURCE_MAX_FILES), settings.number(files.SOURCE_MAX_BYTES)
                ),
                settings.number(keys.POLL_MS) / 1000,
            ),
        )

    def _inferred(self, root: Path, paths: Sequence[str]) -> str:
        settings = self._settings
        if not paths:
            raise NotReady(
                f"no file in {root} to infer a schema from; put one there, or give "
                f"`{files.SOURCE_SCHEMA}`"
            )
        return infer(
            settings.text(files.SOURCE_FORMAT),
            [root / path for path in paths],
            CsvStyle.of(settings, self._config),
            settings.number(files.SOURCE_SAMPLE_BYTES),
        )


def _with_transforms(base: ConfigDef, config: Mapping[str, str]) -> ConfigDef:
    return base.plus(transforms.definitions(config))


def _complaints(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return what is wrong with a config as a whole, under the key to change."""
    complaints: dict[str, str] = {}
    source, sink = config.get(files.SOURCE_PATH, ""), config.get(files.SINK_PATH, "")
    if source and sink and _normal(sink).is_relative_to(_normal(source)):
        told = f"lies in {files.SOURCE_PATH}: its output would be its input"
        complaints[files.SINK_PATH] = told
    for prefix, key in (
        (files.SOURCE_OPTION, files.SOURCE_PATH),
        (files.SINK_OPTION, files.SINK_PATH),
    ):
        if given := [each for each in under(prefix, config) if each.lower() in _PLACES]:
            complaints[key] = f"it alone says where: leave out {prefix}{given[0]}"
    return {**complaints, **transforms.complaints(config)}


_PLACES = ("path", "paths", "__paths__", "basepath")
"""Options of Spark's readers and writers that would lead elsewhere."""


def _normal(path: str) -> PurePath:
    return PurePath(normpath(path))


def _refuse_paths(config: Mapping[str, str], context: Context) -> None:
    """Raise `ConfigInvalid` for folders that the node's operator keeps connectors out of."""
    for key in (files.SOURCE_PATH, files.SINK_PATH):
        if flaw := context.reach.flaw_in_path(config[key]):
            raise ConfigInvalid(f"{key}: {flaw}")
