"""Who really runs what and commits what, whatever the group believes.

At most one worker that is awake runs a resource; each row counts once, and a fenced task
commits no more.
"""

from typing import Protocol

from ...events.catalogue import offset_key
from ...events.model import Key, Resource, Token
from ...events.records import Offset, Record, TaskProgress
from .clock import Story


class Violation(Exception):  # noqa: N818  # what was violated is the news, not that it is an error
    """Something happened that must never happen; the number is that of PROTOCOL §11."""


class RunningWorker(Protocol):
    """Somebody who runs resources; asleep, it does nothing that others could see."""

    @property
    def name(self) -> str:
        """Who it is."""
        ...

    @property
    def is_awake(self) -> bool:
        """Whether it does anything at the moment."""
        ...


class Exclusivity:
    """For each resource those who run it: at most one of them may be awake."""

    def __init__(self, story: Story) -> None:
        self.runs = 0
        self.moves = 0
        self._story = story
        self._running: dict[Resource, list[RunningWorker]] = {}
        self._last: dict[Resource, str] = {}
        self._disowned: set[str] = set()
        """Workers that live and were reported to have ended: others may be given what they run."""
        self._under: dict[tuple[Resource, Token], str] = {}

    def take(self, runner: RunningWorker, resource: Resource, token: Token) -> None:
        """Take note of the token that a resource is run under; raises `Violation`.

        No two processes may have the same one: nothing could tell their work apart.
        """
        other = self._under.setdefault((resource, token), runner.name)
        if other != runner.name:
            raise Violation(f"7: {runner.name} runs {resource} under {token}, as {other} did")

    def begin(self, runner: RunningWorker, resource: Resource) -> None:
        """Take note that somebody begins to run a resource; raises `Violation`."""
        self._story.tell("{} starts {}", runner.name, resource)
        self._running.setdefault(resource, []).append(runner)
        self.runs += 1
        if self._last.get(resource, runner.name) != runner.name:
            self.moves += 1
        self._last[resource] = runner.name
        self.look(resource)

    def end(self, runner: RunningWorker, resource: Resource) -> None:
        """Take note that somebody does not run a resource any more."""
        self._story.tell("{} has stopped {}", runner.name, resource)
        self._running[resource].remove(runner)

    def disown(self, name: str) -> None:
        """Have nothing count that somebody runs, until it runs nothing any more."""
        self._disowned.add(name)

    def own(self, name: str) -> None:
        """Have everything count again that somebody runs from now on."""
        self._disowned.discard(name)

    def look(self, resource: Resource) -> None:
        """See that a resource is run once at most; raises `Violation`."""
        runners = self._running.get(resource, ())
        awake = [each.name for each in runners if each.is_awake and each.name not in self._disowned]
        if len(awake) > 1:
            raise Violation(f"1: {resource} runs at {' and at '.join(awake)}")

    def running(self) -> dict[Resource, str]:
        """Return who runs what."""
        return {
            resource: runner.name
            for resource, runners in self._running.items()
            for runner in runners
        }


ROW = "row"


class CommitInvariants:
    """Sees every entry of an offset log; raises `Violation` at the first that goes wrong."""

    def __init__(self) -> None:
        self.commits = 0
        self._rows: dict[Key, int] = {}
        self._tokens: dict[tuple[str, int], Token] = {}

    def saw(self, record: Record | None) -> None:
        """Take note of a record of the offset log."""
        if isinstance(record, Offset):
            key, row = offset_key(record.connector, record.partition), record.offset[ROW]
            expected = self._rows.get(key, 0) + 1
            if row != expected:
                raise Violation(f"7: {key} was committed up to row {row}, {expected} was next")
            self._rows[key] = expected
        elif isinstance(record, TaskProgress):
            self._forward(record)

    def _forward(self, record: TaskProgress) -> None:
        connector, task, token, _ = record.last
        last = self._tokens.get((connector, task))
        if last is not None and token < last:
            raise Violation(f"7: {connector}-{task} committed under {token}, after {last}")
        self._tokens[connector, task] = token
        self.commits += 1
