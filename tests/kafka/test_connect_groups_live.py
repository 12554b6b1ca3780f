"""Stock workers of Kafka Connect, and a member of the connect protocol, in one group."""
# pyright: basic

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from fairlead.events.model import GroupType
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.kafka_clients.connect import Worker, Workers, connect_workers, until
from fairlead_tests.kafka_listener.example_member import Example
from fairlead_tests.kafka_listener.live import served
from fairlead_tests.kafka_listener.node import ListenerNode

NOBODYS: set[str] = set()

pytestmark = pytest.mark.usefixtures("jars")


@dataclass
class Crew:
    """One group of both kinds of members, and the connectors that it runs."""

    node: ListenerNode
    workers: Workers
    group_id: str
    folder: Path
    topics: Topics
    connectors: list[str] = field(default_factory=list)
    lines: int = 0
    """How many lines each connector has got."""

    def adds(self, name: str, by: Worker) -> None:
        """Make a connector by the REST interface of a stock worker."""
        file = self.folder / f"{name}.txt"
        file.write_text("a line\n")
        config = {"connector.class": "FileStreamSource", "file": str(file), "topic": self.group_id}
        until(partial(by.ask, f"/connectors/{name}/config", "PUT", config), f"{name} is made")
        self.connectors.append(name)

    def joins(self, name: str) -> Example:
        """Start a member of the connect protocol."""
        return Example(self.node.port, self.folder / name, self.group_id)

    @property
    def all(self) -> set[str]:
        """All that is to run."""
        return {*self.connectors, *(f"{each}-0" for each in self.connectors)}

    def is_shared(self, *members: Example) -> bool:
        """Whether each resource has one owner, and each member says the same as the log."""
        group = self.node.group(self.group_id)
        if {str(each) for each in group.configured} != self.all or group.state.value != "Stable":
            return False
        held = {
            each.member_id: {*map(str, each.current.assigned)} for each in group.members.values()
        }
        said = [each.runs() for each in members]
        return all(held.values()) and all(each in held.values() for each in said)

    def size(self) -> int:
        """Return how many members the group has."""
        return len(self.node.group(self.group_id).workers())

    def goes_on(self, why: str, but: set[str] = NOBODYS) -> None:
        """Write a line for each connector, and see that those of stock workers come."""
        names = [each for each in self.connectors if f"{each}-0" not in but]
        self.lines += 1
        for each in names:
            with (self.folder / f"{each}.txt").open("a") as file:
                file.write(f"{each} {self.lines}\n")
        wanted = {f"{each} {self.lines}" for each in names}
        until(lambda: wanted <= {*self.topics.values(self.group_id)}, f"lines go on: {why}")


@contextmanager
def crew_of(node: ListenerNode, name: str, topics: Topics, folder: Path) -> Iterator[Crew]:
    topic = topics.make(name)
    with connect_workers(node.bootstrap, folder, topic) as workers:
        yield Crew(node, workers, topic, folder, topics)


@pytest.mark.soak  # each run: a stock worker in test_listener_connect.py, members in shards
def test_a_member_and_a_stock_worker_share_what_its_leader_has_configured(
    node: ListenerNode, topics: Topics, tmp_path: Path
) -> None:
    with ExitStack() as ended:
        crew = ended.enter_context(crew_of(node, "crew.of.two", topics, tmp_path))
        stock = crew.workers.add()
        for name in ("a", "b"):
            crew.adds(name, stock)
        crew.goes_on("the stock worker runs all")
        member = crew.joins("member")
        ended.callback(member.dies)
        until(lambda: crew.is_shared(member), "both have a share")
        crew.goes_on("the stock worker runs the rest", member.runs())
        crew.adds("c", stock)
        until(lambda: crew.is_shared(member), "the new connector is shared out")
        node.kill("fairlead: shard")
        crew.adds("d", stock)
        until(lambda: crew.is_shared(member), "the coordinator was killed")
        member.leaves()
        crew.goes_on("the stock worker runs all again")
        assert node.group(crew.group_id).type is GroupType.CLASSIC
        epochs = node.epochs(crew.group_id)
        assert epochs == sorted(epochs) != []


def over_crashes(crew: Crew, stock: Worker, member: Example) -> None:
    """Kill the processes of the node, and see that what is configured then is shared out."""
    for number, killed in enumerate(("fairlead: shard", "fairlead: kafka")):
        crew.node.kill(killed)
        crew.adds(f"e{number}", stock)
        until(lambda: crew.is_shared(member), f"{killed} was killed")
        crew.goes_on(f"{killed} was killed", member.runs())


@pytest.mark.soak
def test_a_group_is_rolled_from_stock_workers_to_members_and_back_over_every_crash(
    broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    with ExitStack() as ended:
        node = ended.enter_context(served(tmp_path, broker))
        crew = ended.enter_context(crew_of(node, "crew.rolled", topics, tmp_path))
        first, second = crew.workers.add(), crew.workers.add()
        for name in "abcd":
            crew.adds(name, second)
        crew.goes_on("two stock workers run all")
        one = crew.joins("one")
        ended.callback(one.dies)
        until(lambda: crew.is_shared(one), "a member has a share")
        over_crashes(crew, second, one)
        first.kill()
        until(lambda: crew.is_shared(one) and crew.size() == 2, "a stock worker was killed")
        crew.goes_on("a stock worker was killed", one.runs())
        two = crew.joins("two")
        ended.callback(two.dies)
        until(lambda: crew.is_shared(one, two), "another member has a share")
        second.kill()
        until(lambda: one.runs() | two.runs() == crew.all, "members alone run all")
        node.kill("fairlead: shard")
        third = crew.workers.add()
        until(lambda: crew.is_shared(one, two) and crew.size() == 3, "a stock worker is back")
        crew.adds("f", third)
        until(lambda: crew.is_shared(one, two), "it has configured more")
        one.leaves()
        node.kill("fairlead: kafka")
        two.dies()
        crew.goes_on("stock workers run all again")
        until(lambda: node.group(crew.group_id).type is GroupType.CLASSIC, "it is classic")
        epochs = node.epochs(crew.group_id)
        assert epochs == sorted(epochs) != []
