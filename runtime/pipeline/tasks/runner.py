"""The connectors and tasks of a worker process, each on a thread of its own.

No method waits for user code. Starts and stops return at once, and a watch thread enforces the
deadlines. Results arrive as reports, from any thread.

A launch gets a slot, which runs a connector (`ConnectorLoop`), a task (`Task`), or, if the
connector is paused or stopped, only reports that (`Suspended`). Classes that are not Python's have
other bodies, which are given from outside. A slot ends in steps, each after a time:

    stop    drain: the batch at work is finished
    cancel  the batch is given up, and its Spark job cancelled
    hung    reported, so that the worker may end the process

A plugin's call that is overdue cannot be interrupted. Its thread is left behind: it can commit
nothing any more, and another thread continues the slot with the error. After a few such threads the
resource fails for good, since each keeps its memory.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Condition, Thread
from typing import Protocol, runtime_checkable

from ....events.model import Resource, Resources, RunState, Token
from ....projections.launches import Launch
from ..connectors.plugins import Plugins
from ..engines.engine import Engine
from ..spi.config import ConfigInvalid
from ..spi.connector import Connector, Pipeline
from ..spi.context import NO_LIMITS, AccessLimits, Context, Shared
from .commits import TaskMemory
from .connector_loop import ConnectorLoop
from .contention import BatchSlots
from .failures import LastFailure
from .ledger import Ledger
from .plugins.calls import LeftBehind, StillHanging
from .reports import Ending, Hung, Report, Started, StatusReports, Stopped
from .restarts import Halt
from .task import Task, TaskHost

_WATCH_S = 0.1
"""How often the watch thread checks resources while one of them is to end."""
_IDLE_WATCH_S = 0.5
"""How often it checks the deadlines of plugin calls otherwise."""
_MOST_LEFT_BEHIND = 5
"""How many threads of one resource may hang in a plugin before it is no longer restarted."""


_FOR_EVER_S = 3600.0


class Body(Protocol):
    """The work of a launch, on a thread of its own."""

    halt: Halt
    """Asks it to end."""
    failure: LastFailure | None
    """Why it was FAILED when it ended."""

    def run(self, error: Exception | None = None) -> Ending:
        """Run until the end; `error` is that of a thread that was left behind."""
        ...

    def leave(self, *, any_call: bool = False) -> Exception | None:
        """Leave a plugin's call behind that is overdue; return its error, None if none is."""
        ...

    def cancel(self) -> None:
        """Ask it to end now; it is asked again until it has ended."""
        ...


@runtime_checkable
class TurningBody(Body, Protocol):
    """The work of a launch that can pause in its place."""

    def turn(self, target: RunState) -> None:
        """Move it to another target state, RUNNING or PAUSED, without an end."""
        ...


MakeBody = Callable[[Launch, Callable[[Report], None]], TurningBody | None]
"""Returns the body of a launch whose class is not one of Python's; None: it is not known."""


class Suspended:
    """A resource of a paused or stopped connector: it is assigned, but does not run."""

    def __init__(
        self, launch: Launch, report: Callable[[Report], None], memory: TaskMemory | None = None
    ) -> None:
        self.halt = Halt()
        self._launch = launch
        self._status = StatusReports(launch, report)
        self.failure = memory.failure if memory else None

    def run(self, error: Exception | None = None) -> Ending:
        """Report the state, and wait for the end; a task that had failed stays FAILED."""
        del error
        if self.failure:
            self._status.report(RunState.FAILED, *self.failure)
        else:
            is_stopped = self._launch.target_state is RunState.STOPPED
            is_connector = not self._launch.resource.is_task
            state = RunState.STOPPED if is_stopped and is_connector else RunState.PAUSED
            self._status.report(state)
        while not self.halt.is_draining:
            self.halt.wait(_FOR_EVER_S)
        return Ending.CANCELLED if self.halt.is_cancelled else Ending.STOPPED

    def leave(self, *, any_call: bool = False) -> None:
        """Return None: no plugin is called, so no call can be overdue."""

    def cancel(self) -> None:
        """Ask it to end now."""
        self.halt.cancel()


@dataclass(slots=True)
class _Slot:
    """One running resource; its deadlines are monotonic times in seconds."""

    launch: Launch
    body: Body
    cancel_at: float | None = None
    hung_at: float | None = None
    was_reported_hung: bool = False
    thread: Thread = field(init=False)


