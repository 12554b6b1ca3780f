"""A group goes on beyond every number that some wire cannot say, until its log is at its end."""

import json
from pathlib import Path

import pytest
from msgspec import to_builtins

from fairlead.actors.messages.commands import CommandReply
from fairlead.actors.messages.heartbeat import HeartbeatReply
from fairlead.events.entries.codec import encode
from fairlead.events.group import LARGEST_EPOCH, MANY_EPOCHS, epoch_warning
from fairlead.events.log.reader import LogReader
from fairlead.events.model import Cause, GroupState, Why
from fairlead.events.records import GroupMetadata
from fairlead.projections.explain.cache import EpochCache
from fairlead.runtime.interfaces.replies.epochs import describe_epoch
from fairlead.runtime.interfaces.replies.groups import describe_group, summarize_group
from fairlead_tests.coordination.office import SESSION_MS, Office, told
from fairlead_tests.decider import resources

FAR = {"2^30": 1 << 30, "2^31": 1 << 31, "2^53": 1 << 53, "2^62": 1 << 62}


def counted_to(office: Office, epoch: int) -> None:
    """Have the group's log tell of so many epochs already."""
    bump = GroupMetadata(epoch, Cause(Why.REBALANCE_REQUESTED, "connect"), 0)
    office.control.append(office.control.end, [encode(bump)], 0)
    office.open()


def come_to_rest(office: Office) -> None:
    """Have the members compute what is due, and take what they are given."""
    for _ in range(10):
        if office.group.state is GroupState.ASSIGNING:
            office.compute("a")
        for member in sorted(office.group.members):
            mine = office.group.members[member].current.assigned
            office.asks(office.full(member, " ".join(map(str, mine))))


@pytest.mark.parametrize("epoch", FAR.values(), ids=FAR)
def test_a_group_goes_on_across_an_epoch_that_some_wire_cannot_say(
    office: Office, epoch: int
) -> None:
    counted_to(office, epoch - 3)
    office.asks(office.joining("a"))
    office.compute("a")
    for name in "ABC":
        office.put(name)
        come_to_rest(office)
    assert office.group.group_epoch == epoch + 1
    office.asks(office.joining("b"))
    come_to_rest(office)
    office.open()
    come_to_rest(office)
    assert office.group.state is GroupState.STABLE
    assert office.group.owner.keys() == resources("A B C")
    assert {each.current.member_epoch for each in office.group.members.values()} == {epoch + 2}


@pytest.mark.parametrize("epoch", [*FAR.values(), LARGEST_EPOCH])
def test_every_epoch_can_be_asked_at(office: Office, epoch: int) -> None:
    office.asks(office.joining("a"))
    request = office.request("a", epoch)
    (answer,) = office.asks(request)
    assert isinstance(answer.reply, HeartbeatReply)
    assert answer.reply.error.name == "FENCED_MEMBER_EPOCH", "as any other that is not its own"


def test_at_the_logs_own_end_nothing_changes_and_everybody_hears_why(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    counted_to(office, LARGEST_EPOCH - 1)
    office.asks(office.joining("a"))
    office.compute("a")
    assert office.group.group_epoch == LARGEST_EPOCH
    end = office.control.end
    why = f"the group epoch is {LARGEST_EPOCH}, the last that a log holds: nothing was changed"
    (joins,) = office.asks(office.joining("b"))
    (puts,) = office.put("A")
    for reply in (joins.reply, puts.reply):
        assert isinstance(reply, HeartbeatReply | CommandReply)
        assert (reply.error.name, reply.message.startswith(why)) == ("INVALID_REQUEST", True)
    assert told(office.asks(office.full("a")))["a"][0] == "NONE", "what needs no epoch goes on"
    office.passes(3 * SESSION_MS)
    assert why in caplog.text
    assert (office.control.end, set(office.group.members)) == (end + 1, {"a"})
    office.open()
    assert office.group.group_epoch == LARGEST_EPOCH


WARNED = {
    MANY_EPOCHS - 1: "",
    MANY_EPOCHS: "clients of Kafka's own protocols can follow for 1073741823 more epochs",
    1 << 31: "clients of Kafka's own protocols count to 2147483647 only",
    1 << 53: "fairlead's workers go on",
    LARGEST_EPOCH - 5: "the log holds 5 more",
}


@pytest.mark.parametrize(("epoch", "said"), WARNED.items())
def test_from_half_of_an_int32_on_each_view_of_a_group_warns(
    office: Office, tmp_path: Path, epoch: int, said: str
) -> None:
    counted_to(office, epoch - 1)
    office.asks(office.joining("a"))
    assert office.group.group_epoch == epoch
    assert said in epoch_warning(epoch)
    told_of = (
        to_builtins(describe_group(office.group)),
        to_builtins(summarize_group(office.group)),
    )
    office.close()
    with LogReader.open(tmp_path / "control", "connect") as log:
        explained = to_builtins(describe_epoch(EpochCache(log).explain(epoch)))
    for each in (*told_of, explained):
        assert each.get("warning", "") == epoch_warning(epoch)
        assert json.loads(json.dumps(each))["group_epoch"] == epoch
