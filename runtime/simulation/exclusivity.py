"""Who really runs what, whatever the group believes."""

from typing import Protocol

from ...events.model import Resource, Token
from .story import Story
from .violation import Violation


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
        """Who lives and was reported to have ended: others may be given what it runs."""
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
