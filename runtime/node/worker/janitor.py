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
from .chores import Chore, Estate
from .rota import is_on_duty

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
    """Does the chores of its group on a separate thread, while this member is on duty.

    `pipeline_of` creates the pipeline of a chore's task; it may raise.
    """

    def __init__(
        self,
        commits: Commits,
        pipeline_of: Callable[[Chore], Pipeline],
        limits: CallLimits = _LIMITS,
    ) -> None:
        self._commits = commits
        self._pipeline_of = pipeline_of
        self._estate = Estate()
        self._unpublished: Resources = frozenset()
        """The tasks with unpublished commits, as of the last run."""
        self._read_to: int | None = None
        """The end of the offset log before that run; None: unknown."""
        self._followed_to = -1
        """The end of the control log when the estate was updated last."""
        self._again: dict[Resource, Chore] = {}
        """The sweeps that failed and are retried."""
        self._limits = limits
        self._calls = Calls(limits)
        """The plugin calls of the current thread, with their time limits."""
        self._doing: Chore | None = None
        """The current chore."""
        self._hanging: dict[Resource, Thread] = {}
        """The threads that were abandoned, by the task whose chore they hang in."""
        self._thread: Thread | None = None
        """The current or last thread."""
        self._told: dict[Resource, str] = {}
        """The last logged error of each task whose chore failed."""

    def tick(self, group: Group, member_id: str) -> None:
        """Start a thread for the due chores, unless one still runs; returns at once.

        Without chores it is started only to read what is new in the offset log.
        """
        if group.end != self._followed_to:
            self._estate.follow(group)
            self._followed_to = group.end
        if self._thread is not None and self._thread.is_alive() and not self._is_late():
            return
        chores = {each.resource: each for each in self._estate.chores(group, self._unpublished)}
        chores |= self._again
        if not is_on_duty(group, member_id):
            return
        hanging = {task for task, thread in self._hanging.items() if thread.is_alive()}
        todo = [each for each in chores.values() if each.resource not in hanging]
        end = self._commits.end()
        has_news = end is None or end != self._read_to
        if todo or has_news or self._estate.forgotten():
            self._calls = Calls(self._limits)
            args = todo, self._calls, end
            self._thread = Thread(target=self._work, args=args, name="janitor", daemon=True)
            self._thread.start()

    def _is_late(self) -> bool:
        """Return whether the thread hangs in a plugin call; then it is abandoned with its chore."""
        late = self._calls.leave()
        if late is None or self._doing is None or self._thread is None:
            return False
        chore = self._doing
        LOGGER.warning("the cleanup of %s is retried later: %s", chore.resource, late)
        self._hanging[chore.resource] = self._thread
        if chore.stale is not None:
            self._again[chore.resource] = chore
        return True

    def _work(self, chores: Collection[Chore], calls: Calls, end: int | None) -> None:
        """Do chores, then read which tasks have unpublished commits, at least up to an end."""
        with suppress(LeftBehind):
            for chore in chores:
                self._doing = chore
                is_done = self._is_done(chore, calls)
                self._again.pop(chore.resource, None)
                if not is_done and chore.stale is not None:
                    self._again[chore.resource] = chore
            self._doing = None
            for name, config_ms in self._estate.forgotten().items():
                self._commits.forgotten(name, config_ms)
            with suppress(LedgerUnavailable):
                self._unpublished = self._commits.tasks_with_unpublished()
                self._read_to = end

    def _is_done(self, chore: Chore, calls: Calls) -> bool:
        """Do a chore; a failure is logged once, and the chore is retried. Returns its success."""
        try:
            self._do(chore, calls)
        except Exception as error:  # noqa: BLE001  # connectors and sinks may fail in any way
            text = f"the cleanup of {chore.resource} is retried later: {error}"
            if self._told.get(chore.resource) != text:
                self._told[chore.resource] = text
                LOGGER.warning("%s", text)
            return False
        self._told.pop(chore.resource, None)
        return True

    def _do(self, chore: Chore, calls: Calls) -> None:
        # Commits are read after the chore was created. By then the task had no owner, so files
        # that are staged under stale tokens and in no commit here will never be in one.
        pipeline = guard_pipeline(calls.run("pipeline", self._pipeline_of, chore), calls)
        try:
            for commit, sequence in self._commits.unpublished(*chore.resource):
                if chore.stale is not None and commit.commit_id.token > chore.stale:
                    break  # the task has an owner again, maybe with another sink
                pipeline.publish(commit.manifest, commit.commit_id, sequence)
                self._commits.published(commit.commit_id)
                LOGGER.info("published batch %s, whose task nobody holds", commit.commit_id)
            if chore.stale is not None:
                pipeline.sweep(chore.resource, chore.stale)
            # A new connector with the same name would continue to use this external state.
            forgets = self._estate.to_forget.get(chore.resource)
            if forgets is not None and chore.forgets == forgets:
                pipeline.source.forget()
                self._estate.forgot |= {(chore.resource, forgets)}
            stop = self._estate.stops.get(chore.resource)
            if stop is not None and chore.stop == stop:  # not resumed meanwhile
                pipeline.source.release()
                self._estate.released |= {(chore.resource, stop)}
        finally:
            pipeline.close(lambda error: LOGGER.warning("closing %s: %s", chore.resource, error))
