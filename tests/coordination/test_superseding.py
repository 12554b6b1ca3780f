"""A request that takes a held one's place takes its time as well."""

from fairlead_tests.coordination.office import HEARTBEAT_MS, Office, sequences


def test_a_member_that_asks_again_and_again_is_answered_when_its_first_request_was_due(
    office: Office,
) -> None:
    office.asks(office.joining("a"))
    office.beat("a")
    office.compute("a")
    assert office.beat("a") == []
    for _ in range(2):
        assert office.passes(HEARTBEAT_MS // 3) == []
        assert office.asks(office.full("a")) == []
    answered = office.passes(HEARTBEAT_MS // 3)
    assert sequences(answered) == [("a", office.sequences["a"])]
