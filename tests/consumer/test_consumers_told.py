"""Groups of consumers are told as those of any type: described, in history, and in the log."""

import pytest

from fairlead.events.entries.codec import decode
from fairlead.events.records import Topic
from fairlead.runtime.interfaces.cli.logs.narrator import Narrator
from fairlead.runtime.interfaces.cli.output.printing import FactList, Table
from fairlead.runtime.interfaces.cli.tables.groups import tabulate_group
from fairlead.runtime.interfaces.replies.building.groups import describe_group, summarize_group
from fairlead_tests.consumer.driver import ConsumerDriver, topic
from fairlead_tests.projecting.readings import read_epochs


@pytest.fixture
def driver() -> ConsumerDriver:
    driver = ConsumerDriver(topics={"t4": topic("t4", 4), "u2": topic("u2", 2)})
    driver.joins("A", "t4", subscribed_topic_regex="u.*")
    driver.joins("B", "t4")
    driver.settles()
    return driver


def test_a_group_is_described_with_its_topics_and_subscriptions(driver: ConsumerDriver) -> None:
    told, summary = describe_group(driver.group), summarize_group(driver.group)
    assert (told.type, told.state, summary.assigned) == ("consumer", "Stable", 6)
    facts, *tables = tabulate_group(told)
    assert isinstance(facts, FactList)
    assert ("Type", "consumer") in facts.pairs
    rows = {each.title: each.rows for each in tables if isinstance(each, Table)}
    assert rows["Topics"] == [("t4", "4", "t4#0"), ("u2", "2", "u2#0")]
    assert rows["Subscriptions"] == [("A", "t4", "u.*", "u2"), ("B", "t4", "", "")]


def test_a_topic_that_is_given_up_is_described_so(driver: ConsumerDriver) -> None:
    driver.sees({"u2": topic("u2", 2)})
    topics = next(
        each
        for each in tabulate_group(describe_group(driver.group))
        if isinstance(each, Table) and each.title == "Topics"
    )
    assert topics.rows == [("t4", "4, given up", "t4#0"), ("u2", "2", "u2#0")]


def test_each_epoch_is_explained_with_what_moved(driver: ConsumerDriver) -> None:
    driver.sees({"t4": Topic("t4#0", 5), "u2": topic("u2", 2)})
    driver.settles()
    reports = [each.report for each in read_epochs(driver.control.entries)]
    assert [(each.group_epoch, str(each.bump.cause)) for each in reports if each.bump] == [
        (1, "member-joined A"),
        (2, "subscription-changed A"),
        (3, "member-joined B"),
        (4, "topics-changed t4"),
    ]
    assert reports[-1].target_change is not None


def test_the_log_is_told_in_words(driver: ConsumerDriver) -> None:
    records = [decode(each) for each in driver.control.entries]
    told = [Narrator().tell(each) for each in records if each]
    assert told[1] == "A subscribes to t4, 'u.*': u2"
    assert told[2] == "topics, with their partitions: t4 (4), u2 (2)"
