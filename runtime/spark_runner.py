"""A worker's engine and runner on Spark, put together from the node's settings."""

from collections.abc import Callable

from .connectors.plugins import find_plugins
from .ledger import Ledger
from .node import NodeSpec
from .reports import Report
from .runner import Runner
from .spark.embedded import Embedded
from .spark.engine import Engine


def make_engine(node: NodeSpec, worker: str) -> Engine:
    """Return a worker's engine, not started yet."""
    engine = node.engine
    folder = node.data_dir / "cache" / "spark" / worker
    return Embedded(folder, cores=engine.cores, heap=engine.heap, conf=engine.conf)


def make_runner(
    engine: Engine, ledger: Ledger, node: NodeSpec, report: Callable[[Report], None]
) -> Runner:
    """Return what runs a worker's connectors and tasks."""
    return Runner(engine, ledger, find_plugins(), report, grace_ms=node.engine.grace_ms)
