"""Conversations of classic members with a real broker: the group answers as the broker did."""
# pyright: basic

from fairlead_tests.classic.replay import Replay
from fairlead_tests.conformance.allowed import Allowed
from fairlead_tests.conformance.cases import Case


def test_a_group_answers_classic_members_as_a_broker_does(conversation: Case) -> None:
    compared = Replay(delay_ms=0).play(conversation)
    assert Allowed(conversation).differ(compared) == []
