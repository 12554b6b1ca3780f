"""The resource of a connector: it splits the work into task configs, and again when needed."""

from collections.abc import Callable, Mapping
from threading import Event

from ....events.model import ErrorClass, RunState
from ....projections.launches import Launch
from ..spi.config import ConfigInvalid
from ..spi.connector import Connector
from ..spi.context import Context
from ..spi.errors import Away, BadInput, CallTimedOut, NotReady
from ..spi.keys import common as keys
from .contention import IdlePauses
from .failures import LastFailure
from .ledger import LedgerUnavailable
from .plugins.calls import CallLimits, Calls
from .plugins.guard import guard_connector
from .plugins.results import check_task_configs
from .reports import Ending, Report, StatusReports, TaskConfigsChanged
from .restarts import Halt, Outage, RestartPolicy, Restarts, run_with_restarts

_POLL_S = 1.0


class ConnectorLoop:
    """One connector under one fencing token; `run` is called on a separate thread."""

    def __init__(
        self,
        launch: Launch,
        make: Callable[[], Connector],
        report: Callable[[Report], None],
        complete: Callable[[Context], Context] = lambda context: context,
        pauses: IdlePauses | None = None,
    ) -> None:
        """Store the factory of the connector; `complete` adds the node's services to a context."""
        self.halt = Halt()
        self.failure: LastFailure | None = None  # a paused connector is not FAILED, as in Connect
        self._launch = launch
        self._make = make
        self._report = report
        self._restarts = Restarts(RestartPolicy.of(launch.connector_config))
        self._status = StatusReports(launch, report, lambda: self._restarts.made)
        self._outage = Outage(self._restarts.policy, self.halt, self._status.report)
        self._complete = complete
        self._pauses = pauses or IdlePauses()
        self._limits = CallLimits.of(launch.connector_config)
        self._calls = Calls(self._limits)
        self._configs: tuple[Mapping[str, str], ...] | None = None
        """The task configs that were reported last; None: none yet."""

    def run(self, error: Exception | None = None) -> Ending:
        """Report task configs at the start and whenever they change, until asked to end.

        If this thread replaces one that was left behind, `error` is the error of that thread.
        """
        run_with_restarts(self._attempt, self.halt, self._restarts, self._status.report, error)
        return Ending.CANCELLED if self.halt.is_cancelled else Ending.STOPPED

    def cancel(self) -> None:
        """Ask it to end now."""
        self.halt.cancel()

    def leave(self, *, any_call: bool = False) -> CallTimedOut | None:
        """Leave the current attempt behind if a plugin call is overdue; see `Calls.leave`."""
        return self._calls.leave(any_call=any_call)

    def _attempt(self) -> None:
        config = self._launch.connector_config
        calls = self._calls = Calls(self._limits)
        connector = guard_connector(calls.run("connector", self._make), calls)
        split = self._configs or self._launch.split
        context = Context(self._launch.resource, self._status.warn, split)
        try:
            connector.start(self._complete(context), config)
            try:
                self._watch(connector, keys.COMMON.parse(config).number(keys.TASKS_MAX))
            finally:
                connector.stop()
        except Away as away:
            self._outage.wait(away)
        except BadInput as error:
            error.is_deferred = True  # retry: the readable input may suffice for a split
            raise

    def _watch(self, connector: Connector, max_tasks: int) -> None:
        """Split the work, and again whenever the connector asks for it."""
        due = True
        while not self.halt.is_draining:
            if due:
                due = not self._reconfigure(connector, max_tasks)
            self._pauses.sleep(self.halt, Event(), _POLL_S)
            due = due or connector.needs_reconfiguration()
            if self._outage.is_on and not due:  # all calls have succeeded
                self._outage.end()
                self._status.report(RunState.RUNNING)

    def _reconfigure(self, connector: Connector, max_tasks: int) -> bool:
        try:
            configs = check_task_configs(connector.task_configs(max_tasks))
        except (NotReady, LedgerUnavailable) as waiting:
            self._status.report(RunState.RUNNING, f"waiting: {waiting}", error=ErrorClass.OUTSIDE)
            return False
        if len(configs) > max_tasks:
            raise ConfigInvalid(f"it made {len(configs)} task configs; {max_tasks} are allowed")
        if configs != self._configs:
            self._configs = configs
            launch = self._launch
            self._report(TaskConfigsChanged(launch.resource.connector, launch.token, configs))
        if not self._outage.is_on:
            self._status.report(RunState.RUNNING)
        return True
