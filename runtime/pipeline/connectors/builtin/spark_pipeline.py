"""The built-in connector: any folder of files, through SQL, into any other."""

from collections.abc import Iterable, Mapping, Sequence
from os.path import normpath
from pathlib import Path, PurePath
from typing import ClassVar

from ..common_keys import TRANSFORMS
from ..config import ConfigDef, ConfigInvalid, ParsedConfig, Validation, refuse
from ..files.formats import ReadFormat
from ..files.inference import infer
from ..files.listing import BUCKETS, Share, deal, read_share, spell, walk
from ..files.sink import FileSink, WriteFormat
from ..files.sink_marks import SinkClaim
from ..files.sink_root import SinkLocation
from ..files.source import FileSource, Folder
from ..files.text import CsvStyle
from ..spi import (
    Connector,
    Context,
    Delivery,
    Findings,
    Limit,
    NotReady,
    Outside,
    Pace,
    Pipeline,
    SinkAway,
    Transform,
)
from . import pipeline_keys as keys
from .outside import check_outside
from .sink_claim import claim_sink
from .sql import Sql, selected

MOST_TRANSFORMS = 100
"""How many transforms a pipeline may have: each has keys of its own."""

_EVERYTHING: Share = frozenset(range(BUCKETS))


class SparkPipeline(Connector):
    """Files of one format, transformed by Spark, appended to a folder as files of another."""

    version: ClassVar[str] = "1.0"
    delivery: ClassVar[Delivery] = Delivery.EXACTLY_ONCE
    full_name: ClassVar[str] = "fairlead.runtime.pipeline.connectors.spark_pipeline.SparkPipeline"

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
        return connector._inferred(Path(config[keys.SOURCE_PATH]), paths)

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
        root = Path(settings.text(keys.SOURCE_PATH))
        paths = sorted(found.path for found in walk(root, settings.text(keys.SOURCE_GLOB)))
        given = settings.text(keys.SOURCE_SCHEMA)
        schema = given or self._kept_schema() or self._inferred(root, paths)
        shares = self._kept_shares(max_tasks) or [spell(share) for share in deal(paths, max_tasks)]
        common = {
            **self._config,
            keys.TASK_SCHEMA: schema,
            keys.TASK_CLAIM: self._claim(),
            keys.TASK_ROOTLESS: self._rootless(),
        }
        return [{**common, keys.TASK_BUCKETS: share} for share in shares]

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
        return before.get(keys.TASK_ROOTLESS, before.get(keys.SOURCE_PATH, ""))

    def _kept_shares(self, max_tasks: int) -> Sequence[str]:
        """Return the shares in force if they are of as many tasks, over the same files."""
        is_same = self._source_is_same((keys.SOURCE_PATH, keys.SOURCE_GLOB))
        if not is_same or len(self._split) != min(max_tasks, BUCKETS):
            return ()
        return [config.get(keys.TASK_BUCKETS, "") for config in self._split]

    def _kept_schema(self) -> str:
        """Return the schema in force if nothing that it was inferred from has changed."""
        source = {key for key in self._config if key.startswith("source.")}
        return self._split[0].get(keys.TASK_SCHEMA, "") if self._source_is_same(source) else ""

    def _source_is_same(self, source: Iterable[str]) -> bool:
        if not self._split:
            return False
        before = self._split[0]
        return all(self._config.get(key) == before.get(key) for key in source)

    def pipeline(self, context: Context, task_config: Mapping[str, str]) -> Pipeline:
        """Make the pipeline that a task config describes."""
        settings = _with_transforms(keys.TASK_KEYS, task_config).parse(task_config)
        _refuse_paths(task_config, context)
        return Pipeline(
            FileSource(
                _folder(settings, task_config), _read_format(settings, task_config), context
            ),
            tuple(_transform(settings, alias, context) for alias in settings.items(TRANSFORMS)),
            FileSink(
                SinkLocation(
                    Path(settings.text(keys.SINK_PATH)),
                    context.cluster_id,
                    context.resource.connector,
                    SinkClaim.read(settings.text(keys.TASK_CLAIM)),
                    settings.flag(keys.SINK_ADOPT),
                ),
                WriteFormat(
                    settings.text(keys.SINK_FORMAT),
                    settings.items(keys.SINK_PARTITION_BY),
                    _write_options(settings, task_config),
                ),
                context.warn,
            ),
            Pace(
                Limit(
                    settings.number(keys.SOURCE_MAX_FILES), settings.number(keys.SOURCE_MAX_BYTES)
                ),
                settings.number(keys.POLL_MS) / 1000,
            ),
        )

    def _inferred(self, root: Path, paths: Sequence[str]) -> str:
        settings = self._settings
        if not paths:
            raise NotReady(
                f"no file in {root} to infer a schema from; put one there, or give "
                f"`{keys.SOURCE_SCHEMA}`"
            )
        return infer(
            settings.text(keys.SOURCE_FORMAT),
            [root / path for path in paths],
            _style(settings, self._config),
            settings.number(keys.SOURCE_SAMPLE_BYTES),
        )


def _with_transforms(base: ConfigDef, config: Mapping[str, str]) -> ConfigDef:
    given = config.get(TRANSFORMS, "").split(",", MOST_TRANSFORMS)[:MOST_TRANSFORMS]
    aliases = dict.fromkeys(each.strip() for each in given)
    return base.plus(each for alias in aliases if alias for each in keys.transform_keys(alias))


