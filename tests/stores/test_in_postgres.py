"""A log in PostgreSQL: the fence, faults of server and network, and how it must be set up."""

import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from fairlead.events.log.errors import LogError, LogFailedError, OwnerFencedError
from fairlead.events.stores.port import (
    Claimed,
    LogStore,
    StoreAwayError,
    StoreDiffersError,
    StorePosition,
    StoreSnapshot,
)
from fairlead.events.stores.postgres import PostgresStore
from fairlead_tests.hosts.standby import pair
from fairlead_tests.postgres_server import PASSWORD, PostgresServer, started, wait_until
from fairlead_tests.stores.cable import cabled
from fairlead_tests.stores.engine import A, B, claimed, commit_at, read_all
from fairlead_tests.stores.in_postgres import (
    PostgresEngine,
    waiting_for_standby,
    without_standby,
)

LOG = "connect-control"
Opened = Callable[[], PostgresStore]


@pytest.fixture
def store(postgres: PostgresEngine) -> Iterator[Opened]:
    """Return what opens the log once more; all are closed."""
    made: list[PostgresStore] = []

    def opened() -> PostgresStore:
        made.append(postgres.store(LOG))
        return made[-1]

    yield opened
    for each in made:
        each.close()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


def waits_for_lock(postgres: PostgresEngine) -> bool:
    query = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    return postgres.database.run(query) != [(0,)]


def append_and_wait(
    admin: Any, pool: ThreadPoolExecutor, owner: LogStore, epoch: int
) -> tuple[int, Future[StorePosition]]:
    """Append until one waits for the standby: the server heeds its new setting a little later."""
    for base in count():
        appended = pool.submit(owner.append, epoch, commit_at(base))
        wait_until(lambda: appended.done() or waiting_for_standby(admin))  # noqa: B023
        if not appended.done():
            return base, appended
    raise AssertionError


def test_a_claim_waits_for_an_append_that_is_under_way(
    store: Opened, postgres: PostgresEngine, pool: ThreadPoolExecutor
) -> None:
    former, owner = store(), store()
    epoch = claimed(former).epoch
    position = read_all(owner).position
    with without_standby(postgres.database.server) as admin:
        base, appended = append_and_wait(admin, pool, former, epoch)
        claims = pool.submit(owner.claim, B, 0.0)
        wait_until(lambda: waits_for_lock(postgres))
        assert not appended.done()
        assert not claims.done()
    appended.result(30)
    made = claims.result(30)
    assert made is not None
    assert made.epoch == epoch + 1
    assert read_all(owner, position).commits == [commit_at(each) for each in range(base + 1)]


def test_an_append_that_arrives_after_the_next_claim_does_not_count(
    store: Opened, postgres: PostgresEngine, pool: ThreadPoolExecutor
) -> None:
    former, owner = store(), store()
    epoch = claimed(former).epoch
    with postgres.database.session() as session:
        session.execute("LOCK TABLE fairlead.commits IN SHARE MODE")
        appended = pool.submit(former.append, epoch, commit_at(0, b"late"))
        wait_until(lambda: waits_for_lock(postgres))
        made = claimed(owner, B)
        assert not appended.done()
        session.rollback()
    with pytest.raises(OwnerFencedError):
        appended.result(30)
    owner.append(made.epoch, commit_at(0, b"of the owner"))
    assert read_all(store()).commits == [commit_at(0, b"of the owner")]


def test_an_append_whose_answer_is_lost_counts_once_or_never(
    postgres: PostgresEngine, store: Opened, pool: ThreadPoolExecutor
) -> None:
    with cabled(postgres.database.server.port) as cable:
        owner = postgres.store_at(cable.port, LOG)
        epoch = claimed(owner).epoch
        owner.append(epoch, commit_at(0))
        cable.mute()
        appended = pool.submit(owner.append, epoch, commit_at(1, b"unknown"))
        assert cable.lost.wait(30)
        cable.cut()
        with pytest.raises(LogFailedError, match="unknown: exit"):
            appended.result(30)
        owner.close()
    again = store()
    read_all(again)
    assert again.claim(A, 60.0) == Claimed(epoch + 1, 11)
    assert read_all(again).commits == [commit_at(0), commit_at(1, b"unknown")]
    again.append(epoch + 1, commit_at(2))


