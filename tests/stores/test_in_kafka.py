# pyright: basic
"""A log in Kafka: foreign records, faults of the broker, and how topics must be set up."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from fairlead.events.log.errors import LogError, LogFailedError, OwnerFencedError
from fairlead.events.stores import kafka as kafka_store
from fairlead.events.stores import kafka_reader
from fairlead.events.stores.kafka import KafkaStore
from fairlead.events.stores.kafka_clients import TopicNames
from fairlead.events.stores.kafka_records import (
    PART_BYTES,
    StoreClaim,
    commit_parts,
)
from fairlead.events.stores.port import (
    Claimant,
    Claimed,
    StoreAwayError,
    StoreDiffersError,
    StoreSnapshot,
)
from fairlead_tests.java_peer import NoPeer
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.trio import trio_at
from fairlead_tests.postgres_server import wait_until
from fairlead_tests.stores.engine import BEGINNING, A, B, claimed, commit_at, read_all
from fairlead_tests.stores.in_kafka import PREFIX, KafkaEngine

Opened = Callable[[], KafkaStore]
PATIENCE_S = 60.0


@pytest.fixture
def store(kafka: KafkaEngine, log: str) -> Iterator[Opened]:
    """Return what opens the log once more; all are closed."""
    made: list[KafkaStore] = []

    def opened() -> KafkaStore:
        made.append(kafka.store(log))
        return made[-1]

    yield opened
    for each in made:
        each.close()


def claimed_at_last(store: KafkaStore, claimant: Claimant = A, silence: float = 0.0) -> Claimed:
    """Claim once the broker is back."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            read_all(store)
            if made := store.claim(claimant, silence):
                return made
        except (LogFailedError, StoreAwayError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def test_records_of_others_in_the_topic_change_nothing(
    store: Opened, kafka: KafkaEngine, log: str
) -> None:
    owner = store()
    epoch = claimed(owner).epoch
    commits = [commit_at(0), commit_at(1), commit_at(2)]
    former = StoreClaim(b"log", epoch - 1, b"former", *Claimant("z", "z:1", "z"))
    for each in commits:
        kafka.write(log, [None, b"", b"garbage", os.urandom(300), *commit_parts(former, each)])
        owner.append(epoch, each)
        owner.beat(epoch)
    assert read_all(store()).commits == commits
    assert read_all(owner).commits == commits


def test_a_snapshot_keeps_its_parts_whatever_others_write_between(
    store: Opened, kafka: KafkaEngine, log: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, body = store(), os.urandom(2 * PART_BYTES)
    epoch = claimed(owner).epoch
    owner.append(epoch, commit_at(0))

    def in_rounds(records: Sequence[bytes], *_: object) -> Iterator[Sequence[bytes]]:
        for each in records:
            yield [each]
            kafka.write(log, [b"garbage"])

    with monkeypatch.context() as patched:
        patched.setattr(kafka_store, "in_rounds", in_rounds)
        owner.compact(epoch, StoreSnapshot(1, body))
    owner.append(epoch, commit_at(1))
    wait_until(lambda: read_all(store()).snapshot is not None)
    assert read_all(store())[:2] == (StoreSnapshot(1, body), [commit_at(1)])


def test_an_append_that_arrives_after_the_next_claim_does_not_count(
    store: Opened, kafka: KafkaEngine, log: str
) -> None:
    former, owner = store(), store()
    claimed(former)
    claim, *_ = kafka.records(log)
    assert isinstance(claim, StoreClaim)
    first, second = commit_parts(claim, commit_at(0, os.urandom(PART_BYTES + 1)))
    kafka.write(log, [first])
    made = claimed(owner, B)
    kafka.write(log, [second, *commit_parts(claim, commit_at(0, b"late"))])
    owner.append(made.epoch, commit_at(0, b"of the owner"))
    kafka.write(log, commit_parts(claim, commit_at(1, b"later")))
    assert read_all(store()).commits == [commit_at(0, b"of the owner")]
    assert read_all(former).commits == [commit_at(0, b"of the owner")]


def test_an_append_before_the_next_claim_counts_also_if_its_owner_hears_of_both(
    store: Opened, kafka: KafkaEngine, log: str
) -> None:
    former = store()
    epoch = claimed(former).epoch
    claim, *_ = kafka.records(log)
    assert isinstance(claim, StoreClaim)
    kafka.write(log, [b"something in between"])
    assert former.append(epoch, commit_at(0)).end == 1
    owner = store()
    claimed(owner, B)
    with pytest.raises(OwnerFencedError):
        former.append(epoch, commit_at(1))
    assert read_all(owner).commits == [commit_at(0)]


def test_an_append_that_the_broker_does_not_answer_counts_once_or_never(
    store: Opened, broker: Broker
) -> None:
    owner = store()
    epoch = claimed(owner).epoch
    owner.append(epoch, commit_at(0))
    with broker.hanging():
        with pytest.raises(LogFailedError, match="is unknown: exit"):
            owner.append(epoch, commit_at(1, b"unknown"))
        with pytest.raises(LogFailedError, match="of an earlier write"):
            owner.append(epoch, commit_at(1, b"again"))
    other = store()
    made = claimed_at_last(other, A, PATIENCE_S)
    kept = read_all(other)
    assert made.epoch > epoch
    assert kept.commits in ([commit_at(0)], [commit_at(0), commit_at(1, b"unknown")])
    other.append(made.epoch, commit_at(kept.position.end, b"behind"))
    seen = owner.owner()
    assert seen is not None
    assert seen.epoch == made.epoch
    with pytest.raises(OwnerFencedError):
        owner.beat(epoch)
    bodies = [each.body for each in read_all(store()).commits]
    assert bodies == [*(each.body for each in kept.commits), b"behind"]


def confirmed_appends(store: KafkaStore, epoch: int, ends: list[int], end: int = 0) -> None:
    """Append until it fails, and note the end after each that counts."""
    while True:
        try:
            end = store.append(epoch, commit_at(end, b"%d" % end)).end
        except (LogFailedError, StoreAwayError):
            return
        ends.append(end)


@pytest.mark.soak
def test_what_was_confirmed_counts_after_the_broker_was_killed(
    store: Opened, broker: Broker
) -> None:
    owner, reader, ends = store(), store(), list[int]()
    epoch = claimed(owner).epoch
    with ThreadPoolExecutor(1) as pool:
        appends = pool.submit(confirmed_appends, owner, epoch, ends)
        position = BEGINNING
        while position.end < 20:
            position = reader.read(position, 0.1).position
        broker.kill()
        broker.up()
        appends.result(PATIENCE_S)
    other = store()
    made = claimed_at_last(other, A, PATIENCE_S)
    for each in (other, reader):
        bodies = [commit.body for commit in read_all(each).commits]
        assert bodies == [b"%d" % at for at in range(len(bodies))]
        assert len(bodies) >= ends[-1] >= 20
    other.append(made.epoch, commit_at(len(bodies)))


def goes_beyond(ends: list[int], end: int) -> bool:
    return ends[-1:] > [end]


@pytest.mark.soak
def test_what_was_confirmed_counts_after_its_leader_was_killed(tmp_path: Path) -> None:
    with ExitStack() as stack:
        try:
            trio = stack.enter_context(trio_at(tmp_path))
        except NoPeer as reason:
            pytest.skip(f"Kafka cannot be had: {reason}")
        stores = [KafkaStore("log", {"bootstrap.servers": trio.bootstrap}) for _ in range(3)]
        for each in stores:
            stack.callback(each.close)
        ends, pool = list[int](), stack.enter_context(ThreadPoolExecutor(1))
        for at, owner in enumerate(stores[:2]):
            made = claimed_at_last(owner, A, PATIENCE_S)
            begun = read_all(owner).position
            assert begun.end >= (ends[-1] if ends else 0)
            appends = pool.submit(confirmed_appends, owner, made.epoch, ends, begun.end)
            wait_until(partial(goes_beyond, ends, begun.end + 20))
            if not at:
                assert owner.flaws() == []
            trio.kill_leader("fairlead-log")
            appends.result(PATIENCE_S)
            trio.up()
        claimed_at_last(stores[2], B)
        bodies = [commit.body for commit in read_all(stores[2]).commits]
        assert bodies == [b"%d" % at for at in range(len(bodies))]
        assert len(bodies) >= ends[-1]


@pytest.mark.soak
def test_a_claim_does_not_wait_for_a_controller_that_was_lost(tmp_path: Path) -> None:
    with ExitStack() as stack:
        try:
            trio = stack.enter_context(trio_at(tmp_path))
        except NoPeer as reason:
            pytest.skip(f"Kafka cannot be had: {reason}")
        owner, other = (KafkaStore("log", {"bootstrap.servers": trio.bootstrap}) for _ in range(2))
        for each in (owner, other):
            stack.callback(each.close)
        made = claimed_at_last(owner, A, PATIENCE_S)
        read_all(other)
        topics = other._clients.admin().list_topics(timeout=PATIENCE_S).topics
        own = [topics[each] for each in TopicNames.of("fairlead-", "log")]
        lost, *_ = {1, 2, 3} - {each.partitions[0].leader for each in own}
        trio.kill_broker(lost)
        while lost in brokers_of(trio.bootstrap):  # any of these may be named as the controller
            with suppress(KafkaException, TimeoutError):
                other._topics.id()
        assert other.claim(B, 0.0) == Claimed(made.epoch + 1, 0)


def brokers_of(bootstrap: str) -> set[int]:
    """Return the brokers that the cluster counts on."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    return {*admin.list_topics(timeout=PATIENCE_S).brokers}


def test_a_topic_whose_beginning_was_deleted_by_others_is_refused(
    store: Opened, kafka: KafkaEngine, log: str
) -> None:
    owner = store()
    epoch = claimed(owner).epoch
    positions = [owner.append(epoch, commit_at(at)) for at in range(4)]
    kafka.topics.cut(TopicNames.of(PREFIX, log).log, 3)
    for position in (BEGINNING, positions[0]):
        with pytest.raises(StoreDiffersError, match=r"deleted without a snapshot|are missing"):
            read_all(store(), position)
    assert read_all(store(), positions[2]).commits == [commit_at(3)]


def test_a_cluster_that_cannot_be_reached_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (kafka_store, kafka_reader, sys.modules["fairlead.events.stores.kafka_clients"]):
        monkeypatch.setattr(module, "ANSWER_S", 0.3)
    secret = "open sesame"
    settings = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "reader",
        "sasl.password": secret,
    }
    made = KafkaStore("connect-control", settings)
    for attempt in (made.owner, lambda: made.claim(A, 0.0), lambda: made.read(BEGINNING, 0.0)):
        with pytest.raises(StoreAwayError, match="Kafka, topic fairlead-connect-control") as away:
            attempt()
        assert secret not in str(away.value)
    with pytest.raises(LogError) as flaw:
        KafkaStore("x", {"sasl.password": secret, "no.such.setting": 1}).owner()
    assert secret not in str(flaw.value)
    made.close()


def test_topics_that_may_lose_what_was_acknowledged_have_flaws(
    store: Opened, kafka: KafkaEngine, log: str
) -> None:
    owner = store()
    assert owner.flaws() == []
    epoch = claimed(owner).epoch
    owner.append(epoch, commit_at(0))
    names = TopicNames.of(PREFIX, log)
    alone = "has 1 replicas, and needs 3"
    least = "has min.insync.replicas=1, and needs 2"
    each = [f"topic {name} {flaw}" for name in names for flaw in (alone, least)]
    assert sorted(owner.flaws()) == sorted(each)
    kafka.topics.configure(
        names.log, retention_ms="1000", cleanup_policy="compact", min_insync_replicas="2"
    )
    assert sorted(set(owner.flaws()) - set(each)) == [
        f"topic {names.log} has cleanup.policy=compact, and needs delete",
        f"topic {names.log} has retention.ms=1000, and needs -1",
    ]
    assert owner.warnings() == []


def test_any_name_of_a_log_gives_one_of_a_topic() -> None:
    assert TopicNames.of("fairlead-", "connect-control") == (
        "fairlead-connect-control",
        "fairlead-connect-control-beats",
    )
    assert TopicNames.of("", "a_b c/ü.1").log == "a_5fb_20c_2f_c3_bc.1"


def test_without_the_client_an_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    for name in ("kafka", "kafka_clients", "kafka_reader"):
        monkeypatch.delitem(sys.modules, f"fairlead.events.stores.{name}")
    with pytest.raises(LogError, match=r"pip install 'fairlead-connect\[kafka\]'"):
        __import__("fairlead.events.stores.kafka")
