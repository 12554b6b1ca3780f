# pyright: basic
"""Creates sources and sinks from configs as a task does, and reads batches."""

from collections.abc import Mapping
from typing import Any

from fairlead.events.commits import Document, identity
from fairlead.events.model import Resource
from fairlead.runtime.pipeline.connectors import pipeline_keys as keys
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.sink import Sink
from fairlead.runtime.pipeline.spi.source import BatchPlan, Source

TASK = Resource("orders", 0)
CLUSTER = "a-cluster"
_NAMED = {"name": TASK.connector, "connector.class": "SparkPipeline"}


def config_from(kind: str, given: Mapping[str, str], **fixed: str) -> dict[str, str]:
    """Return the config of a source; keys without `source.`, with `_` for dots."""
    beyond = {"sink.format": "parquet", "sink.path": "/nowhere"}
    return {**_NAMED, "source.type": kind, **beyond, **_spelled("source", {**fixed, **given})}


def config_to(kind: str, given: Mapping[str, str], **fixed: str) -> dict[str, str]:
    """Return the config of a sink; keys without `sink.`, with `_` for dots."""
    before = {"source.format": "csv", "source.path": "/nowhere"}
    return {**_NAMED, **before, "sink.type": kind, **_spelled("sink", {**fixed, **given})}


def sink_of(config: dict[str, str], task: Resource = TASK, cluster_id: str = CLUSTER) -> Sink[Any]:
    """Create a task's sink from its config."""
    assert SparkPipeline.validate(config).errors == {}
    settings = keys.task_keys_of(config).parse(config)
    context = Context(task, print, cluster_id=cluster_id)
    return keys.SINK_TYPES.find(config["sink.type"]).sink(context, config, settings)


def source_of(task_config: dict[str, str], task: Resource, warned: Any = print) -> Source[Any]:
    """Create a task's source from its config, including its share."""
    settings = keys.task_keys_of(task_config).parse(task_config)
    context = Context(task, warned, cluster_id=CLUSTER)
    return keys.SOURCE_TYPES.find(task_config["source.type"]).source(context, task_config, settings)


def take(
    source: Source[Any], plan: BatchPlan[Any], offsets: dict[str, Document], spark: Any = None
) -> Any:
    """Read one batch, count it and acknowledge it."""
    rows = source.read(spark, plan.ranges)
    source.verify(plan.ranges)
    for advance in plan.advances:
        assert offsets.get(identity(advance.partition)) == advance.start
        assert advance.end is not None
        offsets[identity(advance.partition)] = advance.end
    source.acknowledge(plan.advances)
    return rows


def _spelled(end: str, given: Mapping[str, str]) -> dict[str, str]:
    return {f"{end}.{key.replace('_', '.')}": value for key, value in given.items()}
