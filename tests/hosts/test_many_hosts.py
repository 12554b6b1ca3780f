"""Three hosts, one store: whatever fails, each row arrives once, and what was told stays.

HOSTS_FAULTS names the faults; HOSTS_SEED decides which of them the second test has at a time, and
CHAOS_SECONDS for how long.
"""
# pyright: basic

import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fairlead_tests.hosts.faults import FAULTS
from fairlead_tests.hosts.network import NoNetworkError
from fairlead_tests.hosts.stores import STORES
from fairlead_tests.hosts.trial import Trial, trial
from fairlead_tests.java_peer import NoPeer
from fairlead_tests.postgres_server import NoServer, PostgresServer, started

pytestmark = [
    pytest.mark.soak,
    pytest.mark.spark,
    pytest.mark.cluster,
    pytest.mark.timeout(0),
    # Of connections to a node that has just ended.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SECONDS = float(os.environ.get("CHAOS_SECONDS", "300"))
SEED = int(os.environ.get("HOSTS_SEED", "1"))
AT_ONCE = (1, 1, 2)
NAMES = os.environ.get("HOSTS_FAULTS", " ".join(FAULTS)).split()


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server that hosts on other addresses reach."""
    with ExitStack() as stack:
        try:
            made = stack.enter_context(started(listen_addresses="*"))
        except NoServer as reason:
            pytest.skip(f"PostgreSQL cannot be had: {reason}")
        with (made.data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.89.0.0/24 scram-sha-256\n")
        made.asked().execute("SELECT pg_reload_conf()")
        yield made


@pytest.fixture(params=[*STORES])
def hosts(
    server: PostgresServer, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Trial]:
    """Return hosts with each of the stores."""
    with ExitStack() as stack:
        try:
            made = stack.enter_context(trial(tmp_path, request.param, server, SEED))
        except (NoNetworkError, NoPeer) as reason:
            pytest.skip(str(reason))
        yield made


def test_after_each_fault_all_rows_are_there_once_and_all_copies_are_equal(hosts: Trial) -> None:
    for name in NAMES:
        hosts.suffer(name)
        hosts.recover()
    assert verdict_of(hosts) == {}


def test_after_faults_at_the_same_time_as_well(hosts: Trial) -> None:
    dice, deadline = random.Random(SEED), time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        for _ in range(4):
            hosts.suffer(*dice.sample(NAMES, k=dice.choice(AT_ONCE)))
        hosts.recover()
    assert verdict_of(hosts) == {}


def verdict_of(hosts: Trial) -> object:
    found = hosts.verdict()
    print(hosts.seconds, hosts.commands.refused)
    return found
