"""A worker's engine, runner and janitor on Spark, put together from the node's settings."""

import logging
from collections.abc import Callable

from ..cluster.run_folder import RunFolder
from ..cluster.spec import NodeSpec
from ..config.redaction import Redaction
from ..config.secrets import Vault
from ..connectors import common_keys as keys
from ..connectors.plugins import find_plugins
from ..connectors.spi import Context, Pipeline
from ..spark.embedded import Embedded
from ..spark.engine import Engine
from ..tasks.ledger import Ledger
from ..tasks.reports import Report
from ..tasks.runner import Runner
from .group_ledger import GroupLedger
from .janitor import Chore, Janitor
from .unsealing import UnsealingRunner

LOGGER = logging.getLogger(__name__)


def make_engine(node: NodeSpec, worker: str, redaction: Redaction) -> Engine:
    """Return a worker's engine, not started yet; its log tells no secret that is known."""
    logging.getLogger("py4j").setLevel(logging.WARNING)  # it tells of each connection
    redaction.watch_logs()
    engine = node.engine
    folder = node.data_dir / "cache" / "spark" / worker
    return Embedded(
        folder, cores=engine.cores, heap=engine.heap, conf=engine.conf, hide=redaction.hide
    )


def make_runner(
    engine: Engine,
    ledger: Ledger,
    node: NodeSpec,
    report: Callable[[Report], None],
    redaction: Redaction,
) -> UnsealingRunner:
    """Return what runs a worker's connectors and tasks."""

    def runner(tell: Callable[[Report], None]) -> Runner:
        return Runner(
            engine,
            ledger,
            find_plugins(),
            tell,
            grace_ms=node.engine.grace_ms,
            reach=node.reach,
            hide=redaction.hide,
        )

    vault = Vault(RunFolder(node.data_dir).key())
    return UnsealingRunner(vault, report, runner, redaction)


def make_janitor(ledger: GroupLedger, node: NodeSpec, redaction: Redaction) -> Janitor:
    """Return what finishes the work of tasks that no worker has any more."""
    vault, plugins = Vault(RunFolder(node.data_dir).key()), find_plugins()

    def pipeline(chore: Chore) -> Pipeline:
        made_by = plugins.find(chore.connector_config.get(keys.CONNECTOR_CLASS, "")).made_by
        config, secrets = vault.open(chore.resource.connector, chore.config)
        redaction.learn(secrets)
        cluster = ledger.cluster_id
        context = Context(chore.resource, LOGGER.warning, reach=node.reach, cluster_id=cluster)
        return made_by().pipeline(context, config)

    return Janitor(ledger, pipeline)
