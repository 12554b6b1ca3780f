"""Kafka's own tools say of our groups what they say of a broker's."""
# pyright: basic

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead_tests.java_peer import NoPeer
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.kafka_clients import clients
from fairlead_tests.kafka_clients.clients import GROUP
from fairlead_tests.kafka_clients.jars import Tools, tools
from fairlead_tests.kafka_listener.live import PARTITIONS, Writer, served
from fairlead_tests.kafka_listener.readers import Readers

pytestmark = pytest.mark.usefixtures("jars")

MODERN_GROUP = "readers-modern"
MODERN = replace(
    clients.CONFLUENT_MODERN,
    config={**clients.CONFLUENT_MODERN.config, "group.id": MODERN_GROUP},
)
Said = list[list[str]]
HOWS = ("--offsets", "--members", "--state")


class Place:
    """Where members are and tools ask: the listener, or the broker itself."""

    def __init__(self, bootstrap: str, topic: str, folder: Path, run: Tools) -> None:
        folder.mkdir()
        self._bootstrap, self._topic, self._run = bootstrap, topic, run
        self.readers = Readers(bootstrap, topic, PARTITIONS, folder)

    def story(self) -> Iterator[tuple[str, Said]]:
        """Have members come and go, and yield what is asked with what is said."""
        members = [self.readers.add(each) for each in (clients.CONFLUENT, MODERN)]
        for each in members:
            self.readers.until(self.readers.share(each), "each group has its member")
        for group in (GROUP, MODERN_GROUP):
            self._wait_for_offsets(group)
        yield from self._asks_for_lists()
        yield from self._asks_of_groups()
        yield from self._changes_groups()
        for each in members:
            each.leave()
        yield from self._asks_of_groups()
        yield from self._changes_groups()
        yield from self._asks_for_lists()

    def _wait_for_offsets(self, group: str) -> None:
        lag = 5
        self.readers.until(
            lambda: (
                [
                    each[lag]
                    for each in self._run.consumer_groups("--describe", "--group", group)
                    if each[0] == group and each[1] == self._topic
                ]
                == ["0"] * PARTITIONS
            ),
            f"{group} has read all",
        )

    def _asks_for_lists(self) -> Iterator[tuple[str, Said]]:
        for words in (
            ("--list",),
            ("--list", "--state"),
            ("--list", "--state", "Empty"),
            ("--list", "--type", "classic"),
        ):
            yield self._ask(self._run.consumer_groups, *words)
        for words in (("--list",), ("--list", "--consumer"), ("--list", "--group-type", "classic")):
            yield self._ask(self._run.groups, *words)

    def _asks_of_groups(self) -> Iterator[tuple[str, Said]]:
        for group in (GROUP, MODERN_GROUP, "nowhere"):
            for how in HOWS:
                words = ("--describe", "--group", group, how, "--verbose")
                yield self._ask(self._run.consumer_groups, *words)

    def _changes_groups(self) -> Iterator[tuple[str, Said]]:
        """Change what may be changed: nothing while there are members."""
        for group in (GROUP, MODERN_GROUP):
            for words in (
                ("--reset-offsets", "--to-earliest", "--topic", self._topic, "--dry-run"),
                ("--reset-offsets", "--to-offset", "3", "--topic", f"{self._topic}:1", "--execute"),
                ("--describe",),
                ("--delete-offsets", "--topic", f"{self._topic}:1,2"),
                ("--describe",),
                ("--delete",),
            ):
                yield self._ask(self._run.consumer_groups, *words, "--group", group)

    def _ask(self, run: Callable[..., Said], *words: str) -> tuple[str, Said]:
        # The broker has groups of other tests as well.
        said = [
            line
            for line in run(*words)
            if line[0] not in {"at", "Caused"} and not line[0].startswith("fairlead.")
        ]
        return " ".join(words), sorted(map(self._neutral, said))

    def _neutral(self, line: list[str]) -> list[str]:
        """Replace what is another thing at each place: ids, and who coordinates."""
        return [
            "ID"
            if each.startswith("rdkafka-") or (len(each) == len("7QyFKHtlTf2r6QOUsL83KA"))
            else "NODE"
            if each.startswith("127.0.0.1:") or each in {"(1)", "(1000000000)"}
            else each
            for each in line
        ]


@pytest.mark.soak
def test_kafkas_tools_say_of_a_group_what_they_say_of_a_brokers(
    broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.make("listener.tools", PARTITIONS)
    with ExitStack() as open_now:
        node = open_now.enter_context(served(tmp_path, broker))
        Writer(node, topic).writes()
        places: list[Place] = []
        for name, bootstrap in (("ours", node.bootstrap), ("theirs", broker.bootstrap)):
            try:
                run = open_now.enter_context(tools(tmp_path, bootstrap))
            except NoPeer as reason:
                pytest.skip(f"Kafka's tools cannot be had: {reason}")
            places.append(Place(bootstrap, topic, tmp_path / name, run))
            open_now.callback(places[-1].readers.end)
        pool = open_now.enter_context(ThreadPoolExecutor(len(places)))
        ours, theirs = pool.map(lambda place: [*place.story()], places)
    assert [each for each in zip(ours, theirs, strict=True) if each[0] != each[1]] == []
