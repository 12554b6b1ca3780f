"""A worker's task runner and janitor on Spark, built from the node's spec.

It restarts an engine that went down, under back-off, and reports when the engine is warm. Secrets
in configs are decrypted for it, and redacted in its reports.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from threading import Lock
from typing import Final, Protocol

from ....actors.timing import Attempts, Backoff
from ....events.model import ErrorClass, Resource, Resources, RunState, Token
from ....projections.launches import Launch
from ....projections.metrics.processes import WorkerMetrics
from ...cluster.engine_state import log_change, state_of
from ...cluster.node_files import UP, EngineFile, engine_file, write_engine
from ...cluster.run_folder import RunFolder
from ...cluster.spec import NodeSpec
from ...config.references.redaction import Redaction
from ...config.references.resolving import ReferenceBroken
from ...config.secrets import CannotUnseal, Vault
from ...pipeline.connectors.plugins import find_plugins
from ...pipeline.engines.engine import EngineState
from ...pipeline.engines.settings import is_connect, known_settings
from ...pipeline.spi.connector import Pipeline
from ...pipeline.spi.context import Context
from ...pipeline.tasks.contention import BatchSlots
from ...pipeline.tasks.ledger import Ledger
from ...pipeline.tasks.reports import (
    BatchDone,
    Ending,
    Report,
    StatusChanged,
    Stopped,
    TaskConfigsChanged,
    Warned,
)
from ...pipeline.tasks.runner import Runner
from .cleanup_duty import CleanupDuty
from .cleanups import Cleanup
from .core.contract import CoreReport, EngineStarted, EngineWarm
from .engines import WorkerEngine
from .group_ledger import GroupLedger
from .janitor import Janitor
from .plugins.hosted import HostedPlugins
from .plugins.rights import ActorRights
from .runner import TaskRunner

LOGGER = logging.getLogger(__name__)
ENGINE_BACKOFF_MS: Final = Backoff(5_000, 120_000)
"""The delay before an engine that went down repeatedly is restarted."""
SESSION_BACKOFF_MS: Final = Backoff(2_000, 15_000)
"""The same for a session on a Spark Connect server: a new session is only a call."""
LOOK_MS: Final = 1_000
"""How often the engine is checked and the janitor called."""
WARM_SECONDS: Final = 0.1
"""How often an engine that is down is checked for being warm."""


class HostReferences(Protocol):
    """Which references in configs are not resolved here, but by plugin hosts."""

    def providers_for(self, config: Mapping[str, str]) -> Collection[str]:
        """Return the beginnings of those references in a config that a host resolves."""
        ...

    def secrets_of(self, connector: str) -> Mapping[str, str]:
        """Return the secrets that hosts have looked up for a connector, and what to show."""
        ...


class DecryptingRunner:
    """Wraps a runner: it takes configs with sealed secrets; the connectors see plain values."""

    def __init__(
        self,
        vault: Vault,
        report: Callable[[Report], None],
        make_runner: Callable[[Callable[[Report], None]], TaskRunner],
        redaction: Redaction | None = None,
        hosted: HostReferences | None = None,
    ) -> None:
        self._vault = vault
        self._tell = report
        self._redaction = redaction or Redaction()
        self._hosted = hosted
        self._lock = Lock()
        """Held while `_sealed` is used: reports come from any thread."""
        self._sealed: dict[str, Launch] = {}
        """The last launch of each connector or one of its tasks, with sealed secrets."""
        self._unopened: dict[Resource, Token] = {}
        """Resources whose secrets could not be opened: they are FAILED until they are stopped."""
        self._runner = make_runner(self._report)

    def start(self, launch: Launch) -> None:
        """Run a launch with its secrets unsealed; report FAILED if that is not possible."""
        name = launch.resource.connector
        with self._lock:
            self._sealed[name] = launch
        left = self._hosted.providers_for(launch.connector_config) if self._hosted else ()
        try:
            opened = replace(
                launch,
                connector_config=self._unseal(name, launch.connector_config, left),
                config=self._unseal(name, launch.config, left),
                split=tuple(self._unseal(name, each, left) for each in launch.split),
            )
        except (CannotUnseal, ReferenceBroken) as error:
            self._unopened[launch.resource] = launch.token
            self._tell(_unseal_failure(launch.resource, launch.token, error))
        else:
            self._runner.start(opened)

    def stop(self, resource: Resource) -> None:
        """Stop a resource gracefully, after its current batch."""
        if not self._has_ended(resource):
            self._runner.stop(resource)

    def turn(self, resource: Resource, target_state: RunState) -> None:
        """Pause or resume a running task of Connect's own class, in its place."""
        self._runner.turn(resource, target_state)

    def abandon(self) -> None:
        """Cancel everything at once."""
        for resource in [*self._unopened]:
            self._has_ended(resource)
        self._runner.abandon()

    def wake(self) -> None:
        """Wake all tasks: each checks at once whether its engine is there."""
        self._runner.wake()

    def close(self, seconds: float) -> Resources:
        """Stop everything; return the resources that still run after so many seconds."""
        return self._runner.close(seconds)

    def _has_ended(self, resource: Resource) -> bool:
        """Report a resource that was never started as stopped; return whether it was such a one."""
        token = self._unopened.pop(resource, None)
        if token is not None:
            self._tell(Stopped(resource, token, Ending.STOPPED))
        return token is not None

    def _unseal(
        self, connector: str, config: Mapping[str, str], left: Collection[str]
    ) -> Mapping[str, str]:
        opened = self._vault.open(connector, config, left)
        self._redaction.learn(opened.secrets)
        return opened.config

    def _report(self, report: Report) -> None:
        """Forward a report with its secrets redacted, and those in task configs sealed."""
        match report:
            case StatusChanged():
                hide = self._redaction.hide
                self._tell(replace(report, reason=hide(report.reason), trace=hide(report.trace)))
            case Warned():
                self._tell(replace(report, text=self._redaction.hide(report.text)))
            case TaskConfigsChanged():
                self._tell_split(report)
            case _:
                self._tell(report)

    def _tell_split(self, report: TaskConfigsChanged) -> None:
        with self._lock:
            stored = self._sealed[report.connector].connector_config
        hosted = self._hosted
        left = hosted.providers_for(stored) if hosted else ()
        further: Mapping[str, str] = hosted.secrets_of(report.connector) if hosted else {}
        try:
            configs = tuple(
                self._vault.conceal(report.connector, config, stored, left, further)
                for config in report.configs
            )
        except (CannotUnseal, ReferenceBroken) as error:
            self._tell(_unseal_failure(Resource(report.connector), report.token, error))
        else:
            self._tell(replace(report, configs=configs))


