"""What the coordinator does in time and together with others, rule by rule (PROTOCOL §3 to §5)."""

from dataclasses import replace

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.actors.worker.instructions import Timing
from fairlead.events.entries.codec import decode
from fairlead.events.model import MemberState
from fairlead.events.records import GroupMetadata, MemberMetadata, Record, Tombstone
from fairlead_tests.coordination.driver import (
    HEARTBEAT_MS,
    REBALANCE_MS,
    SESSION_MS,
    SETTINGS,
    CoordinatorDriver,
    sequences,
    told,
)

COMPUTE, NONE = "COMPUTE_ASSIGNMENT", "NONE"


def written(driver: CoordinatorDriver, since: int) -> list[Record]:
    """What the log got since then."""
    records = (decode(entry) for entry in driver.control.read(since).entries)
    return [each for each in records if each is not None]


def revoking(driver: CoordinatorDriver) -> str:
    """Bring `a` to where it has to give up one of its two connectors; returns what it keeps."""
    driver.asks(driver.joining("a"))
    driver.put("A")
    driver.put("B")
    driver.beat("a")
    driver.compute("a")
    driver.beat("a")
    driver.asks(driver.joining("b"))
    driver.beat("a")
    driver.compute("a")
    driver.asks(driver.full("a", "A B"))
    assert driver.group.members["a"].current.state is MemberState.UNREVOKED
    (kept,) = map(str, driver.group.target_of["a"])
    return kept


def test_the_defaults_are_those_of_the_protocol() -> None:
    group, member = GroupSettings(), Timing()
    assert (group.heartbeat_interval_ms, group.session_timeout_ms) == (3_000, 10_000)
    assert (group.fence_margin_ms, group.max_delay_ms) == (1_000, 300_000)
    assert (group.assignment_interval_ms, group.requests_per_second) == (0, 0)
    assert (group.retry_backoff_ms, group.retry_backoff_max_ms) == (5_000, 60_000)
    assert member == Timing(3_000, 10_000, 60_000, 1_000)
    assert member.patience_ms == 3_000 + 1_500


def test_all_records_of_a_command_are_one_batch_with_one_time(driver: CoordinatorDriver) -> None:
    driver.asks(driver.joining("a"))
    driver.passes(700)
    since = driver.control.end
    driver.asks(driver.request("a", -1))
    entries = driver.control.read(since).entries
    assert {each.timestamp_ms for each in entries} == {driver.now.wall_ms}
    assert [type(each) for each in written(driver, since)] == [Tombstone, Tombstone, GroupMetadata]


def test_an_answer_rests_on_what_is_written_before_it_is_said(driver: CoordinatorDriver) -> None:
    said = driver.asks(driver.joining("a"), driver.joining("b"))
    offsets = [each.reply.log_offset for each in said if isinstance(each.reply, HeartbeatReply)]
    assert offsets == sorted(offsets)
    assert offsets[-1] == driver.control.end == driver.group.end


def test_who_is_asked_to_compute_has_its_session_refreshed_as_by_any_success(
    driver: CoordinatorDriver,
) -> None:
    driver.asks(driver.joining("a"))
    for _ in range(3):
        driver.asks(driver.joining("a"))
        assert told(driver.passes(HEARTBEAT_MS)) == {"a": (COMPUTE, "")}
        driver.passes(SESSION_MS - HEARTBEAT_MS - 1)
        assert set(driver.group.members) == {"a"}
    driver.passes(1)
    assert driver.group.members == {}


def test_whose_held_request_meets_its_removal_hears_of_it_at_once(
    driver: CoordinatorDriver,
) -> None:
    revoking(driver)
    until_ms = driver.now_ms + REBALANCE_MS
    while driver.now_ms < until_ms - 1:
        driver.passes(min(HEARTBEAT_MS, until_ms - 1 - driver.now_ms))
        driver.asks(driver.full("a", "A B"), driver.full("b", ""))
    driver.asks(driver.request("a"))
    newest = driver.sequences["a"]
    said = driver.passes(1)
    assert told(said)["a"] == ("UNKNOWN_MEMBER_ID", None)
    assert ("a", newest) in sequences(said)


def test_a_revocation_is_timed_by_the_timeout_that_the_very_request_brings(
    driver: CoordinatorDriver,
) -> None:
    driver.asks(driver.joining("a"))
    driver.put("A")
    driver.put("B")
    driver.compute("a")
    driver.beat("a")
    driver.asks(driver.joining("b"))
    driver.compute("a")
    shorter = replace(driver.full("a", "A B"), rebalance_timeout_ms=12_000)
    assert driver.asks(shorter)
    assert driver.group.members["a"].current.state is MemberState.UNREVOKED
    for _ in range(3):
        driver.passes(3_999)
        driver.asks(driver.request("a"), driver.request("b"))
    assert set(driver.group.members) == {"a", "b"}
    driver.passes(3)
    assert set(driver.group.members) == {"b"}


def test_who_is_chosen_may_compute_for_its_own_rebalance_timeout_and_no_longer(
    driver: CoordinatorDriver,
) -> None:
    def joining() -> list[Heartbeat]:
        return [replace(driver.joining("a"), rebalance_timeout_ms=12_000), driver.joining("b")]

    said = driver.asks(*joining())
    asked = list[tuple[int, str]]()
    for _ in range(7):
        asked += [(driver.now_ms, who) for who, (each, _) in told(said).items() if each == COMPUTE]
        said = driver.passes(2_000) + driver.asks(*joining())
    assert {who for at_ms, who in asked if at_ms < 12_000} == {"a"}
    assert {who for at_ms, who in asked if at_ms >= 12_000} == {"b"}
    assert set(driver.group.members) == {"a", "b"}, "the slow one stays a member"


def test_a_refused_request_supersedes_the_held_one_and_changes_nothing(
    driver: CoordinatorDriver,
) -> None:
    driver.asks(driver.joining("a"))
    driver.compute("a")
    driver.beat("a")
    end = driver.group.end
    assert told(driver.asks(driver.request("a", 9))) == {
        "a": (Error.FENCED_MEMBER_EPOCH.value, None)
    }
    assert (driver.group.end, driver.passes(HEARTBEAT_MS)) == (end, [])


def test_a_member_record_is_written_once_though_it_is_said_in_every_request(
    driver: CoordinatorDriver,
) -> None:
    driver.asks(driver.joining("a"))
    driver.compute("a")
    driver.beat("a")
    since = driver.control.end
    for _ in range(3):
        driver.asks(driver.full("a"))
    assert [each for each in written(driver, since) if isinstance(each, MemberMetadata)] == []


def test_a_full_group_has_room_again_once_somebody_left(driver: CoordinatorDriver) -> None:
    driver.settings = replace(SETTINGS, max_size=1)
    driver.open()
    driver.asks(driver.joining("a"))
    (refused,) = driver.asks(driver.joining("b"))
    assert isinstance(refused.reply, HeartbeatReply)
    assert (refused.reply.error, refused.reply.message) == (
        Error.GROUP_MAX_SIZE_REACHED,
        "the group has as many members as group.max.size = 1 allows: raise it, or ask again"
        " once one has left",
    )
    driver.asks(driver.request("a", -1))
    assert told(driver.asks(driver.joining("b"))) == {"b": (COMPUTE, "")}
