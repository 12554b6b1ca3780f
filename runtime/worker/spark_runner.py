"""A worker's engine, runner and janitor on Spark, put together from the node's settings.

The engine is looked after: it is started again when it went down, and known when it can take work.
"""

import logging
from collections.abc import Callable
from typing import Final

from ...actors.backoff import Attempts, Backoff
from ..cluster.run_folder import RunFolder
from ..cluster.spec import NodeSpec
from ..config.redaction import Redaction
from ..config.secrets import Vault
from ..connectors import common_keys as keys
from ..connectors.builtin.plugins import find_plugins
from ..connectors.spi import Context, Pipeline
from ..spark.embedded import Embedded
from ..spark.engine import Engine, EngineState
from ..tasks.ledger import Ledger
from ..tasks.reports import Report
from ..tasks.runner import Runner
from .group_ledger import GroupLedger
from .janitor import Chore, Janitor
from .unsealing import UnsealingRunner

LOGGER = logging.getLogger(__name__)
ENGINE_BACKOFF_MS: Final = Backoff(5_000, 120_000)
"""How long an engine that went down again rests before it is started once more."""


class EngineCare:
    """One engine; `look` is to be called about once a second, on the thread that opened it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.is_warm = False
        """Once warm counts as warm: what runs here waits for a new engine rather than moves."""
        self._known_pid: int | None = None
        self._open_at_ms = 0
        self._attempts = Attempts(ENGINE_BACKOFF_MS)

    def look(self, now_ms: int) -> None:
        """Start the engine again if it went down and has rested."""
        if self.engine.state is EngineState.WARM:
            self.is_warm = True
            self._attempts.reset()
        elif self.engine.state is EngineState.DOWN and now_ms >= self._open_at_ms:
            LOGGER.warning("the engine is down (%s): starting it again", self.engine.detail)
            self._open_at_ms = now_ms + self._attempts.next_pause()
            self.engine.open()

    def new_pid(self) -> int | None:
        """Return the process id of the engine's driver, once for each driver."""
        pid = self.engine.pid
        is_new = pid is not None and pid != self._known_pid
        self._known_pid = pid
        return pid if is_new else None


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
