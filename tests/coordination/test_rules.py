"""What the coordinator does in time and together with others, rule by rule (PROTOCOL §3 to §5)."""

from dataclasses import replace

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import Heartbeat, HeartbeatReply
from fairlead.actors.worker.instructions import Timing
from fairlead.events.entries.codec import decode
from fairlead.events.model import MemberState
from fairlead.events.records import GroupMetadata, MemberMetadata, Record, Tombstone
from fairlead_tests.coordination.office import (
    HEARTBEAT_MS,
    REBALANCE_MS,
    SESSION_MS,
    SETTINGS,
    Office,
    sequences,
    told,
)

COMPUTE, NONE = "COMPUTE_ASSIGNMENT", "NONE"


def written(office: Office, since: int) -> list[Record]:
    """What the log got since then."""
    records = (decode(entry) for entry in office.control.read(since).entries)
    return [each for each in records if each is not None]


def revoking(office: Office) -> str:
    """Bring `a` to where it has to give up one of its two connectors; returns what it keeps."""
    office.asks(office.joining("a"))
    office.put("A")
    office.put("B")
    office.beat("a")
    office.compute("a")
    office.beat("a")
    office.asks(office.joining("b"))
    office.beat("a")
    office.compute("a")
    office.asks(office.full("a", "A B"))
    assert office.group.members["a"].current.state is MemberState.UNREVOKED
    (kept,) = map(str, office.group.target_of["a"])
    return kept


def test_the_defaults_are_those_of_the_protocol() -> None:
    group, member = GroupSettings(), Timing()
    assert (group.heartbeat_interval_ms, group.session_timeout_ms) == (3_000, 10_000)
    assert (group.fence_margin_ms, group.max_delay_ms) == (1_000, 300_000)
    assert (group.assignment_interval_ms, group.requests_per_second) == (0, 0)
    assert (group.retry_backoff_ms, group.retry_backoff_max_ms) == (5_000, 60_000)
    assert member == Timing(3_000, 10_000, 60_000, 1_000)
    assert member.patience_ms == 3_000 + 1_500


def test_all_records_of_a_command_are_one_batch_with_one_time(office: Office) -> None:
    office.asks(office.joining("a"))
    office.passes(700)
    since = office.control.end
    office.asks(office.request("a", -1))
    entries = office.control.read(since).entries
    assert {each.timestamp_ms for each in entries} == {office.now.wall_ms}
    assert [type(each) for each in written(office, since)] == [Tombstone, Tombstone, GroupMetadata]


def test_an_answer_rests_on_what_is_written_before_it_is_said(office: Office) -> None:
    said = office.asks(office.joining("a"), office.joining("b"))
    offsets = [each.reply.log_offset for each in said if isinstance(each.reply, HeartbeatReply)]
    assert offsets == sorted(offsets)
    assert offsets[-1] == office.control.end == office.group.end


def test_who_is_asked_to_compute_has_its_session_refreshed_as_by_any_success(
    office: Office,
) -> None:
    office.asks(office.joining("a"))
    for _ in range(3):
        office.asks(office.joining("a"))
        assert told(office.passes(HEARTBEAT_MS)) == {"a": (COMPUTE, "")}
        office.passes(SESSION_MS - HEARTBEAT_MS - 1)
        assert set(office.group.members) == {"a"}
    office.passes(1)
    assert office.group.members == {}


def test_whose_held_request_meets_its_removal_hears_of_it_at_once(office: Office) -> None:
    revoking(office)
    until_ms = office.now_ms + REBALANCE_MS
    while office.now_ms < until_ms - 1:
        office.passes(min(HEARTBEAT_MS, until_ms - 1 - office.now_ms))
        office.asks(office.full("a", "A B"), office.full("b", ""))
    office.asks(office.request("a"))
    newest = office.sequences["a"]
    said = office.passes(1)
    assert told(said)["a"] == ("UNKNOWN_MEMBER_ID", None)
    assert ("a", newest) in sequences(said)


def test_a_revocation_is_timed_by_the_timeout_that_the_very_request_brings(
    office: Office,
) -> None:
    office.asks(office.joining("a"))
    office.put("A")
    office.put("B")
    office.compute("a")
    office.beat("a")
    office.asks(office.joining("b"))
    office.compute("a")
    shorter = replace(office.full("a", "A B"), rebalance_timeout_ms=12_000)
    assert office.asks(shorter)
    assert office.group.members["a"].current.state is MemberState.UNREVOKED
    for _ in range(3):
        office.passes(3_999)
        office.asks(office.request("a"), office.request("b"))
    assert set(office.group.members) == {"a", "b"}
    office.passes(3)
    assert set(office.group.members) == {"b"}


def test_who_is_chosen_may_compute_for_its_own_rebalance_timeout_and_no_longer(
    office: Office,
) -> None:
    def joining() -> list[Heartbeat]:
        return [replace(office.joining("a"), rebalance_timeout_ms=12_000), office.joining("b")]

    said = office.asks(*joining())
    asked = list[tuple[int, str]]()
    for _ in range(7):
        asked += [(office.now_ms, who) for who, (each, _) in told(said).items() if each == COMPUTE]
        said = office.passes(2_000) + office.asks(*joining())
    assert {who for at_ms, who in asked if at_ms < 12_000} == {"a"}
    assert {who for at_ms, who in asked if at_ms >= 12_000} == {"b"}
    assert set(office.group.members) == {"a", "b"}, "the slow one stays a member"


def test_a_refused_request_supersedes_the_held_one_and_changes_nothing(
    office: Office,
) -> None:
    office.asks(office.joining("a"))
    office.compute("a")
    office.beat("a")
    end = office.group.end
    assert told(office.asks(office.request("a", 9))) == {
        "a": (Error.FENCED_MEMBER_EPOCH.value, None)
    }
    assert (office.group.end, office.passes(HEARTBEAT_MS)) == (end, [])


def test_a_member_record_is_written_once_though_it_is_said_in_every_request(
    office: Office,
) -> None:
    office.asks(office.joining("a"))
    office.compute("a")
    office.beat("a")
    since = office.control.end
    for _ in range(3):
        office.asks(office.full("a"))
    assert [each for each in written(office, since) if isinstance(each, MemberMetadata)] == []


def test_a_full_group_has_room_again_once_somebody_left(office: Office) -> None:
    office.settings = replace(SETTINGS, max_size=1)
    office.open()
    office.asks(office.joining("a"))
    (refused,) = office.asks(office.joining("b"))
    assert isinstance(refused.reply, HeartbeatReply)
    assert (refused.reply.error, refused.reply.message) == (
        Error.GROUP_MAX_SIZE_REACHED,
        "the group has as many members as group.max.size = 1 allows: raise it, or ask again"
        " once one has left",
    )
    office.asks(office.request("a", -1))
    assert told(office.asks(office.joining("b"))) == {"b": (COMPUTE, "")}
