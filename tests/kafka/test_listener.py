"""Kafka's own clients are members of our groups, with a real broker behind."""
# pyright: basic

from pathlib import Path

import pytest

from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.kafka_clients import clients
from fairlead_tests.kafka_clients.clients import GROUP, Client
from fairlead_tests.kafka_listener.live import PARTITIONS, Admin, Writer, reading, served
from fairlead_tests.kafka_listener.node import ListenerNode
from fairlead_tests.kafka_listener.readers import Reader, Readers
from fairlead_tests.kafka_listener.told import Told

PYTHON = (
    clients.CONFLUENT,
    clients.CONFLUENT_COOPERATIVE,
    clients.CONFLUENT_MODERN,
    clients.AIOKAFKA,
    clients.KAFKA_PYTHON,
    clients.KAFKA_PYTHON_COOPERATIVE,
)
JAVA = (clients.JAVA, clients.JAVA_COOPERATIVE, clients.JAVA_MODERN)


def name_of(client: Client) -> str:
    return f"{client.name}-{client.protocol}"


def check(node: ListenerNode, readers: Readers, writer: Writer, client: Client) -> None:
    """Check that nothing is lost, read by two at a time, or went back."""
    admin, total = Admin(node), len(writer.written)
    readers.until(lambda: readers.read() >= writer.written, "all is read")
    readers.until(lambda: sum(admin.committed().values()) == total, "all is committed")
    committed = admin.committed()
    assert [each for each in readers.acknowledged().items() if committed[each[0]] < each[1]] == []
    assert readers.twice_owned() == []
    generations = node.generations(GROUP)
    assert generations == sorted(generations)
    assert bool(generations) is (client.protocol != "consumer")  # such a group has no generation


def join_over_crashes(
    node: ListenerNode, readers: Readers, client: Client, member: Reader
) -> Reader:
    """Have one more join, and in the middle of that end all processes that have to do with it."""
    admin = Admin(node)
    with readers.joining(client, member) as joining:
        readers.until(lambda: admin.described()[1] == 2, "it joins, and waits for the other")
        assert admin.described()[0] != "STABLE"
        for each in ("fairlead: shard", "fairlead: kafka"):
            node.kill(each)
    return joining


def check_told(node: ListenerNode, partitions: list[str], read: int) -> None:
    """Check that the node tells what a group went through that was converted there and back."""
    told = Told(node, GROUP)
    group, holders = told.group(), told.holders()
    assert (group["type"], group["state"], len(group["members"])) == ("classic", "Stable", 2)
    assert {each["client_id"] for each in group["members"]} == {"rdkafka"}
    assert sum(each["offset"] for each in group["committed"]) == read
    assert sorted(holders) == partitions
    assert told.last_takers(partitions) == holders
    epochs = told.group("history?limit=100")["epochs"]
    assert {each["cause"] for each in epochs} >= {"member-joined", "member-left", "group-upgraded"}
    changed = " ".join(each["changed"] for each in epochs)
    for protocol in ("from the classic protocol", "to the classic protocol"):
        assert f"converted {protocol}, because rdkafka(" in changed


@pytest.mark.soak  # each run has one kind in a group that is rolled, and recorded conversations
@pytest.mark.parametrize("client", PYTHON + JAVA, ids=name_of)
def test_consumers_come_and_go_over_every_crash(
    broker: Broker,
    topics: Topics,
    tmp_path: Path,
    client: Client,
    request: pytest.FixtureRequest,
) -> None:
    if client in JAVA:
        request.getfixturevalue("jars")
    topic = topics.make(f"listener.{name_of(client)}", PARTITIONS)
    with served(tmp_path, broker) as node, reading(node, topic, tmp_path) as readers:
        writer, admin = Writer(node, topic), Admin(node)
        for count in (1, 2, 3):
            readers.add(client)
            writer.writes()
            readers.until(readers.share(*readers.all), f"{count} share the partitions")
        for killed in ("fairlead: kafka", "fairlead: shard"):
            node.kill(killed)
            writer.writes()
            readers.until(lambda: readers.read() >= writer.written, f"all is read over {killed}")
            readers.until(readers.share(*readers.all), f"{killed} is back")
        readers.until(lambda: admin.described() == ("STABLE", 3), "the group is described")
        first, second, third = readers.all
        first.leave()
        readers.until(readers.share(second, third), "two share what the third had")
        second.kill()
        readers.until(readers.share(third), "what the killed one had is read by the other")
        fourth = join_over_crashes(node, readers, client, third)
        writer.writes()
        readers.until(readers.share(third, fourth), "two share the partitions again")
        writer.writes()  # a consumer that could not commit in a round does with what it reads next
        check(node, readers, writer, client)
        for each in (third, fourth):
            each.leave()
        admin.deletes()


def test_a_group_is_rolled_from_one_protocol_to_the_other_and_back(
    node: ListenerNode, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.make("listener.rolled", PARTITIONS)
    with reading(node, topic, tmp_path) as readers:
        writer, admin = Writer(node, topic), Admin(node)
        there = [readers.add(clients.CONFLUENT_COOPERATIVE) for _ in range(2)]
        readers.until(readers.share(*there), "two share the partitions")
        for client in (clients.CONFLUENT_MODERN, clients.CONFLUENT_COOPERATIVE):
            for _ in range(len(there)):
                there.append(readers.add(client))
                writer.writes()
                readers.until(readers.share(*there), f"one of {client.protocol} more has some")
                there.pop(0).leave()
                writer.writes()
                readers.until(readers.share(*there), f"one before {client.protocol} left")
        readers.until(lambda: readers.read() >= writer.written, "all is read")
        total = len(writer.written)
        readers.until(lambda: sum(admin.committed().values()) == total, "all is committed")
        assert readers.twice_owned() == []
        check_told(node, [f"{topic}-{each}" for each in range(PARTITIONS)], total)
        for each in there:
            each.leave()