def test_a_server_that_does_not_answer_ends_each_call(
    postgres: PostgresEngine, store: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.events.stores.postgres.ANSWER_S", 0.3)
    former = store()
    epoch = claimed(former).epoch
    with cabled(postgres.database.server.port) as cable:
        stores = [postgres.store_at(cable.port, LOG) for _ in range(3)]
        for each in stores:
            read_all(each)
        cable.mute()
        with pytest.raises(LogFailedError, match="no answer"):
            stores[0].append(epoch, commit_at(0))
        with pytest.raises(StoreAwayError, match="no answer"):
            stores[1].beat(epoch)
        with pytest.raises(StoreAwayError, match="no answer"):
            stores[2].read(read_all(former).position, 0.0)
    with pytest.raises(StoreAwayError, match="Nothing counted"):
        stores[0].append(epoch, commit_at(1))
    for each in stores:
        each.close()


def test_an_append_that_a_standby_may_not_have_is_of_unknown_outcome(
    store: Opened, postgres: PostgresEngine, pool: ThreadPoolExecutor
) -> None:
    owner = store()
    epoch = claimed(owner).epoch
    with without_standby(postgres.database.server) as admin:
        _, appended = append_and_wait(admin, pool, owner, epoch)
        admin.execute(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        )
        with pytest.raises(LogFailedError, match="canceling wait for synchronous replication"):
            appended.result(30)


def durable_appends(store: LogStore, epoch: int, base: int) -> Iterator[int]:
    """Append until it fails; yield the end after each that counts."""
    while True:
        try:
            base = store.append(epoch, commit_at(base, b"%d" % base)).end
        except (LogFailedError, StoreAwayError):
            return
        yield base


@pytest.mark.parametrize("how", ["killed", "stopped at once"])
def test_what_was_confirmed_counts_after_a_crash_of_the_server(
    server: PostgresServer, store: Opened, pool: ThreadPoolExecutor, how: str
) -> None:
    owner, reader = store(), store()
    epoch = claimed(owner).epoch
    position = read_all(reader).position
    confirmed: list[int] = []
    appends = pool.submit(lambda: confirmed.extend(durable_appends(owner, epoch, 0)))
    wait_until(lambda: reader.read(position, 0.1).position.end > 20)
    server.kill() if how == "killed" else server.stop(signal.SIGQUIT)
    appends.result(30)
    with pytest.raises(StoreAwayError):
        reader.owner()
    server.start()
    for each in (reader, store()):
        bodies = [commit.body for commit in read_all(each).commits]
        assert bodies == [b"%d" % at for at in range(len(bodies))]
        assert len(bodies) >= confirmed[-1] > 20
    assert claimed(reader).epoch == epoch + 1


@pytest.mark.soak
def test_what_was_confirmed_counts_after_its_standby_was_promoted(
    pool: ThreadPoolExecutor,
) -> None:
    with pair() as servers:
        places = ",".join(f"127.0.0.1:{each.port}" for each in (servers.primary, servers.standby))
        url = f"postgresql://postgres:{PASSWORD}@{places}/postgres"
        owner, reader, new = (PostgresStore(LOG, url) for _ in range(3))
        epoch = claimed(owner).epoch
        position = read_all(reader).position
        confirmed: list[int] = []
        appends = pool.submit(lambda: confirmed.extend(durable_appends(owner, epoch, 0)))
        wait_until(lambda: reader.read(position, 0.1).position.end > 20)
        servers.promote()
        appends.result(30)
        servers.restore()
        with pytest.raises(StoreAwayError):
            reader.owner()
        for each in (reader, new):
            bodies = [commit.body for commit in read_all(each).commits]
            assert bodies == [b"%d" % at for at in range(len(bodies))]
            assert len(bodies) >= confirmed[-1] > 20
        assert claimed(reader).epoch == epoch + 1
        assert [each for each in new.warnings() if "standby" in each] == []
        for each in (owner, reader, new):
            each.close()


def test_no_error_has_the_password(server: PostgresServer) -> None:
    secret = "hush hush"
    for url in (
        f"postgresql://postgres:{secret.replace(' ', '%20')}@127.0.0.1:{server.port}/postgres",
        f"postgresql://postgres:{secret.replace(' ', '%20')}@127.0.0.1:1/postgres",
        f"host=127.0.0.1 port={server.port} user=postgres password='{secret}'",
    ):
        with pytest.raises(StoreAwayError) as refusal:
            PostgresStore(LOG, url).owner()
        assert "hush" not in str(refusal.value)
        assert refusal.value.__cause__ is None
    with pytest.raises(LogError, match="cannot be read") as flaw:
        PostgresStore(LOG, f"postgresql://postgres:{secret}@[127.0.0.1/x")
    assert "hush" not in str(flaw.value)


def test_rows_that_do_not_follow_each_other_are_refused(
    store: Opened, postgres: PostgresEngine
) -> None:
    owner = store()
    epoch = claimed(owner).epoch
    for at in range(3):
        owner.append(epoch, commit_at(at))
    postgres.database.run("DELETE FROM fairlead.commits WHERE base_offset = 1")
    with pytest.raises(StoreDiffersError, match="no commit that begins at 1"):
        read_all(store())


def test_logs_of_one_schema_do_not_meet(postgres: PostgresEngine) -> None:
    stores = [
        postgres.store(name) for name in ("connect-control", "connect-offsets", "o'dd \\ %s {x}")
    ]
    for at, each in enumerate(stores):
        epoch = claimed(each).epoch
        each.append(epoch, commit_at(0, b"%d" % at))
        each.compact(epoch, StoreSnapshot(1, b"%d" % at))
    assert [read_all(each).snapshot for each in stores] == [
        StoreSnapshot(1, b"%d" % at) for at in range(3)
    ]
    for each in stores:
        each.close()


def test_what_is_lost_with_the_server_is_told(store: Opened) -> None:
    *found, standby = store().warnings()
    lost = "is off in PostgreSQL: all of it may be lost with its host"
    assert found == [f"fsync {lost}", f"full_page_writes {lost}"]
    assert "no synchronous standby" in standby


def test_a_server_that_keeps_its_word_has_none(store: Opened, postgres: PostgresEngine) -> None:
    postgres.database.run("ALTER DATABASE test SET synchronous_commit = off")
    with started(fsync="on", full_page_writes="on", synchronous_standby_names="b") as server:
        made = PostgresStore(
            LOG, f"postgresql://postgres:{PASSWORD}@127.0.0.1:{server.port}/postgres"
        )
        assert (made.flaws(), made.warnings()) == ([], [])
        made.close()
    assert store().flaws() == []  # its session waits for commits all the same


def test_without_psycopg_an_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "fairlead.events.stores.postgres")
    with pytest.raises(LogError, match=r"pip install 'fairlead-connect\[postgres\]'"):
        __import__("fairlead.events.stores.postgres")