def _complaints(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return what is wrong with a config as a whole, under the key to change."""
    complaints: dict[str, str] = {}
    source, sink = config.get(keys.SOURCE_PATH, ""), config.get(keys.SINK_PATH, "")
    if source and sink and _normal(sink).is_relative_to(_normal(source)):
        complaints[keys.SINK_PATH] = f"lies in {keys.SOURCE_PATH}: its output would be its input"
    for prefix, key in ((keys.SOURCE_OPTION, keys.SOURCE_PATH), (keys.SINK_OPTION, keys.SINK_PATH)):
        if given := [each for each in _under(prefix, config) if each.lower() in _PLACES]:
            complaints[key] = f"it alone says where: leave out {prefix}{given[0]}"
    aliases = [each.strip() for each in config.get(TRANSFORMS, "").split(",") if each.strip()]
    if len(set(aliases)) < len(aliases):
        complaints[TRANSFORMS] = "a transform is named twice"
    if len(aliases) > MOST_TRANSFORMS:
        complaints[TRANSFORMS] = f"{len(aliases)} are given, and at most {MOST_TRANSFORMS} taken"
        return complaints
    for alias in aliases:
        kind = config.get(keys.transform_key(alias, "type"))
        needed = {"sql": "query", "select": "columns"}.get(kind or "")
        if needed and not config.get(keys.transform_key(alias, needed), "").strip():
            complaints[keys.transform_key(alias, needed)] = f"a {kind} transform needs it"
    return complaints


_PLACES = ("path", "paths", "__paths__", "basepath")
"""Options of Spark's readers and writers that would lead elsewhere."""


def _normal(path: str) -> PurePath:
    return PurePath(normpath(path))


def _folder(settings: ParsedConfig, config: Mapping[str, str]) -> Folder:
    share = settings.text(keys.TASK_BUCKETS)
    try:
        buckets = read_share(share) if share else _EVERYTHING
    except ValueError as error:
        raise ConfigInvalid(f"{keys.TASK_BUCKETS}: {error}") from None
    rootless = config.get(keys.TASK_ROOTLESS, settings.text(keys.SOURCE_PATH))
    return Folder(
        Path(settings.text(keys.SOURCE_PATH)),
        settings.text(keys.SOURCE_GLOB),
        buckets,
        settings.number(keys.SOURCE_MIN_AGE_MS),
        Path(rootless) if rootless else None,
    )


def _read_format(settings: ParsedConfig, config: Mapping[str, str]) -> ReadFormat:
    schema = settings.text(keys.TASK_SCHEMA) or settings.text(keys.SOURCE_SCHEMA)
    if not schema:
        raise ConfigInvalid(f"{keys.TASK_SCHEMA}: the connector gave this task no schema")
    options = _under(keys.SOURCE_OPTION, config)
    for encoding in [each for each in options if each.lower() in _ENCODING]:
        options.pop(encoding)  # Spark is given nothing but UTF-8
    return ReadFormat(
        settings.text(keys.SOURCE_FORMAT),
        schema,
        _style(settings, config),
        settings.text(keys.TOLERANCE) == "all",
        options,
    )


_ENCODING = ("encoding", "charset")


def _style(settings: ParsedConfig, config: Mapping[str, str]) -> CsvStyle:
    """Return how text is written, as the keys or the options of Spark's reader say."""
    options = {key.lower(): value for key, value in _under(keys.SOURCE_OPTION, config).items()}

    def option(key: str, *names: str) -> str:
        given = (options[name] for name in names if name in options)
        return next(given, settings.text(key)).replace("\\t", "\t")

    quote = option(keys.SOURCE_QUOTE, "quote")
    escape = option(keys.SOURCE_ESCAPE, "escape")
    return CsvStyle(
        header=option(keys.SOURCE_HEADER, "header").lower() == "true",
        separator=option(keys.SOURCE_SEPARATOR, "sep", "delimiter"),
        quote=quote,
        nulls=settings.items(keys.SOURCE_NULLS),
        escape="" if escape == quote else escape,
        trim=settings.flag(keys.SOURCE_TRIM),
        encoding=option(keys.SOURCE_ENCODING, *_ENCODING),
    )


def _write_options(settings: ParsedConfig, config: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options of Spark's writer; the user's own go over ours.

    CSV is RFC 4180, and times have all their digits: Spark writes neither by itself.
    """
    options = _under(keys.SINK_OPTION, config)
    form = settings.text(keys.SINK_FORMAT)
    base = {} if form == "parquet" else _TIMES
    if form == "csv":
        base = base | _RFC_4180 | {"escape": options.get("quote", '"')}
    return {**base, **options}


_RFC_4180 = {
    "header": "true",
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}
_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def _transform(settings: ParsedConfig, alias: str, context: Context) -> Transform:
    if settings.text(keys.transform_key(alias, "type")) == "sql":
        query = settings.text(keys.transform_key(alias, "query"))
    else:
        query = selected(settings.text(keys.transform_key(alias, "columns")))
    return Sql(query, context.reach.sql, holds_secret=context.hide(query) != query)


def _refuse_paths(config: Mapping[str, str], context: Context) -> None:
    """Raise `ConfigInvalid` for folders that the node's operator keeps connectors out of."""
    for key in (keys.SOURCE_PATH, keys.SINK_PATH):
        if flaw := context.reach.flaw_in_path(config[key]):
            raise ConfigInvalid(f"{key}: {flaw}")


def _under(prefix: str, config: Mapping[str, str]) -> dict[str, str]:
    return {key[len(prefix) :]: config[key] for key in config if key.startswith(prefix)}
