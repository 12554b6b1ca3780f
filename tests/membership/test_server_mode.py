"""A member may leave the computing to an assignor of the group's (PROTOCOL §5)."""

import pytest

from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.worker.instructions import Identity
from fairlead.actors.worker.membership import Membership
from fairlead.actors.worker.states import State
from fairlead_tests.membership.driver import ASSIGNORS, PATIENCE_MS, TIMING, MemberDriver, seated

IDENTITY = Identity("g", "m", "i", "url")


def served() -> MemberDriver:
    """A member that names a server assignor."""
    return MemberDriver(membership=Membership(IDENTITY, TIMING, server_assignor="uniform"))


def choice(request: Heartbeat) -> tuple[str | None, object]:
    """What a request says of assignors."""
    return request.server_assignor, request.assignors


def test_full_requests_name_the_server_assignor_and_no_other() -> None:
    driver = seated("A", served())
    driver.passes(PATIENCE_MS)
    said = [choice(each) for each in driver.sent]
    assert said == [("uniform", None), (None, None), (None, None), (None, None), ("uniform", None)]
    assert [each.is_full for each in driver.sent] == [True, False, False, False, True]
    assert driver.state() is State.STABLE


@pytest.mark.parametrize(("assignors", "server"), [((), None), (ASSIGNORS, "uniform")])
def test_a_member_names_assignors_or_a_server_assignor(
    assignors: tuple[()], server: str | None
) -> None:
    with pytest.raises(ValueError, match="not both"):
        Membership(IDENTITY, TIMING, assignors, server_assignor=server)


def test_a_member_keeps_to_its_mode() -> None:
    driver = seated("A", served())
    with pytest.raises(ValueError, match="mode"):
        driver.membership.change_assignors(ASSIGNORS, driver.now_ms)
    with pytest.raises(ValueError, match="mode"):
        seated().membership.change_assignors((), 0)
