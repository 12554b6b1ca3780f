"""Cases in prose, each played by a function with its id."""
# pyright: basic

from collections.abc import Callable
from typing import Any

from fairlead.actors.messages.errors import SUCCESS
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead_tests.conformance.cases import Case
from fairlead_tests.coordination.driver import CoordinatorDriver
from fairlead_tests.decider import Decider

Play = Callable[[CoordinatorDriver, Any], None]
PLAYS: dict[tuple[str, str], Play] = {}
COMPARED = ("ok", "error", "response_epoch", "group_epoch", "assignment")


def plays(section: str, *case_ids: str) -> Callable[[Play], Play]:
    """Register a function for cases, which gets an empty group and the expected result."""

    def register(play: Play) -> Play:
        PLAYS.update({(section, case_id): play for case_id in case_ids})
        return play

    return register


def play(case: Case, driver: CoordinatorDriver) -> None:
    """Play a case; one without a function fails with its name."""
    found = PLAYS.get((case.section, case.case_id))
    assert found is not None, f"nobody plays {case.section} / {case.case_id}: {case.told}"
    found(driver, case.told.get("expect", case.told))


def outcome(decider: Decider, request: Heartbeat) -> dict[str, Any]:
    """Handle a heartbeat, and return the result in the data's terms."""
    before = decider.group.group_epoch
    decision = decider.carry_out(request)
    reply = decision.reply
    assert isinstance(reply, HeartbeatReply)
    if reply.error not in SUCCESS:
        assert decision.records == (), "a refused request changes nothing"
        return {"error": reply.error.name}
    rose = decider.group.group_epoch - before
    return {
        "ok": True,
        "response_epoch": reply.member_epoch,
        "group_epoch": f"+{rose}" if rose else "unchanged",
        "assignment": sorted(map(str, reply.assignment or ())),
    }


def agree(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Compare a result with the machine-readable part of the expectations."""
    wanted = {key: expected[key] for key in COMPARED if key in expected}
    assert wanted
    assert {key: found.get(key, "not seen") for key in wanted} == wanted
