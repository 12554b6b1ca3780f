"""Conversations of consumers with a real broker: the group answers as the broker did (KIP-848)."""
# pyright: basic

from fairlead_tests.conformance.allowed import Allowed, older_groups
from fairlead_tests.conformance.cases import Case
from fairlead_tests.consumer.replay import ConsumerReplay


def test_a_group_answers_consumers_as_a_broker_does(conversation: Case) -> None:
    compared = [*ConsumerReplay(conversation).play()]
    assert Allowed(conversation, older_groups(conversation)).differ(compared) == []
