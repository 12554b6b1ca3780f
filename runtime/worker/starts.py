"""From what may run, and what the log grants, to what the runner runs.

The membership says what may run at all, the log with which config and token. What ends by
itself though it may run rests for a moment, and begins again.
"""

from ...events.model import NOTHING, Resource, Resources
from ...projections.launches import Launch, launches
from .member_log import MemberLog
from .runner import ResourceRunner

REST_MS = 1_000
"""How long a resource rests that ended though it may run."""


class Starts:
    """What one member has running; times in milliseconds on any one clock."""

    def __init__(self, log: MemberLog, runner: ResourceRunner) -> None:
        self._log = log
        self._runner = runner
        self._allowed: Resources = NOTHING
        self._launched: dict[Resource, Launch] = {}
        self._rests: dict[Resource, int] = {}
        """Until when each resource rests that ended though it may run."""
        self._fresh: Resources = NOTHING
        """What may run, and has not been looked for in the log since it may."""

    def allow(self, resources: Resources) -> None:
        """Let these run as soon as the log grants them."""
        self._allowed |= resources
        self._fresh |= resources

    def stop(self, resources: Resources, *, abandon: bool) -> Resources:
        """Bring resources to an end; return those of which nothing runs already.

        With `abandon` everything is cancelled, without grace.
        """
        self._allowed -= resources
        if abandon:
            self._runner.abandon()
        else:
            for resource in resources:
                self._runner.stop(resource)
        return resources - self._runner.running()

    def align(self, now_ms: int) -> bool:
        """Have run what the log grants, with the config that it names; tell if it was looked at."""
        group, changed = self._log.catch_up(), self._log.take_changed()
        rested = [each for each, until_ms in self._rests.items() if now_ms >= until_ms]
        for resource in rested:
            del self._rests[resource]
        todo = self._allowed & changed.union(rested, self._fresh)
        if not todo:
            return False
        found = launches(group, self._log.member_id, todo)
        self._fresh = (self._fresh & self._allowed) - found.keys()
        for resource, launch in found.items():
            if self._launched.get(resource) != launch and resource not in self._rests:
                self._launched[resource] = launch
                self._runner.start(launch)
        return True

    def has_ended(self, resource: Resource, now_ms: int) -> bool:
        """Tell whether a resource ended that may not run any more; one that may begins again."""
        if resource in self._runner.running():
            return False
        self._launched.pop(resource, None)
        if resource not in self._allowed:
            return True
        self._rests[resource] = now_ms + REST_MS
        return False
