"""Conversations of consumers with a real broker: the group answers as the broker did (KIP-848)."""
# pyright: basic

from fairlead_tests.conformance.cases import Case
from fairlead_tests.consumer.replay import ConsumerReplay

OF_BOTH_PROTOCOLS = {
    "librdkafka-live-migration",
    "raw-classic-errors",
    "raw-migration-classic-to-consumer-and-back",
    "raw-mixed-errors",
}
"""Conversations in which classic members are in the same group."""


def test_a_group_answers_consumers_as_a_broker_does(conversation: Case) -> None:
    if conversation.case_id in OF_BOTH_PROTOCOLS:
        return
    differ = [each for each in ConsumerReplay(conversation).play() if each.ours != each.theirs]
    assert differ == []
