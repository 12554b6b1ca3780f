"""What is whose over several conversions, and calls that come at odd moments of one."""

from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import pytest

from fairlead.actors.messages.classic import LeaveGroup, Leaver, SyncGroup
from fairlead.actors.messages.consumers import ConsumerGroupHeartbeat
from fairlead.actors.messages.errors import Error
from fairlead.events.model import GroupType, Why
from fairlead_tests.consumer.classic import ALL, alone, beats, given, joining, syncs
from fairlead_tests.consumer.driver import SETTINGS, ConsumerDriver

WHOLE = "t4-0 t4-1 t4-2 t4-3"


def pair(driver: ConsumerDriver) -> tuple[str, str]:
    """Have two classic members that have joined a generation, and wait for what it gives them."""
    one = alone(driver)
    number = driver.ask(joining(client_id="d"))
    generation = driver.asks(joining(one, ALL)).generation
    other: str = driver.said[number].member_id
    assert driver.asks(SyncGroup("g", other, generation)) is None
    return one, other


def test_what_a_later_generation_gives_counts_when_a_group_is_converted_once_more() -> None:
    driver = ConsumerDriver()
    one = alone(driver)
    driver.joins("M", "t4")
    beats(driver, one, 1)
    driver.asks(joining(one, ALL))
    kept = syncs(driver, one, 1)
    syncs(driver, one, driver.asks(joining(one, kept)).generation)
    driver.beats("M", -1)
    generation = driver.asks(joining(one, kept)).generation
    assert syncs(driver, one, generation, assignments={one: given(ALL)}) == ALL
    assert driver.joins("N", "t4").assignment == {}
    assert driver.holds() == {one: WHOLE, "N": ""}


def test_a_static_member_keeps_what_it_took_over_from_one_of_the_other_protocol() -> None:
    driver = ConsumerDriver()
    driver.joins("M", "t4", instance_id="i")
    joined = driver.asks(joining(instance_id="i"))
    assert driver.group.type is GroupType.CLASSIC
    assert syncs(driver, joined.member_id, joined.generation, instance_id="i") == ALL
    again = driver.asks(joining(instance_id="i"))
    assert syncs(driver, again.member_id, again.generation, instance_id="i") == ALL
    assert driver.joins("N", "t4").assignment == {}
    assert driver.holds() == {again.member_id: WHOLE, "N": ""}


def test_who_waits_for_its_assignment_has_what_it_named_when_it_joined() -> None:
    driver = ConsumerDriver()
    one, other = pair(driver)
    assert driver.joins("M", "t4").assignment == {}
    assert driver.holds() == {one: WHOLE, other: "", "M": ""}


def test_a_generation_after_that_of_a_conversion_is_none_of_it_even_over_a_restart() -> None:
    driver = ConsumerDriver()
    one = alone(driver)
    driver.joins("M", "t4")
    driver.beats("M", -1)
    driver.open()
    generation = driver.asks(joining(one, ALL)).generation
    syncs(driver, one, generation, assignments={one: given(ALL)})
    assert driver.group.classic is not None
    assert driver.group.classic.cause.why is Why.REBALANCE_REQUESTED
    driver.open()
    assert beats(driver, one, generation) is Error.NONE


def test_the_first_call_of_a_new_process_is_answered_though_it_joins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = ConsumerDriver()
    one, other = pair(driver)
    syncs(driver, one, 2, assignments={one: given(ALL[:2]), other: given(ALL[2:])})
    driver.joins("M", "t4")
    driver.beats("M", -1)
    monkeypatch.setattr(ConsumerDriver, "sees", MagicMock())  # topics are told it later
    driver.open()
    number = driver.ask(joining(one, ALL[:2]))
    assert driver.asks(joining(other, ALL[2:])).error is Error.NONE
    assert driver.said[number].error is Error.NONE


def test_the_only_member_leaves_while_an_id_is_out_and_who_has_that_joins() -> None:
    driver = ConsumerDriver()
    one = alone(driver)
    told = driver.asks(joining(asks_for_id=True))
    assert told.error is Error.MEMBER_ID_REQUIRED
    driver.asks(LeaveGroup("g", (Leaver(one),)))
    assert beats(driver, one, 1) is Error.UNKNOWN_MEMBER_ID
    assert driver.asks(joining(told.member_id, asks_for_id=True)).error is Error.NONE


def test_a_consumer_joins_while_a_first_round_waits_for_nobody() -> None:
    driver = ConsumerDriver(settings=replace(SETTINGS, initial_delay_ms=3_000))
    told = driver.asks(joining(asks_for_id=True))
    assert driver.asks(joining(told.member_id, asks_for_id=True)) is None
    driver.asks(LeaveGroup("g", (Leaver(told.member_id),)))
    assert driver.joins("M", "t4").error is Error.NONE
    driver.passes(4_000)
    assert driver.holds() == {"M": WHOLE}


def test_an_id_that_a_consumer_has_taken_is_no_newcomers() -> None:
    driver = ConsumerDriver()
    driver.joins("M", "t4")
    taken: str = driver.asks(joining(asks_for_id=True)).member_id
    assert driver.joins(taken, "t4").error is Error.NONE
    assert driver.asks(joining(taken, asks_for_id=True)).error is Error.UNKNOWN_MEMBER_ID


def test_a_classic_member_leaves_by_the_words_of_the_other_protocol_but_not_for_a_while() -> None:
    driver = ConsumerDriver()
    driver.joins("M", "t4")
    one: str = driver.asks(joining(instance_id="j")).member_id
    told = [driver.asks(ConsumerGroupHeartbeat("g", one, epoch, "j")).error for epoch in (-2, -1)]
    assert told == [Error.UNKNOWN_MEMBER_ID, Error.NONE]
    assert (set(driver.group.members), driver.group.type) == ({"M"}, GroupType.CONSUMER)
    driver.passes(5_000)
    driver.settles()
    assert driver.holds() == {"M": WHOLE}


def test_a_consumer_that_subscribes_to_nothing_goes_on_where_a_classic_group_had_come() -> None:
    driver = ConsumerDriver()
    driver.joins("M", "t4")
    driver.beats("M", -1)
    one: str = driver.asks(joining()).member_id
    generation = driver.group.group_epoch
    syncs(driver, one, generation, assignments={one: given(ALL)})
    driver.asks(LeaveGroup("g", (Leaver(one),)))
    last = driver.group.group_epoch
    assert driver.joins("N").error is Error.NONE
    assert driver.group.bump is not None
    assert driver.group.bump.group_epoch == driver.group.group_epoch > last


@pytest.mark.parametrize("told", [{"client_id": "x\0y"}, {"instance_id": "x\0y"}], ids=str)
def test_an_id_with_a_nul_is_refused(told: dict[str, Any]) -> None:
    driver = ConsumerDriver()
    driver.joins("M", "t4")
    assert driver.asks(joining(**told)).error is Error.INVALID_REQUEST
