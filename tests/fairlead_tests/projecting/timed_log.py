"""A small group whose log has the time of each record, and its history."""

from fairlead.actors.messages.computing import Assignment
from fairlead.actors.messages.members import ReportStatus, StatusUpdate
from fairlead.events.entries.codec import encode
from fairlead.events.group import token_of
from fairlead.events.log.frame import Entry
from fairlead.events.model import Resource, RunState
from fairlead.events.records import Record
from fairlead.projections.explain.epochs import EpochReport, Explanation
from fairlead_tests.decider import Decider
from fairlead_tests.log.samples import TIME_MS
from fairlead_tests.projecting.readings import read_epochs


class TimedDecider(Decider):
    """A coordinator whose log has the time of each record.

    The log's clock is `ahead_ms` ahead of the coordinator's, so that a test sees whose is told.
    """

    def __init__(self, ahead_ms: int = TIME_MS) -> None:
        super().__init__()
        self.ahead_ms = ahead_ms
        self.entries: list[Entry] = []

    def write(self, *records: Record, wrote: Assignment | None = None) -> None:
        for number, record in enumerate(records):
            kind, version, key, value = encode(record)
            at = self.group.end + number
            self.entries.append(Entry(at, kind, version, key, self.ahead_ms + self.now_ms, value))
        super().write(*records, wrote=wrote)

    def at(self, now_ms: int) -> "TimedDecider":
        self.now_ms = now_ms
        return self

    def told(self) -> dict[int, EpochReport]:
        reports = (each.report for each in read_epochs(self.entries))
        return {report.group_epoch: report for report in reports}

    def explained(self, group_epoch: int) -> Explanation:
        readings = list(read_epochs(self.entries))
        return next(each for each in readings if each.report.group_epoch == group_epoch).explain()

    def says(self, resource: Resource, state: RunState, reason: str = "") -> None:
        """Report the status of a resource from its owner, at this wall-clock time."""
        holder = self.group.owner[resource]
        token = token_of(self.group, holder, resource)
        assert token is not None
        update = StatusUpdate(resource, token, state, self.ahead_ms + self.now_ms, reason)
        self.command(ReportStatus("connect", holder, (update,)))


def computed(ahead_ms: int = TIME_MS) -> TimedDecider:
    """W1 alone with A to D at epoch 1; then W2 joins, and the target of epoch 2 is there."""
    group = TimedDecider(ahead_ms)
    group.configure("A B C D")
    group.at(1_000).join("W1")
    group.at(1_500).compute()
    group.at(1_700).settle()
    group.at(5_000).join("W2")
    group.at(5_200).compute()
    return group


def grown(ahead_ms: int = TIME_MS) -> TimedDecider:
    """The same, and both settle."""
    group = computed(ahead_ms)
    group.at(5_900).settle()
    return group