def _unseal_failure(resource: Resource, token: Token, error: Exception) -> StatusChanged:
    failed = RunState.FAILED
    return StatusChanged(resource, token, failed, str(error), error=ErrorClass.CONFIG)


class SparkRunner:
    """Runs connectors and tasks on an engine, which it reopens when it goes down."""

    def __init__(  # noqa: PLR0913  # each is another part of the worker
        self,
        node: NodeSpec,
        worker: str,
        opened: WorkerEngine,
        ledger: GroupLedger,
        duty: CleanupDuty,
        report: Callable[[CoreReport], None],
        *,
        rights: ActorRights,
    ) -> None:
        """Use an engine that is warming up already, or that is opened when a task needs it."""
        self._engine, redaction = opened
        self._duty = duty
        self._report = report
        self._metrics = WorkerMetrics(RunFolder(node.data_dir).metrics, worker)
        self._slots = BatchSlots(
            node.engine.batches,
            RunFolder(node.data_dir).lone_batches,
            self._metrics.tell_slots,
        )
        self._hosted = HostedPlugins(node, worker, find_plugins(), ledger, redaction, rights)
        self._runner = make_runner(
            opened, ledger, node, self._hear, slots=self._slots, hosted=self._hosted
        )
        self._janitor = make_janitor(ledger, node, redaction)
        self._file = engine_file(RunFolder(node.data_dir).path, worker)
        self._is_own = not node.engine.is_shared
        """Whether its engine's state is told by this process; that of a shared one has its own."""
        self._restarts = 0
        """How often the engine was opened again."""
        self._last: EngineFile | None = None
        """The last state of the engine that was told."""
        self._known_pid: int | None = None
        """The pid of the engine's process that was reported last."""
        self._look_at_ms = 0
        """When to check the engine and call the janitor next, monotonic clock."""
        self._open_at_ms = 0
        """When the engine may be reopened, monotonic clock."""
        is_session = is_connect(node.engine.master)
        self._attempts = Attempts(SESSION_BACKOFF_MS if is_session else ENGINE_BACKOFF_MS)
        if self._engine.state is EngineState.COLD:
            report(EngineWarm())  # no work of now needs it: there is nothing to wait for
        else:
            threading.Thread(target=self._await_warm, name="engine-warm", daemon=True).start()

    def start(self, launch: Launch) -> None:
        """Run a launch."""
        self._runner.start(launch)

    def stop(self, resource: Resource) -> None:
        """Stop a resource gracefully."""
        self._runner.stop(resource)

    def turn(self, resource: Resource, target_state: RunState) -> None:
        """Pause or resume a running task of Connect's own class, in its place."""
        self._runner.turn(resource, target_state)

    def abandon(self) -> None:
        """Cancel everything at once."""
        self._runner.abandon()

    def close(self, seconds: float) -> Resources:
        """Stop everything; return the resources that still run after so many seconds."""
        return self._runner.close(seconds)

    def close_engine(self, seconds: float) -> None:
        """Close the engine."""
        self._hosted.close()
        self._engine.close(seconds)
        if self._is_own:
            self._file.unlink(missing_ok=True)
        self._metrics.close()

    def look(self, now_ms: int) -> None:
        """Open the engine if it is needed and its back-off, if any, is over; call the janitor."""
        if now_ms < self._look_at_ms:
            return
        self._look_at_ms = now_ms + LOOK_MS
        if self._engine.state is EngineState.WARM:
            self._attempts.reset()
        elif self._engine.state is EngineState.COLD and self._engine.is_wanted:
            self._engine.open()
        elif self._engine.state is EngineState.DOWN and now_ms >= self._open_at_ms:
            level = logging.WARNING if self._is_own else logging.DEBUG
            LOGGER.log(level, "the engine is down (%s): starting it again", self._engine.detail)
            self._open_at_ms = now_ms + self._attempts.next_pause()
            self._restarts += 1
            self._engine.open()
        self._tell_engine()
        self._metrics.tell_open_batch(self._slots.oldest_batch_s)
        pid = self._engine.pid
        if pid is not None and pid != self._known_pid:
            self._report(EngineStarted(pid))
        self._known_pid = pid
        if (group := self._duty.group(now_ms)) is not None:
            self._janitor.tick(group, self._duty.member_id)

    def _tell_engine(self) -> None:
        """Report a change of the engine, and wake the tasks if it is gone."""
        state, last = state_of(self._engine, self._restarts), self._last
        if state == last:
            return
        self._last = state
        is_same = last is not None and (last.state, last.pid) == (state.state, state.pid)
        if last is not None and last.state == UP and not is_same:
            self._runner.wake()
        if self._is_own:
            log_change(last, state)
            write_engine(self._file, state)

    def _await_warm(self) -> None:
        """Report once that the engine is warm; the worker takes no work before.

        If the engine goes down later, the worker keeps its work and waits for a new engine.
        """
        while not self._engine.wait_warm(LOOK_MS / 1000):
            time.sleep(WARM_SECONDS)  # an engine that is down is reopened by `look`
        self._report(EngineWarm())

    def _hear(self, report: Report) -> None:
        """Forward a report of the runner, from any thread, and count what metrics have of it."""
        match report:
            case BatchDone():
                self._metrics.observe_batch(report.seconds, report.commit.rows_in)
                for lane, (ranges, rows) in report.by_lane.items():
                    self._metrics.count_lane(lane, ranges, rows)
            case StatusChanged(error=ErrorClass() as error):
                self._metrics.count_error(error)
            case Stopped(ending=Ending.FENCED):
                self._metrics.count_fenced()
            case _:
                pass
        self._report(report)


