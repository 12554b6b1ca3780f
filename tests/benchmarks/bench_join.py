# pyright: basic
"""How long a second stock worker of Kafka Connect takes from its join to its work.

`python tests/benchmarks/bench_join.py` prints JSON lines. One worker has a source and a sink, with
a task each; another one starts. It joins when its group leaves Stable, and has its work when it
says itself that each of the two runs a task. The peer is the same at a real broker. Without Java
there is nothing to measure.
"""

import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Final

from kafka.admin import KafkaAdminClient

from fairlead_tests.benchmarks.figures import median, tell
from fairlead_tests.java_peer import NoPeer
from fairlead_tests.kafka.broker import broker_at
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.kafka_clients.connect import connect_workers, until
from fairlead_tests.kafka_listener.node import listener_node

TIMES: Final = 3
HEARTBEAT_MS: Final = 2_000
"""Of the recorded conversation `connect-sessioned-two-workers`; Connect's own default is 3 s."""
KINDS: Final = ("FileStreamSource", "FileStreamSink")


def main() -> None:
    """Measure both, in turns."""
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as folder:
        root = Path(folder)
        try:
            with (
                broker_at(root / "broker") as broker,
                listener_node(root / "data", broker.bootstrap, kafka_group_shards=1) as node,
            ):
                topics, places = Topics(broker.bootstrap), (node.bootstrap, broker.bootstrap)
                taken = [[join_s(topics, each, root) for each in places] for _ in range(TIMES)]
        except NoPeer as reason:
            print(f"there are no workers to measure: {reason}", file=sys.stderr)
            return
    ours, theirs = (median([*each]) for each in zip(*taken, strict=True))
    conditions = f"two workers, heartbeats each {HEARTBEAT_MS} ms, median of {TIMES}"
    name = "stock connect: join to work"
    tell(name, ours, "s", peer="broker", peer_value=theirs, conditions=conditions)


def join_s(topics: Topics, bootstrap: str, root: Path) -> float:
    """Return how long the second worker takes whose coordinator is found there, in seconds."""
    folder = Path(tempfile.mkdtemp(dir=root))
    topic = topics.make(folder.name.replace("_", "-"))
    with connect_workers(bootstrap, folder, topic, heartbeat_ms=HEARTBEAT_MS) as workers:
        first = workers.add()
        (folder / "from.txt").touch()
        for kind, file, key in zip(KINDS, ("from.txt", "to.txt"), ("topic", "topics"), strict=True):
            config = {"connector.class": kind, "file": str(folder / file), key: topic}
            until(partial(first.ask, f"/connectors/{kind}/config", "PUT", config), "it is made")
        until(lambda: len(first.runs(*KINDS)) == len(KINDS), "the first worker runs both")
        is_stable = partial(is_in, KafkaAdminClient(bootstrap_servers=bootstrap), topic, "Stable")
        until(is_stable, "the group of the first worker is stable")
        second = workers.add()
        until(lambda: not is_stable(), "the second worker joins", 0)
        begun = time.monotonic()
        until(lambda: len({*second.runs(*KINDS).values()}) == len(KINDS), "each runs a task", 0)
        return time.monotonic() - begun


def is_in(admin: KafkaAdminClient, group: str, state: str) -> bool:
    """Tell whether the coordinator says that a group is in that state."""
    listed = [each for each in admin.list_groups() if each["group_id"] == group]
    return [each["group_state"] for each in listed] == [state]


if __name__ == "__main__":
    main()
