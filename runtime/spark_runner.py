"""A worker's engine and runner on Spark, put together from the node's settings."""

from collections.abc import Callable

from .connectors.plugins import find_plugins
from .ledger import Ledger
from .node import NodeSpec
from .reports import Report
from .run_folder import RunFolder
from .runner import Runner
from .secrets import Vault
from .spark.embedded import Embedded
from .spark.engine import Engine
from .unsealing import UnsealingRunner


def make_engine(node: NodeSpec, worker: str) -> Engine:
    """Return a worker's engine, not started yet."""
    engine = node.engine
    folder = node.data_dir / "cache" / "spark" / worker
    return Embedded(folder, cores=engine.cores, heap=engine.heap, conf=engine.conf)


def make_runner(
    engine: Engine, ledger: Ledger, node: NodeSpec, report: Callable[[Report], None]
) -> UnsealingRunner:
    """Return what runs a worker's connectors and tasks."""

    def runner(tell: Callable[[Report], None]) -> Runner:
        return Runner(engine, ledger, find_plugins(), tell, grace_ms=node.engine.grace_ms)

    vault = Vault(RunFolder(node.data_dir).key())
    return UnsealingRunner(vault, report, runner)
