"""What people are told of mixed groups and of conversions, from the log alone (rule 29)."""

from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairlead.actors.messages.classic import Leaver
from fairlead.events.log.reader import LogReader
from fairlead.projections.explain.cache import EpochCache
from fairlead.projections.metrics.exposition import Exposition
from fairlead.projections.metrics.families import GroupFigures
from fairlead.projections.metrics.processes import RequestMetrics
from fairlead.runtime.interfaces.cli.logs.narrator import Narrator
from fairlead.runtime.interfaces.cli.output.printing import FactList, Table
from fairlead.runtime.interfaces.cli.tables.epochs import tabulate_explanation, tabulate_history
from fairlead.runtime.interfaces.cli.tables.groups import tabulate_group
from fairlead.runtime.interfaces.replies.building.groups import describe_group
from fairlead.runtime.interfaces.replies.epochs import describe_epoch
from fairlead_tests.translation.driver import MixedDriver

ALL_A, ALL_B = "A A-0 A-1 A-2", "B B-0 B-1"


@pytest.fixture
def told(driver: MixedDriver) -> Iterator[EpochCache]:
    """The log of a group that was converted by W1, and is classic again since W1 has left."""
    one, two = driver.pair(ALL_A, ALL_B)
    driver.modern_joins("W1")
    driver.heartbeat_reply(driver.request("W1", -1))
    driver.call(driver.join_call(one))
    driver.joins(two)
    driver.control.close()
    with LogReader.open(driver.control.path, "connect") as reader:
        yield EpochCache(reader)


UPGRADED = (
    "converted from the classic protocol, because http://W1 joined by the connect protocol; members"
    " that keep their work: 2, from generation 2"
)
DOWNGRADED = (
    "converted to the classic protocol, because http://W1 was the last that spoke the connect"
    " protocol"
)


def test_the_history_tells_each_conversion_and_why(told: EpochCache) -> None:
    (table,) = tabulate_history(told.history())
    assert isinstance(table, Table)
    causes = {row[0]: row[2] for row in table.rows}
    assert causes["3"] == f"group-upgraded W1: {UPGRADED}"
    assert causes["4"].startswith(f"member-left W1: {DOWNGRADED}; 2 members, connect sessioned")


def test_explain_tells_each_conversion_and_why(told: EpochCache) -> None:
    for epoch, changed in ((3, UPGRADED), (4, DOWNGRADED)):
        first, *_ = tabulate_explanation(describe_epoch(told.explain(epoch)))
        assert isinstance(first, FactList)
        assert dict(first.pairs)["Changed"] == changed


def test_rule_29_a_group_is_told_with_the_protocol_of_each_member(driver: MixedDriver) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    assert protocols(driver) == ("classic", {one: "classic", two: "classic"})
    assert "PROTOCOL" not in headings(driver), "all speak the same"
    driver.modern_joins("W1")
    assert protocols(driver) == ("connect", {one: "classic", two: "classic", "W1": "connect"})
    assert "PROTOCOL" in headings(driver)
    driver.heartbeat_reply(driver.request("W1", -1))
    assert protocols(driver) == ("classic", {one: "classic", two: "classic"})
    driver.leaves(Leaver(one), Leaver(two))
    assert protocols(driver) == ("classic", {})


def protocols(driver: MixedDriver) -> tuple[str, dict[str, str]]:
    reply = describe_group(driver.group)
    return reply.type, {each.member_id: each.protocol for each in reply.members}


def headings(driver: MixedDriver) -> tuple[str, ...]:
    tables = (each for each in tabulate_group(describe_group(driver.group)))
    return next(tuple(each.columns) for each in tables if isinstance(each, Table))


def test_a_metric_counts_the_members_that_speak_the_classic_protocol(driver: MixedDriver) -> None:
    counts = [classic_members(driver)]
    driver.pair(ALL_A, ALL_B)
    counts.append(classic_members(driver))
    driver.modern_joins("W1")
    counts.append(classic_members(driver))
    assert counts == [0, 2, 2]


def classic_members(driver: MixedDriver) -> float:
    figures = GroupFigures(driver.group, {}, {}, {})
    text, _ = Exposition("1", RequestMetrics()).write("", [figures])
    families = text_string_to_metric_families(text.decode())
    return next(
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == "fairlead_group_classic_members"
    )


def test_the_story_of_a_log_tells_who_speaks_what(driver: MixedDriver) -> None:
    one, _ = driver.pair(ALL_A, ALL_B)
    driver.modern_joins("W1")
    metadata = driver.group.members[one].metadata
    told = Narrator().tell(metadata)
    assert "speaks the classic protocol, sessioned" in told