def make_runner(
    opened: WorkerEngine,
    ledger: Ledger,
    node: NodeSpec,
    report: Callable[[Report], None],
    *,
    slots: BatchSlots,
    hosted: HostedPlugins,
) -> DecryptingRunner:
    """Build the runner of a worker's connectors and tasks."""
    engine, redaction = opened

    def runner(tell: Callable[[Report], None]) -> Runner:
        return Runner(
            engine,
            ledger,
            find_plugins(),
            tell,
            grace_ms=node.engine.grace_ms,
            slots=slots,
            reach=node.reach,
            by_arrow=node.engine.by_arrow,
            hide=redaction.hide,
            spark_settings=known_settings(node.engine.conf, node.engine.master),
            others=hosted.body,
            shared=hosted.shared,
        )

    vault = Vault(RunFolder(node.data_dir).key(), str(node.data_dir))
    return DecryptingRunner(vault, report, runner, redaction, hosted)


def make_janitor(ledger: GroupLedger, node: NodeSpec, redaction: Redaction) -> Janitor:
    """Build the janitor of a worker."""
    vault, plugins = Vault(RunFolder(node.data_dir).key(), str(node.data_dir)), find_plugins()

    def pipeline(cleanup: Cleanup) -> Pipeline:
        made_by = plugins.of(cleanup.connector_config).made_by
        config, secrets = vault.open(cleanup.resource.connector, cleanup.config)
        redaction.learn(secrets)
        cluster = ledger.cluster_id
        context = Context(cleanup.resource, LOGGER.warning, reach=node.reach, cluster_id=cluster)
        return made_by().pipeline(context, config)

    return Janitor(ledger, pipeline)
