"""What a worker process runs: connectors and tasks, a thread each.

Nothing here waits for user code. Starting and stopping return at once, a watching thread keeps
the deadlines, and what comes of it all is told by reports, from whatever thread it happens in.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Condition, Thread

from ....events.model import Resource, Resources, RunState, Token
from ....projections.launches import Launch
from ..connectors import common_keys as keys
from ..connectors.builtin.plugins import Plugins
from ..spark.engine import Engine
from ..spi.config import ConfigInvalid
from ..spi.connector import Connector, Pipeline
from ..spi.context import NO_LIMITS, Context, Reach, Shared
from .commits import TaskMemory
from .connector_loop import ConnectorLoop
from .contention import Admission
from .ledger import Ledger
from .plugins.calls import LeftBehind, StillHanging
from .reports import Ending, Hung, Report, Started, Stopped
from .suspended import Suspended
from .task import Task, TaskHost

_WATCH_S = 0.1
_LOOK_S = 0.5
"""How often the deadlines of calls are looked at."""
_MOST_LEFT = 5
"""So many threads of one resource may hang in a plugin before it is not restarted by itself."""


@dataclass(slots=True)
class _Slot:
    """One resource that runs; the deadlines are of the monotonic clock, in seconds."""

    launch: Launch
    body: Task | ConnectorLoop | Suspended
    cancel_at: float | None = None
    hung_at: float | None = None
    was_told_hung: bool = False
    thread: Thread = field(init=False)


class Runner:
    """Runs launches; every method may be called from any thread, and none blocks but `close`.

    `grace_ms` is `task.shutdown.graceful.timeout.ms`: how long a stop may take before it becomes
    a cancellation. `hung_ms` is how long a cancelled resource may take before it is told as hung.
    `most_batches` is how many batches may run on the engine at once. `reach` is what connectors may
    reach on this node, `hide` takes secrets out of a text.
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
        most_batches: int = 4,
        reach: Reach = NO_LIMITS,
        hide: Callable[[str], str] = str,
    ) -> None:
        self._host = TaskHost(engine, ledger, report, admission=Admission(most_batches))
        self._ledger = ledger
        self._plugins = plugins
        self._report = report
        self._grace_s = grace_ms / 1000
        self._reach = reach
        self._hide = hide
        self._hung_s = hung_ms / 1000
        self._shared = Shared()
        self._slots: dict[Resource, _Slot] = {}
        """What runs, by resource; a slot goes when its thread has ended."""
        self._left: dict[Resource, list[Thread]] = {}
        """The threads that were left behind, by resource."""
        self._memories: dict[Resource, tuple[Token, TaskMemory]] = {}
        """What outlives a restart of a task, with the token that it is of."""
        self._changed = Condition()
        """Guards all of this, and is notified whenever a slot begins to end or is gone."""
        self._closed = False
        Thread(target=self._watch, name="runner-watch", daemon=True).start()

    def start(self, launch: Launch) -> None:
        """Run a launch; nothing of its resource may run yet."""
        with self._changed:
            if launch.resource in self._slots:
                raise RuntimeError(f"{launch.resource} runs already: its end comes first")
            if not self._closed:
                slot = self._slots[launch.resource] = _Slot(launch, self._body(launch))
                self._go(slot, self._begin, slot)
                self._changed.notify_all()

    def stop(self, resource: Resource) -> None:
        """Let a resource finish its batch and end; cut it short after the grace period."""
        with self._changed:
            slot = self._slots.get(resource)
            if slot:
                self._drain(slot)

    def abandon(self) -> None:
        """Cut everything short: the worker may have lost its place in the group."""
        with self._changed:
            for slot in self._slots.values():
                self._cut(slot)

    def running(self) -> Resources:
        """Return what runs: from before its start began until its stop has completed."""
        with self._changed:
            return frozenset(self._slots)

    def close(self, seconds: float) -> Resources:
        """Stop everything and start nothing more; return what still runs after so long.

        A task that has not ended when half of the time is over is cut short.
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
    def _go(slot: _Slot, what: Callable[..., None], *args: object) -> None:
        name = f"{slot.launch.resource}@{slot.launch.token}"
        slot.thread = Thread(target=what, args=args, name=name, daemon=True)
        slot.thread.start()

    def _body(self, launch: Launch) -> Task | ConnectorLoop | Suspended:
        is_task = launch.resource.is_task
        if launch.target_state is not RunState.RUNNING:
            return Suspended(launch, self._report, self._memory(launch) if is_task else None)
        return self._task(launch) if is_task else self._connector(launch)

    def _connector(self, launch: Launch) -> ConnectorLoop:
        return ConnectorLoop(launch, lambda: self._made(launch), self._report, self._completed)

    def _task(self, launch: Launch) -> Task:
        def pipeline(context: Context) -> Pipeline:
            return self._made(launch).pipeline(self._completed(context), launch.config)

        return Task(launch, pipeline, self._host, self._memory(launch))

    def _completed(self, context: Context) -> Context:
        """Return a context with what everything that runs here is given."""
        connector = context.resource.connector
        return replace(
            context,
            reach=self._reach,
            cluster_id=self._ledger.cluster_id,
            hide=self._hide,
            shared=self._shared,
            logged_offsets=partial(self._ledger.offsets, connector),
            published_offsets=partial(self._ledger.settled, connector),
        )

    def _made(self, launch: Launch) -> Connector:
        config = launch.connector_config
        plugin = self._plugins.find(config.get(keys.CONNECTOR_CLASS, ""))
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
            return  # another thread runs the slot
        except BaseException:
            self._end(slot, ending)
            raise
        self._end(slot, ending)

    def _end(self, slot: _Slot, ending: Ending) -> None:
        launch = slot.launch
        with self._changed:
            del self._slots[launch.resource]
            # In one step: what does not run any more has been reported.
            self._report(Stopped(launch.resource, launch.token, ending))
            self._changed.notify_all()

    def _drain(self, slot: _Slot) -> None:
        if not slot.body.halt.is_draining:
            slot.cancel_at = time.monotonic() + self._grace_s
            slot.body.halt.drain()
            self._changed.notify_all()

    def _cut(self, slot: _Slot) -> None:
        if slot.hung_at is None:
            slot.hung_at = time.monotonic() + self._hung_s
            slot.body.halt.cancel()
            self._changed.notify_all()

    def _watch(self) -> None:
        """Keep the deadlines of what is to end; ask nothing of the engine under the lock."""
        while True:
            with self._changed:
                if self._closed and not self._slots:
                    return
                slots = [*self._slots.values()]
                cut = [slot for slot in slots if self._is_cut(slot)]
            for slot in slots:
                self._leave_if_late(slot)
            for slot in cut:
                self._tell_if_hung(slot)
                slot.body.cancel()
            with self._changed:
                ending = any(slot.body.halt.is_draining for slot in self._slots.values())
                if not self._closed or self._slots:
                    idle = _LOOK_S if self._slots else None
                    self._changed.wait(_WATCH_S if ending else idle)

    def _is_cut(self, slot: _Slot) -> bool:
        if slot.cancel_at is not None and time.monotonic() >= slot.cancel_at:
            self._cut(slot)
        return slot.body.halt.is_cancelled

    def _leave_if_late(self, slot: _Slot) -> None:
        """Go on without a thread that a plugin keeps for too long."""
        is_hung = slot.hung_at is not None and time.monotonic() >= slot.hung_at
        error: Exception | None = slot.body.leave(any_call=is_hung)
        if error is None:
            return
        resource = slot.launch.resource
        with self._changed:
            left = [*self._left.get(resource, ()), slot.thread]
            left = self._left[resource] = [each for each in left if each.is_alive()]
            if len(left) >= _MOST_LEFT:
                error = StillHanging(f"{len(left)} of its threads hang by now: {error}")
            if is_hung:
                slot.hung_at = time.monotonic() + self._hung_s
            self._go(slot, self._run, slot, error)

    def _tell_if_hung(self, slot: _Slot) -> None:
        overdue = slot.hung_at is not None and time.monotonic() >= slot.hung_at
        if overdue and not slot.was_told_hung and slot.thread.is_alive():
            slot.was_told_hung = True
            self._report(Hung(slot.launch.resource, slot.launch.token))