class Runner:
    """Runs launches; every method may be called from any thread, and only `close` blocks.

    `grace_ms` is `task.shutdown.graceful.timeout.ms`: how long a stop may take before it becomes
    a cancellation. `hung_ms` is how long a cancelled resource may take before it is reported as
    hung. `slots` limits how many batches run on the engine at once. `reach` limits what connectors
    can access on this node. `by_arrow` and `spark_settings` are those of `Context`. `hide` masks
    the secrets in a text. `others` makes the bodies of classes that are not Python's. `shared`
    has what this worker's tasks share.
    """

    def __init__(  # noqa: PLR0913  # five of them have defaults
        self,
        engine: Engine,
        ledger: Ledger,
        plugins: Plugins,
        report: Callable[[Report], None],
        *,
        grace_ms: int = 5_000,
        hung_ms: int = 5_000,
        slots: BatchSlots | None = None,
        reach: AccessLimits = NO_LIMITS,
        by_arrow: bool = True,
        hide: Callable[[str], str] = str,
        spark_settings: Mapping[str, str] | None = None,
        others: MakeBody = lambda _launch, _report: None,
        shared: Shared | None = None,
    ) -> None:
        self._host = TaskHost(engine, ledger, report, slots=slots or BatchSlots(4))
        self._ledger = ledger
        self._plugins = plugins
        self._report = report
        self._grace_s = grace_ms / 1000
        self._reach = reach
        self._by_arrow = by_arrow
        self._hide = hide
        self._spark_settings = spark_settings
        self._others = others
        self._hung_s = hung_ms / 1000
        self._shared = shared or Shared()
        self._slots: dict[Resource, _Slot] = {}
        """The running resources; a slot is removed when its thread has ended."""
        self._left_behind: dict[Resource, list[Thread]] = {}
        """The threads that were left behind, by resource."""
        self._memories: dict[Resource, tuple[Token, TaskMemory]] = {}
        """The state of a task that survives its restarts, with the token that it belongs to."""
        self._changed = Condition()
        """Guards the fields above; notified when the first slot starts, and when any begins to end
        or is removed."""
        self._closed = False
        Thread(target=self._watch, name="runner-watch", daemon=True).start()

    def start(self, launch: Launch) -> None:
        """Run a launch; raises `RuntimeError` if its resource runs already."""
        with self._changed:
            if launch.resource in self._slots:
                raise RuntimeError(f"{launch.resource} runs already: its end comes first")
            if not self._closed:
                slot = self._slots[launch.resource] = _Slot(launch, self._body(launch))
                self._start_thread(slot, self._begin, slot)
                if len(self._slots) == 1:  # the watch thread waits for the first one only
                    self._changed.notify_all()

    def stop(self, resource: Resource) -> None:
        """Drain a resource: it ends after its batch, and is cancelled after the grace period."""
        with self._changed:
            slot = self._slots.get(resource)
            if slot:
                self._drain(slot)

    def turn(self, resource: Resource, target_state: RunState) -> None:
        """Move a resource to another target state, RUNNING or PAUSED, without an end.

        Only a body of a class that is not Python's does.
        """
        with self._changed:
            slot = self._slots.get(resource)
            if slot and isinstance(slot.body, TurningBody):
                slot.body.turn(target_state)
            elif slot:
                self._drain(slot)  # its class has come or gone meanwhile: it begins anew

    def abandon(self) -> None:
        """Cancel everything: the worker may no longer be a member of the group."""
        with self._changed:
            for slot in self._slots.values():
                self._cancel(slot)

    def wake(self) -> None:
        """Wake all tasks, so that they notice at once that their engine is gone."""
        with self._changed:
            for slot in self._slots.values():
                if isinstance(slot.body, Task):
                    slot.body.wake.set()

    def running(self) -> Resources:
        """Return the resources from the call of `start` until their stop has completed."""
        with self._changed:
            return frozenset(self._slots)

    def close(self, seconds: float) -> Resources:
        """Stop everything and start nothing more; return what still runs after the given time.

        A resource that has not ended after half of that time is cancelled.
        """
        begun = time.monotonic()
        with self._changed:
            self._closed = True
            for slot in self._slots.values():
                self._drain(slot)
                slot.cancel_at = min(slot.cancel_at or begun, begun + seconds / 2)
            self._changed.wait_for(lambda: not self._slots, seconds)
            self._changed.notify_all()
            return frozenset(self._slots)

    @staticmethod
    def _start_thread(slot: _Slot, target: Callable[..., None], *args: object) -> None:
        name = f"{slot.launch.resource}@{slot.launch.token}"
        slot.thread = Thread(target=target, args=args, name=name, daemon=True)
        slot.thread.start()

    def _body(self, launch: Launch) -> Body:
        is_task, target = launch.resource.is_task, launch.target_state
        is_paused = target is RunState.PAUSED and launch.is_of_connect
        if (is_paused or target is RunState.RUNNING) and (
            other := self._others(launch, self._report)
        ):
            return other
        if target is not RunState.RUNNING:
            return Suspended(launch, self._report, self._memory(launch) if is_task else None)
        return self._task(launch) if is_task else self._connector_loop(launch)

    def _connector_loop(self, launch: Launch) -> ConnectorLoop:
        return ConnectorLoop(
            launch,
            lambda: self._make_connector(launch),
            self._report,
            self._complete_context,
            self._host.pauses,
        )

    def _task(self, launch: Launch) -> Task:
        def pipeline(context: Context) -> Pipeline:
            return self._make_connector(launch).pipeline(
                self._complete_context(context), launch.config
            )

        return Task(launch, pipeline, self._host, self._memory(launch))

    def _complete_context(self, context: Context) -> Context:
        """Return a context with the services that this worker gives to all plugins."""
        connector = context.resource.connector
        return replace(
            context,
            reach=self._reach,
            by_arrow=self._by_arrow,
            cluster_id=self._ledger.cluster_id,
            hide=self._hide,
            shared=self._shared,
            spark_settings=self._spark_settings,
            logged_offsets=partial(self._ledger.offsets, connector),
            published_offsets=partial(self._ledger.settled, connector),
        )

    def _make_connector(self, launch: Launch) -> Connector:
        config = launch.connector_config
        plugin = self._plugins.of(config)
        for key, flaw in plugin.flaws_in_version(config).items():
            raise ConfigInvalid(f"{key}: {flaw}")
        return plugin.made_by()

    def _memory(self, launch: Launch) -> TaskMemory:
        token, memory = self._memories.get(launch.resource, (None, None))
        if memory is None or token != launch.token:
            memory = TaskMemory()
            self._memories[launch.resource] = (launch.token, memory)
        return memory

    def _begin(self, slot: _Slot) -> None:
        self._report(Started(slot.launch.resource, slot.launch.token))
        self._run(slot, None)

    def _run(self, slot: _Slot, error: Exception | None) -> None:
        ending = Ending.CANCELLED
        try:
            ending = slot.body.run(error)
        except LeftBehind:
            return  # another thread continues the slot
        except BaseException:
            self._end(slot, ending)
            raise
        if slot.launch.resource.is_task:
            self._memory(slot.launch).failure = slot.body.failure
        self._end(slot, ending)

    def _end(self, slot: _Slot, ending: Ending) -> None:
        launch = slot.launch
        with self._changed:
            del self._slots[launch.resource]
            # Under the lock: a resource that `running` no longer lists has been reported.
            self._report(Stopped(launch.resource, launch.token, ending))
            self._changed.notify_all()

    def _drain(self, slot: _Slot) -> None:
        if not slot.body.halt.is_draining:
            slot.cancel_at = time.monotonic() + self._grace_s
            slot.body.halt.drain()
            self._changed.notify_all()

    def _cancel(self, slot: _Slot) -> None:
        if slot.hung_at is None:
            slot.hung_at = time.monotonic() + self._hung_s
            slot.body.halt.cancel()
            self._changed.notify_all()

    def _watch(self) -> None:
        """Enforce the deadlines of resources and calls; the engine is not called under the lock."""
        while True:
            with self._changed:
                if self._closed and not self._slots:
                    return
                slots = [*self._slots.values()]
                cancelled = [slot for slot in slots if self._is_cancelled(slot)]
            for slot in slots:
                self._leave_if_late(slot)
            for slot in cancelled:
                self._report_if_hung(slot)
                slot.body.cancel()
            with self._changed:
                ending = any(slot.body.halt.is_draining for slot in self._slots.values())
                if not self._closed or self._slots:
                    idle = _IDLE_WATCH_S if self._slots else None
                    self._changed.wait(_WATCH_S if ending else idle)

    def _is_cancelled(self, slot: _Slot) -> bool:
        if slot.cancel_at is not None and time.monotonic() >= slot.cancel_at:
            self._cancel(slot)
        return slot.body.halt.is_cancelled

    def _leave_if_late(self, slot: _Slot) -> None:
        """Replace a thread whose plugin call is overdue."""
        is_hung = slot.hung_at is not None and time.monotonic() >= slot.hung_at
        error = slot.body.leave(any_call=is_hung)
        if error is None:
            return
        resource = slot.launch.resource
        with self._changed:
            left = [*self._left_behind.get(resource, ()), slot.thread]
            left = self._left_behind[resource] = [each for each in left if each.is_alive()]
            if len(left) >= _MOST_LEFT_BEHIND:
                error = StillHanging(f"{len(left)} of its threads hang by now: {error}")
            if is_hung:
                slot.hung_at = time.monotonic() + self._hung_s
            self._start_thread(slot, self._run, slot, error)

    def _report_if_hung(self, slot: _Slot) -> None:
        overdue = slot.hung_at is not None and time.monotonic() >= slot.hung_at
        if overdue and not slot.was_reported_hung and slot.thread.is_alive():
            slot.was_reported_hung = True
            self._report(Hung(slot.launch.resource, slot.launch.token))
