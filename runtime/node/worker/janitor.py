"""The janitor: it does the cleanup of tasks without an owner (DATA_PLANE §6).

A committed batch is published by the task that committed it, or by the task's next owner. If there
is no owner, because the connector is deleted, has fewer tasks now, or its work is parked, one
member of the group does it: the present one with the lowest id. It is safe if two members do it at
once: publishing is idempotent, and only staged files that no commit can refer to are swept.
"""

import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from threading import Thread
from typing import Protocol

from ....events.commits import CommitId
from ....events.group import Group
from ....events.model import Resource, Resources
from ...pipeline.spi.connector import Pipeline
from ...pipeline.tasks.ledger import LedgerUnavailable, Unpublished
from ...pipeline.tasks.plugins.calls import CallLimits, Calls, LeftBehind
from ...pipeline.tasks.plugins.guard import guard_pipeline
from .cleanup_duty import is_on_duty
from .cleanups import Cleanup, OrphanedTasks

LOGGER = logging.getLogger(__name__)
_LIMITS = CallLimits.of({})


class Commits(Protocol):
    """The part of the offset log's interface that the janitor uses."""

    def unpublished(self, connector: str, task: int) -> Collection[Unpublished]:
        """Return the commits of a task that are not recorded as published, oldest first."""
        ...

    def end(self) -> int | None:
        """Return the end of the log at once; None where that cannot be."""
        ...

    def tasks_with_unpublished(self) -> Resources:
        """Return the tasks that have commits which are not recorded as published."""
        ...

    def published(self, commit_id: CommitId) -> None:
        """Report that a batch is published: its files are in place."""
        ...

    def forgotten(self, connector: str, config_ms: int) -> None:
        """Report that the external state of a deleted connector (config of that time) is gone."""
        ...


class Janitor:
    """Does the cleanups of its group on a separate thread, while this member is on duty.

    `pipeline_of` creates the pipeline of a cleanup's task; it may raise.
    """

    def __init__(
        self,
        commits: Commits,
        pipeline_of: Callable[[Cleanup], Pipeline],
        limits: CallLimits = _LIMITS,
    ) -> None:
        self._commits = commits
        self._pipeline_of = pipeline_of
        self._orphaned = OrphanedTasks()
        self._unpublished: Resources = frozenset()
        """The tasks with unpublished commits, as of the last run."""
        self._read_to: int | None = None
        """The end of the offset log before that run; None: unknown."""
        self._followed_to = -1
        """The end of the control log when the orphaned tasks were updated last."""
        self._again: dict[Resource, Cleanup] = {}
        """The sweeps that failed and are retried."""
        self._limits = limits
        self._calls = Calls(limits)
        """The plugin calls of the current thread, with their time limits."""
        self._doing: Cleanup | None = None
        """The current cleanup."""
        self._hanging: dict[Resource, Thread] = {}
        """The threads that were abandoned, by the task whose cleanup they hang in."""
        self._thread: Thread | None = None
        """The current or last thread."""
        self._told: dict[Resource, str] = {}
        """The last logged error of each task whose cleanup failed."""

    def tick(self, group: Group, member_id: str) -> None:
        """Start a thread for the due cleanups, unless one still runs; returns at once.

        Without cleanups it is started only to read what is new in the offset log.
        """
        if group.end != self._followed_to:
            self._orphaned.follow(group)
            self._followed_to = group.end
        if self._thread is not None and self._thread.is_alive() and not self._is_late():
            return
        cleanups = {
            each.resource: each for each in self._orphaned.cleanups(group, self._unpublished)
        }
        cleanups |= self._again
        if not is_on_duty(group, member_id):
            return
        hanging = {task for task, thread in self._hanging.items() if thread.is_alive()}
        todo = [each for each in cleanups.values() if each.resource not in hanging]
        end = self._commits.end()
        has_news = end is None or end != self._read_to
        if todo or has_news or self._orphaned.forgotten():
            self._calls = Calls(self._limits)
            args = todo, self._calls, end
            self._thread = Thread(target=self._work, args=args, name="janitor", daemon=True)
            self._thread.start()

    def _is_late(self) -> bool:
        """Return whether the thread hangs in a plugin call; it is abandoned with its cleanup."""
        late = self._calls.leave()
        if late is None or self._doing is None or self._thread is None:
            return False
        cleanup = self._doing
        LOGGER.warning("the cleanup of %s is retried later: %s", cleanup.resource, late)
        self._hanging[cleanup.resource] = self._thread
        if cleanup.stale is not None:
            self._again[cleanup.resource] = cleanup
        return True

    def _work(self, cleanups: Collection[Cleanup], calls: Calls, end: int | None) -> None:
        """Do cleanups, then read which tasks have unpublished commits, at least up to an end."""
        with suppress(LeftBehind):
            for cleanup in cleanups:
                self._doing = cleanup
                is_done = self._is_done(cleanup, calls)
                self._again.pop(cleanup.resource, None)
                if not is_done and cleanup.stale is not None:
                    self._again[cleanup.resource] = cleanup
            self._doing = None
            for name, config_ms in self._orphaned.forgotten().items():
                self._commits.forgotten(name, config_ms)
            with suppress(LedgerUnavailable):
                self._unpublished = self._commits.tasks_with_unpublished()
                self._read_to = end

    def _is_done(self, cleanup: Cleanup, calls: Calls) -> bool:
        """Do a cleanup; return whether it is done. A failure is logged once, and it is retried."""
        try:
            self._do(cleanup, calls)
        except Exception as error:  # noqa: BLE001  # connectors and sinks may fail in any way
            text = f"the cleanup of {cleanup.resource} is retried later: {error}"
            if self._told.get(cleanup.resource) != text:
                self._told[cleanup.resource] = text
                LOGGER.warning("%s", text)
            return False
        self._told.pop(cleanup.resource, None)
        return True

    def _do(self, cleanup: Cleanup, calls: Calls) -> None:
        # Commits are read after the cleanup was created. By then the task had no owner, so files
        # that are staged under stale tokens and in no commit here will never be in one.
        pipeline = guard_pipeline(calls.run("pipeline", self._pipeline_of, cleanup), calls)
        try:
            for commit, sequence in self._commits.unpublished(*cleanup.resource):
                if cleanup.stale is not None and commit.commit_id.token > cleanup.stale:
                    break  # the task has an owner again, maybe with another sink
                pipeline.publish(commit.manifest, commit.commit_id, sequence)
                self._commits.published(commit.commit_id)
                LOGGER.info("published batch %s, whose task nobody holds", commit.commit_id)
            if cleanup.stale is not None:
                pipeline.sweep(cleanup.resource, cleanup.stale)
            # A new connector with the same name would continue to use this external state.
            forgets = self._orphaned.to_forget.get(cleanup.resource)
            if forgets is not None and cleanup.forgets == forgets:
                pipeline.source.remove_external_state()
                self._orphaned.forgot |= {(cleanup.resource, forgets)}
            stop = self._orphaned.stops.get(cleanup.resource)
            if stop is not None and cleanup.stop == stop:  # not resumed meanwhile
                pipeline.source.release()
                self._orphaned.released |= {(cleanup.resource, stop)}
        finally:
            pipeline.close(lambda error: LOGGER.warning("closing %s: %s", cleanup.resource, error))
