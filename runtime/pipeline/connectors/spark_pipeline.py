"""The built-in connector: any source type, transforms in Spark, any sink type."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import ClassVar

from ....events.commits import Document, Lag
from ..lineage.keys import lineage_of
from ..spi.config import (
    ConfigDef,
    ConfigInvalid,
    Definition,
    ParsedConfig,
    Validation,
    raise_if_invalid,
    strip_prefix,
)
from ..spi.connector import Connector, Delivery, Pace, Pipeline, Promise
from ..spi.context import Context, ExternalAccess, ProbeResult
from ..spi.offsets import Offsets, Seek
from ..spi.rows import LetterPage, LetterQuery
from ..spi.source import Limit
from ..spi.types import SinkType, SourceType
from ..transforms import catalogue as transforms
from . import dead_letter_queue as queue
from . import pipeline_keys as keys
from .config_check import probe
from .error_keys import tolerance_of
from .letter_retry import retry_config
from .queue_reading import read_letters

_MOST_RANGES = 4096
"""The most ranges in a batch, since each has a fixed cost."""


class SparkPipeline(Connector):
    """Reads from `source.type`, applies the transforms, writes to `sink.type`."""

    version: ClassVar[str] = "1.0"
    delivery: ClassVar[Delivery] = Delivery.EXACTLY_ONCE
    full_name: ClassVar[str] = "fairlead.runtime.connectors.spark_pipeline.SparkPipeline"

    def __init__(self) -> None:
        self._config: Mapping[str, str] = {}
        """The config of `start`, with references resolved."""
        self._types: tuple[SourceType, SinkType] | None = None
        """None before the start, and after the stop."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions, without those of transforms, which depend on the config."""
        return keys.keys_of({})

    @classmethod
    def optional_keys(cls) -> Mapping[str, Sequence[Definition]]:
        """Return the keys of each installed type except the defaults."""
        return keys.keys_of_types()

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Validation:
        """Check each key by itself, then the keys of each type and transform together."""
        return keys.keys_of(config).check(config).plus(_complaints(config))

    @classmethod
    def delivery_of(cls, config: Mapping[str, str]) -> Promise:
        """Return the weaker guarantee of the two types; raises `PluginUnknown`."""
        types = keys.PipelineTypes.of(config)
        source, sink = types.source.delivery_of(config), types.sink.delivery_of(config)
        whole = source.and_also(sink)
        named = ((keys.SOURCE_TYPE, source), (keys.SINK_TYPE, sink))
        less = (
            f"{key}={config[key]} is {delivery.value}"
            for key, (delivery, why) in named
            if delivery is not cls.delivery and not why
        )
        return Promise(whole.delivery, (*less, *whole.why))

    @classmethod
    def has_external_state(cls, config: Mapping[str, str]) -> bool:
        """Return whether the source's type has external state."""
        return keys.PipelineTypes.of(config).source.has_external_state(config)

    @classmethod
    def probe(cls, config: Mapping[str, str], outside: ExternalAccess) -> ProbeResult:
        """Check source and sink, and let Spark analyse the SQL of the transforms."""
        return probe(config, outside, keys.PipelineTypes.of(config))

    @classmethod
    def check_offset(
        cls, config: Mapping[str, str], partition: Document, offset: Document | None
    ) -> None:
        """Check an offset by the rules of the source's type."""
        keys.PipelineTypes.of(config).source.check_offset(config, partition, offset)

    @classmethod
    def seek(
        cls, config: Mapping[str, str], outside: ExternalAccess, to: Seek, offsets: Offsets
    ) -> Offsets:
        """Return the offsets to change, by the rules of the source's type."""
        return keys.PipelineTypes.of(config).source.seek(config, outside, to, offsets)

    @classmethod
    def lag(
        cls, config: Mapping[str, str], outside: ExternalAccess, offsets: Offsets
    ) -> Lag | None:
        """Return the lag, which the source's type computes."""
        return keys.PipelineTypes.of(config).source.lag(config, outside, offsets)

    @classmethod
    def read_letters(
        cls, config: Mapping[str, str], outside: ExternalAccess, query: LetterQuery
    ) -> LetterPage:
        """Return a page of what its folder or topic of dead letters has."""
        return read_letters(config, outside, query)

    @classmethod
    def retry_config(
        cls, config: Mapping[str, str], task_config: Mapping[str, str], name: str
    ) -> Mapping[str, str]:
        """Return a config that reads its folder of letters, and has its transforms and sink."""
        return retry_config(config, task_config, name)

    def start(self, context: Context, config: Mapping[str, str]) -> None:
        """Start with a config, and log its warnings."""
        validation = self.validate(config)
        raise_if_invalid(validation)
        for remark in validation.remarks:
            context.warn(remark)
        settings = keys.keys_of(config).parse(config)
        types = keys.PipelineTypes.of(config)
        self._config = dict(config)
        self._types = (
            types.source(context, self._config, settings),
            types.sink(context, self._config, settings),
        )

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Return the connector's config for each task, with the keys of source, sink and queue."""
        if self._types is None:
            raise RuntimeError("the connector was not started")
        source, sink = self._types
        shares = source.split(max_tasks)
        claim = queue.claim_queue(sink.context, self._config, sink.settings)
        common = dict(claim)
        if not self._config.keys().isdisjoint((keys.RATE_ROWS, keys.RATE_BYTES)):
            common[keys.TASK_COUNT] = str(len(shares))
        of_sink = sink.task_configs(len(shares))
        return [
            {**self._config, **share, **each, **common}
            for share, each in zip(shares, of_sink, strict=True)
        ]

    def needs_reconfiguration(self) -> bool:
        """Return whether the split has to be made again."""
        return any(each.needs_reconfiguration() for each in self._types or ())

    def stop(self) -> None:
        """Release the resources of both types."""
        types, self._types = self._types or (), None
        for each in types:
            each.stop()

    def pipeline(self, context: Context, task_config: Mapping[str, str]) -> Pipeline:
        """Make the pipeline that a task config describes; raises `ConfigInvalid`.

        A config in an old log may have what an earlier release took, and references are resolved.
        """
        if flaws := _complaints(task_config):
            raise ConfigInvalid("; ".join(f"{key}: {why}" for key, why in flaws.items()))
        settings = keys.task_keys_of(task_config).parse(task_config)
        types = keys.PipelineTypes.of(task_config)
        chain = transforms.make_chain(task_config, context)
        may_use = any(each.may_use_file_names for each in chain)
        by_arrow = context.by_arrow and not chain and settings.text(keys.LANE) != keys.SPARK
        source_context = replace(context, may_use_file_names=may_use, by_arrow=by_arrow)
        spark_settings = strip_prefix(keys.SPARK_CONF, task_config)
        known = context.spark_settings
        of_task = None if known is None else {**known, **spark_settings}
        sink = types.sink.sink(replace(context, spark_settings=of_task), task_config, settings)
        return Pipeline(
            sink.paired(types.source.source(source_context, task_config, settings)),
            chain,
            sink,
            _pace(settings, types.sink),
            tolerance_of(context, task_config, settings),
            queue.queue_sink(context, task_config, settings),
            spark_settings,
            task_config.get(keys.SINK_TYPE, keys.FILES),
            lineage_of(context, task_config, types.source, types.sink),
            by_arrow,
        )


def _pace(settings: ParsedConfig, sink: type[SinkType]) -> Pace:
    return Pace(
        Limit(
            settings.number(keys.BATCH_MAX_ROWS),
            settings.number(keys.BATCH_MAX_BYTES),
            _MOST_RANGES,
        ),
        settings.number(keys.BATCH_TARGET_MS) / 1000,
        settings.number(keys.POLL_MS) / 1000,
        settings.number(keys.LINGER_MS) / 1000,
        _rate(settings, keys.RATE_ROWS),
        _rate(settings, keys.RATE_BYTES),
        sink.rotates_after_s(settings),
    )


def _rate(settings: ParsedConfig, key: str) -> float:
    """Return a task's share of a rate limit of its connector."""
    if settings.values[key] is None:
        return inf
    return settings.number(key) / settings.number(keys.TASK_COUNT)


def _complaints(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return errors of keys that do not fit together, by the key to change."""
    complaints = dict(keys.unknown_types(config))
    if not complaints:
        types = keys.PipelineTypes.of(config)
        complaints |= {**types.source.complaints(config), **types.sink.complaints(config)}
    complaints |= {**queue.flaws_in_queue(config), **transforms.complaints(config)}
    return {**complaints, **keys.flaws_in_settings(config)}
