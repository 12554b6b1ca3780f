"""Reports of a worker to its group, repeated until the log shows them.

Messages may be lost, and the group's process may end before it has handled one. So no report waits
for a reply: it is sent again every `AGAIN_MS` until the log shows it. New reports are sent at once,
and alone: when hundreds of connectors start, no report of one sends those of all others again. But
only so many are on their way that no heartbeat waits long behind them: statuses that wait are sent
in one message, task configs in a message each. The end of a resource never waits: the group is told
of it before another member may have the resource.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from .....actors.messages.members import (
    ExternalStateRemoved,
    PutTaskConfigs,
    ReportStatus,
    StatusUpdate,
)
from .....events.group import Group, token_of
from .....events.model import BATCHES_RUN, NOTHING, Resource, Resources, RunState, Token
from ....pipeline.tasks.reports import BatchDone, Ending, StatusChanged, Stopped, TaskConfigsChanged
from .contract import Forgotten, MemberLog

AGAIN_MS = 1_000
"""The pause before a report that the log does not show is sent again."""
MOST_STATUSES = 4
"""As long as so many statuses are on their way, others wait: the log does not show them yet."""
MOST_SPLITS = 8
"""The most task configs that are on their way."""
_ENDINGS = frozenset(each.value for each in Ending)
"""The reasons in the last status of a resource."""


@dataclass(frozen=True, slots=True)
class ReportedSplit:
    """The task configs that a connector has reported, and its token at that time."""

    token: Token
    configs: tuple[Mapping[str, str], ...]


class StatusReporter:
    """Keeps the latest status of each resource and the latest task configs of each connector."""

    def __init__(self, group_id: str, log: MemberLog) -> None:
        self._group_id = group_id
        self._log = log
        self._statuses: dict[Resource, StatusUpdate] = {}
        """The latest status of each resource, until the log shows it."""
        self._latest_ms: dict[Resource, int] = {}
        """The reported time of the last status change of each resource."""
        self._sent: set[Resource] = set()
        """The resources whose status in `_statuses` was sent at least once."""
        self._overtaking: set[Resource] = set()
        """The resources with an earlier status in flight, which the log may still show."""
        self._remarks: dict[Resource, StatusUpdate] = {}
        """The status to report after the current one: a task's note once it runs batches."""
        self._splits: dict[str, ReportedSplit] = {}
        """The latest task configs of each connector, until the log shows them."""
        self._forgotten: list[Forgotten] = []
        """Reports that are sent only once, since the janitor repeats them."""
        self._sent_splits: set[str] = set()
        """The connectors whose task configs in `_splits` are on their way."""
        self._said_at_ms = -AGAIN_MS
        """When all pending reports were sent last."""
        self._known_end = -1
        """The end of the log in which pending reports were looked for last."""

    def add(self, report: object, at_ms: int) -> None:
        """Add a report with its time (wall clock); reports of other types are ignored."""
        match report:
            case StatusChanged():
                self._take_change(report, at_ms)
            case Stopped(resource, token, ending):
                reason = ending.value
                self._take(StatusUpdate(resource, token, RunState.UNASSIGNED, at_ms, reason))
            case BatchDone(is_first=True):
                # The task began to look for the batch at that time: its downtime ended.
                connector, task, token, _ = report.commit.commit_id
                began, resource = report.began_ms, Resource(connector, task)
                told = RunState.RUNNING, began, BATCHES_RUN, report.restarts
                self._take(StatusUpdate(resource, token, *told))
            case Forgotten():
                self._forgotten.append(report)
            case TaskConfigsChanged(connector, token, configs):
                self._splits[connector] = ReportedSplit(token, configs)
                self._sent_splits.discard(connector)
            case _:
                pass

    def _take_change(self, report: StatusChanged, at_ms: int) -> None:
        told = report.state, at_ms, report.why, report.restarts
        update = StatusUpdate(report.resource, report.token, *told)
        pending = self._statuses.get(report.resource)
        is_first = pending and (pending.token, pending.reason) == (report.token, BATCHES_RUN)
        if is_first and report.state is RunState.RUNNING:
            self._remarks[report.resource] = update
        else:
            self._take(update)

    def take_due(
        self, group: Group, now_ms: int
    ) -> Iterator[ReportStatus | PutTaskConfigs | ExternalStateRemoved]:
        """Yield the messages to send now: new reports at once, others every `AGAIN_MS`."""
        for each in self._forgotten:
            yield ExternalStateRemoved(
                self._group_id, self._log.member_id, each.connector, each.config_ms
            )
        self._forgotten.clear()
        if not (self._statuses or self._splits):
            return
        self.see(group, now_ms)
        if now_ms >= self._said_at_ms + AGAIN_MS:
            self._said_at_ms = now_ms
            self._sent_splits.clear()
            self._sent.clear()
        yield from self._new_splits(group)
        if len(self._sent) < len(self._statuses):
            yield from self._new_statuses(group)

    def _new_statuses(self, group: Group) -> Iterator[ReportStatus]:
        """Yield the statuses that are not in flight, unless they have to wait."""
        self._drop_shown(group, [each for each in self._statuses if each not in self._sent])
        unsent = tuple(each for key, each in self._statuses.items() if key not in self._sent)
        has_ended = any(each.reason in _ENDINGS for each in unsent)
        if unsent and (has_ended or len(self._sent) < MOST_STATUSES):
            self._sent.update(self._statuses)
            yield ReportStatus(self._group_id, self._log.member_id, unsent)

    def see(self, group: Group, now_ms: int) -> Resources:
        """Drop the reports that the log has; return the resources with others in flight.

        They are looked for if the log has grown, or if reports are due to be repeated.
        """
        if group.end != self._known_end or now_ms >= self._said_at_ms + AGAIN_MS:
            self._known_end = group.end
            self._drop_known(group)
        return self.awaited

    def _new_splits(self, group: Group) -> Iterator[PutTaskConfigs]:
        """Yield the oldest task configs that are not on their way, as many as may be."""
        waiting = [each for each in self._splits if each not in self._sent_splits]
        for connector in waiting:
            split = self._splits[connector]
            if len(self._sent_splits) >= MOST_SPLITS:
                return
            if self._is_known(group, connector, split):
                del self._splits[connector]
                continue
            self._sent_splits.add(connector)
            yield PutTaskConfigs(
                self._group_id, self._log.member_id, connector, split.token, split.configs
            )

    def repeat(self) -> None:
        """Send all pending reports again at once: the group has a new process."""
        self._said_at_ms = -AGAIN_MS

    @property
    def awaited(self) -> Resources:
        """The resources with reports that are on their way."""
        if not (self._statuses or self._splits):
            return NOTHING
        return frozenset((*self._statuses, *map(Resource, self._sent_splits)))

    def is_pending(self, resource: Resource) -> bool:
        """Return whether the log does not show yet what was reported of a resource."""
        is_split = not resource.is_task and resource.connector in self._splits
        return is_split or resource in self._statuses

    def next_tick_ms(self) -> int | None:
        """Return when reports are sent next, None if none is pending."""
        return self._said_at_ms + AGAIN_MS if self._statuses or self._splits else None

    def _take(self, update: StatusUpdate) -> None:
        """Keep a status, with characters in its reason escaped that the log cannot encode.

        Its time is always later than that of the former one, even if the clock was set back: the
        group uses it to order the two.
        """
        reason = update.reason.encode(errors="backslashreplace").decode()
        at_ms = max(update.at_ms, self._latest_ms.get(update.resource, -1) + 1)
        update = replace(update, reason=reason, at_ms=at_ms)
        self._remarks.pop(update.resource, None)
        before = self._statuses.get(update.resource, update)
        if update.resource in self._sent and (before.state, before.reason) != (
            update.state,
            reason,
        ):
            self._overtaking.add(update.resource)
        self._sent.discard(update.resource)
        self._statuses[update.resource] = update
        self._latest_ms[update.resource] = at_ms

    def _drop_known(self, group: Group) -> None:
        """Drop reports that the log has; later ones are checked when they are sent."""
        self._drop_shown(group, self._sent)
        on_way = ((name, self._splits[name]) for name in self._sent_splits)
        for name in [name for name, split in on_way if self._is_known(group, name, split)]:
            del self._splits[name]
            self._sent_splits.discard(name)

    def _drop_shown(self, group: Group, resources: Iterable[Resource]) -> None:
        shown = [
            each
            for each in resources
            if _is_shown(group, self._statuses[each], is_overtaking=each in self._overtaking)
        ]
        has_ended = any(self._statuses[each].state is RunState.UNASSIGNED for each in shown)
        for resource in shown:
            del self._statuses[resource]
            self._sent.discard(resource)
            self._overtaking.discard(resource)
            if remark := self._remarks.pop(resource, None):
                self._take(remark)
        if has_ended:
            self._forget_former(group)

    def _forget_former(self, group: Group) -> None:
        """Drop the times of resources that this member no longer owns: the next token is new."""
        self._latest_ms = {
            each: at_ms
            for each, at_ms in self._latest_ms.items()
            if each in self._statuses or token_of(group, self._log.member_id, each) is not None
        }

    def _is_known(self, group: Group, name: str, split: ReportedSplit) -> bool:
        """Return whether the log shows these task configs, or never will.

        It never will if the token is not current, or the connector is not running: a running one
        reports its task configs again.
        """
        is_current = token_of(group, self._log.member_id, Resource(name)) == split.token
        if not is_current or group.target_state(name) is not RunState.RUNNING:
            return True
        logged = group.task_configs.get(name)
        return logged is not None and [task.config for task in logged.tasks] == list(split.configs)


def _is_shown(group: Group, update: StatusUpdate, *, is_overtaking: bool) -> bool:
    """Return whether the log shows a status, or never will.

    While an earlier status is in flight, the same status in the log may be an older one.
    """
    status = group.statuses.get(update.resource)
    if status is None:
        return update.resource.connector not in group.connectors
    if status.token != update.token:
        return status.token > update.token
    is_late = is_overtaking and status.time_ms < update.at_ms
    return not is_late and (status.state, status.reason) == (update.state, update.reason)
