"""A group goes on beyond every number that some wire cannot say, until its log is at its end."""

import json
from pathlib import Path

import pytest
from msgspec import to_builtins

from fairlead.actors.messages.commands import CommandReply
from fairlead.actors.messages.members import HeartbeatReply
from fairlead.events.entries.codec import encode
from fairlead.events.group import LARGEST_EPOCH, MANY_EPOCHS, epoch_warning
from fairlead.events.log.reader import LogReader
from fairlead.events.model import Cause, GroupState, Why
from fairlead.events.records import GroupMetadata
from fairlead.projections.explain.cache import EpochCache
from fairlead.runtime.interfaces.replies.building.groups import describe_group, summarize_group
from fairlead.runtime.interfaces.replies.epochs import describe_epoch
from fairlead_tests.coordination.driver import SESSION_MS, CoordinatorDriver, told
from fairlead_tests.decider import resources

FAR = {"2^30": 1 << 30, "2^31": 1 << 31, "2^53": 1 << 53, "2^62": 1 << 62}


def counted_to(driver: CoordinatorDriver, epoch: int) -> None:
    """Have the group's log tell of so many epochs already."""
    bump = GroupMetadata(epoch, Cause(Why.REBALANCE_REQUESTED, "connect"), 0)
    driver.control.append(driver.control.end, [encode(bump)], 0)
    driver.open()


def come_to_rest(driver: CoordinatorDriver) -> None:
    """Have the members compute what is due, and take what they are given."""
    for _ in range(10):
        if driver.group.state is GroupState.ASSIGNING:
            driver.compute("a")
        for member in sorted(driver.group.members):
            mine = driver.group.members[member].current.assigned
            driver.asks(driver.full(member, " ".join(map(str, mine))))


@pytest.mark.parametrize("epoch", FAR.values(), ids=FAR)
def test_a_group_goes_on_across_an_epoch_that_some_wire_cannot_say(
    driver: CoordinatorDriver, epoch: int
) -> None:
    counted_to(driver, epoch - 3)
    driver.asks(driver.joining("a"))
    driver.compute("a")
    for name in "ABC":
        driver.put(name)
        come_to_rest(driver)
    assert driver.group.group_epoch == epoch + 1
    driver.asks(driver.joining("b"))
    come_to_rest(driver)
    driver.open()
    come_to_rest(driver)
    assert driver.group.state is GroupState.STABLE
    assert driver.group.owner.keys() == resources("A B C")
    assert {each.current.member_epoch for each in driver.group.members.values()} == {epoch + 2}


@pytest.mark.parametrize("epoch", [*FAR.values(), LARGEST_EPOCH])
def test_every_epoch_can_be_asked_at(driver: CoordinatorDriver, epoch: int) -> None:
    driver.asks(driver.joining("a"))
    request = driver.request("a", epoch)
    (answer,) = driver.asks(request)
    assert isinstance(answer.reply, HeartbeatReply)
    assert answer.reply.error.name == "FENCED_MEMBER_EPOCH", "as any other that is not its own"


def test_at_the_logs_own_end_nothing_changes_and_everybody_hears_why(
    driver: CoordinatorDriver, caplog: pytest.LogCaptureFixture
) -> None:
    counted_to(driver, LARGEST_EPOCH - 1)
    driver.asks(driver.joining("a"))
    driver.compute("a")
    assert driver.group.group_epoch == LARGEST_EPOCH
    end = driver.control.end
    why = f"the group epoch is {LARGEST_EPOCH}, the last that a log holds: nothing was changed"
    (joins,) = driver.asks(driver.joining("b"))
    (puts,) = driver.put("A")
    for reply in (joins.reply, puts.reply):
        assert isinstance(reply, HeartbeatReply | CommandReply)
        assert (reply.error.name, reply.message.startswith(why)) == ("INVALID_REQUEST", True)
    assert told(driver.asks(driver.full("a")))["a"][0] == "NONE", "what needs no epoch goes on"
    driver.passes(3 * SESSION_MS)
    assert why in caplog.text
    assert (driver.control.end, set(driver.group.members)) == (end + 1, {"a"})
    driver.open()
    assert driver.group.group_epoch == LARGEST_EPOCH


WARNED = {
    MANY_EPOCHS - 1: "",
    MANY_EPOCHS: "clients of Kafka's own protocols can follow for 1073741823 more epochs",
    1 << 31: "clients of Kafka's own protocols count to 2147483647 only",
    1 << 53: "fairlead's workers go on",
    LARGEST_EPOCH - 5: "the log holds 5 more",
}


@pytest.mark.parametrize(("epoch", "said"), WARNED.items())
def test_from_half_of_an_int32_on_each_view_of_a_group_warns(
    driver: CoordinatorDriver, tmp_path: Path, epoch: int, said: str
) -> None:
    counted_to(driver, epoch - 1)
    driver.asks(driver.joining("a"))
    assert driver.group.group_epoch == epoch
    assert said in epoch_warning(epoch)
    told_of = (
        to_builtins(describe_group(driver.group)),
        to_builtins(summarize_group(driver.group)),
    )
    driver.close()
    with LogReader.open(tmp_path / "control", "connect") as log:
        explained = to_builtins(describe_epoch(EpochCache(log).explain(epoch)))
    for each in (*told_of, explained):
        assert each.get("warning", "") == epoch_warning(epoch)
        assert json.loads(json.dumps(each))["group_epoch"] == epoch
