"""Whose work is lost when members leave: that of those that leave by themselves."""

from unittest.mock import Mock

import pytest

from fairlead.actors.group.translation import mixed


def test_only_who_says_its_own_member_id_leaves_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixed, "departure_of_leaver", lambda *told: told[2].member_id)
    monkeypatch.setattr(
        mixed, "removal_of", lambda _, member: Mock() if member.member_id == "c" else None
    )
    seats = [Mock(member_id=each) for each in ("a", "b", "c")]
    leavers = [Mock(member_id="a"), Mock(member_id="", instance_id="i-b"), Mock(member_id="c")]
    found = mixed._by_themselves(Mock(), Mock(), Mock(leavers=leavers), seats, 1)
    assert [*map(str, found)] == ["a"], "an operator removes b, and c is being removed already"
