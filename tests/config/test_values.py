"""Which values are let through, and what is said about others."""

import os
import sys
from dataclasses import FrozenInstanceError

import pytest
from config.conftest import Refused

from fairlead.actors.settings import HIDDEN
from fairlead.runtime.config.keys import SETTINGS
from fairlead.runtime.config.load import load_config, load_with_sources
from fairlead.runtime.node.launcher.rest_process import rest_command
from fairlead.runtime.node.shown_settings import list_settings

WHOLE = "a whole number of milliseconds, from 1 to 2147483647"
HOSTS = "allowed is hosts as HOST or HOST:PORT, with commas between them, or nothing"
LISTENER = (
    "allowed is URLs such as http://127.0.0.1:8083, https://HOST:PORT or unix:///PATH, with commas"
    " between them, or nothing"
)
NAMES = "allowed is names of assignors, with commas between them"
WORKER = "allowed is a size as Java spells it, such as 1g; at least 2048m, or nothing"
MEMORY = "allowed is a size as Java spells it, such as 1g; at least 64m"
HEAP = "allowed is a size as Java spells it, such as 1g; at least 466m"


def test_every_setting_says_what_it_means_and_what_is_allowed() -> None:
    for key, setting in SETTINGS.items():
        assert (setting.name, bool(setting.documentation), bool(setting.allowed)) == (
            key,
            True,
            True,
        )


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("session.timeout.ms=ten", f"allowed is {WHOLE}"),
        ("session.timeout.ms=", f"allowed is {WHOLE}"),
        ("heartbeat.interval.ms=0", f"allowed is {WHOLE}"),
        ("rebalance.timeout.ms=2147483648", f"allowed is {WHOLE}"),
        (
            "scheduled.rebalance.max.delay.ms=-1",
            "allowed is a whole number of milliseconds, from 0 to 2147483647",
        ),
        (
            "scheduled.rebalance.leave.delay.ms=-2",
            "allowed is a whole number of milliseconds, from -1 to 2147483647",
        ),
        ("assignor.moves.drain=slowly", "allowed is at-once or paced"),
        ("workers=-1", "allowed is a whole number, from 0 to 1000"),
        ("worker.capacity=0", "allowed is a whole number, from 1 to 1000"),
        ("assignor.moves.per.round=0", "allowed is a whole number, from 1 to 2147483647"),
        (
            "assignor.moves.interval.ms=86400001",
            "allowed is a whole number of milliseconds, from 1000 to 86400000",
        ),
        (
            "assignor.moves.interval.ms=999",
            "allowed is a whole number of milliseconds, from 1000 to 86400000",
        ),
        (
            "process.answer.timeout.ms=999",
            "allowed is a whole number of milliseconds, from 1000 to 2147483647",
        ),
        (
            "worker.tags=gpu,,ssd",
            "an item is blank: there is a comma too many; allowed is up to 32 names of at most 64"
            " characters, with commas between them, or nothing",
        ),
        (
            "worker.tags=" + ",".join(map(str, range(33))),
            "there are 33; allowed is up to 32 names of at most 64 characters, with commas between"
            " them, or nothing",
        ),
        (
            "client.rack=a,b",
            "'a,b' is no label: at most 64 characters that can be printed, without commas; allowed"
            " is a name of at most 64 characters, without commas, or nothing",
        ),
        ("group.local.assignors=", f"a name is missing or invalid; {NAMES}"),
        ("group.local.assignors=a,,b", f"a name is missing or invalid; {NAMES}"),
        ("group.local.assignors=a b", f"a name is missing or invalid; {NAMES}"),
        ("group.local.assignors=a, b,a", f"a name occurs twice; {NAMES}"),
        ("assignor.memory.max=much", f"it is not a size; {MEMORY}"),
        ("assignor.memory.max=63m", f"it is too small or too large for a process; {MEMORY}"),
        ("worker.memory.max=2047m", f"it is too small or too large for a process; {WORKER}"),
        ("group.max.size=0", "allowed is a whole number, from 1 to 2147483647"),
        (
            "assignment.interval.ms=-1",
            "allowed is a whole number of milliseconds, from 0 to 2147483647",
        ),
        (
            "member.request.rate=100001",
            "allowed is a whole number of requests a second, from 0 to 100000",
        ),
        ("actor.port=65536", "allowed is a port, from 0 to 65535"),
        ("engine=flink", "allowed is spark or noop"),
        (
            "log.retention.ms=-2",
            "allowed is a whole number of milliseconds, from -1 to 9007199254740992",
        ),
        ("connectors.dir.mode=sync", "allowed is plan or apply"),
        ("connectors.dir.prune=yes", "allowed is true or false"),
        ("log.level=loud", "allowed is DEBUG, INFO, WARNING or ERROR"),
        ("connect.protocol=v9", "allowed is eager, compatible or sessioned"),
        ("group.protocol=consumer", "allowed is connect or classic"),
        ("data.dir=", "it is blank; allowed is a folder"),
        (
            "group.id= ",
            "it is blank; allowed is a name that makes a folder's name of at most 255 bytes",
        ),
        (
            "group.id=..",
            "it cannot be the name of a folder, which the group's logs need; allowed is a name"
            " that makes a folder's name of at most 255 bytes",
        ),
        (
            "spark.master=mesos://host:5050",
            "it is not a supported master URL; allowed is local, local[N] or"
            " local[*], spark://HOST:PORT, yarn, k8s://URL, sc://HOST:PORT, or nothing: this"
            " machine's cores shared by the workers",
        ),
        ("spark.heap=much", f"it is not a size; {HEAP}"),
        ("spark.heap=465m", f"it is too small for Spark to start; {HEAP}"),
        (
            "rest.advertised.host.name=a b",
            "it is not a host name or address; allowed is a host's name or address, or nothing",
        ),
        ("rest.allowed.hosts=a,b:x", f"'b:x' is not a host; {HOSTS}"),
        ("rest.allowed.hosts=a,,b", f"'' is not a host; {HOSTS}"),
        ("rest.allowed.hosts=http://a", f"'http://a' is not a host; {HOSTS}"),
        ("rest.allowed.hosts=*", f"'*' is not a host; {HOSTS}"),
        ("listeners=ftp://127.0.0.1:1", f"only http, https and unix are supported; {LISTENER}"),
        ("listeners=http://:1,http://127.0.0.1:1", f"a listener occurs twice; {LISTENER}"),
        (
            "listeners=unix://run/x",
            f"a Unix socket is written with three slashes, as unix:///run/rest.sock; {LISTENER}",
        ),
        ("listeners=http://127.0.0.1:99999", f"Port out of range 0-65535; {LISTENER}"),
    ],
)
def test_a_bad_value_is_named_with_its_source_and_what_is_allowed(
    override: str, said: str, refused: Refused
) -> None:
    key, _, value = override.partition("=")
    shown = value.strip().replace("me:pw@", f"{HIDDEN}@")
    assert refused(override) == (f"{key} = {shown!r} (from the command line): {said}",)


def test_a_password_in_a_url_that_is_refused_is_not_shown(refused: Refused) -> None:
    assert refused("listeners=http://me:pw@127.0.0.1:1") == (
        "listeners = 'http://********@127.0.0.1:1' (from the command line): the URL may only have a"
        f" host and a port; {LISTENER}",
    )


def test_all_bad_values_are_named_at_once(refused: Refused) -> None:
    assert refused("workers=x", environ={"FAIRLEAD_ENGINE": "y"}) == (
        "workers = 'x' (from the command line): allowed is a whole number, from 0 to 1000",
        "engine = 'y' (from environment variable FAIRLEAD_ENGINE): allowed is spark or noop",
    )


def test_a_session_must_outlast_one_missed_heartbeat_and_the_fence(refused: Refused) -> None:
    assert load_config(None, {}, ["session.timeout.ms=10000"]).session_timeout_ms == 10_000
    assert refused("session.timeout.ms=9999") == (
        "session.timeout.ms = 9999 is too short: a worker has to be able to miss one heartbeat and"
        " still to stop in time, so it must be at least fence.margin.ms + 2 *"
        " (heartbeat.interval.ms + 1500) = 10000 with heartbeat.interval.ms = 3000 and"
        " fence.margin.ms = 1000 (session.timeout.ms: the command line)",
    )


def test_a_revocation_may_take_at_least_a_session(refused: Refused) -> None:
    assert load_config(None, {}, ["rebalance.timeout.ms=10000"]).rebalance_timeout_ms == 10_000
    assert refused("rebalance.timeout.ms=9999") == (
        "rebalance.timeout.ms = 9999 is too short: a lost worker that has to give up work is"
        " detected only after its session, so it must be at least session.timeout.ms ="
        " 10000 (rebalance.timeout.ms: the command line)",
    )


def test_the_longest_pause_is_no_shorter_than_the_first(refused: Refused) -> None:
    assert refused("worker.restart.backoff.ms=40000") == (
        "worker.restart.backoff.max.ms = 30000 must be at least worker.restart.backoff.ms = 40000"
        " (worker.restart.backoff.ms: the command line)",
    )


def test_classic_members_can_ask_for_some_session(refused: Refused) -> None:
    assert refused("group.max.session.timeout.ms=5999") == (
        "group.min.session.timeout.ms = 6000 is above group.max.session.timeout.ms = 5999: no"
        " classic member could ask for any session (group.max.session.timeout.ms: the command"
        " line)",
    )


def test_settings_of_spark_that_safety_rests_on_are_refused(refused: Refused) -> None:
    (problem,) = refused("spark.conf.spark.master=local[9]")
    assert problem.startswith("spark.master cannot be set: ")
    assert problem.endswith("remove spark.conf.spark.master (from the command line)")


def test_no_setting_of_spark_shows_in_a_config_that_is_printed() -> None:
    config = load_config(None, {}, ["spark.conf.spark.hadoop.fs.s3a.secret.key=hunter2"])
    assert "hunter2" not in repr(config) + str(config)


def test_a_config_is_frozen() -> None:
    config = load_config(None, {}, ())
    with pytest.raises(FrozenInstanceError):
        config.workers = 3  # type: ignore[misc]


def test_a_listener_without_a_host_is_on_loopback() -> None:
    config = load_config(None, {}, ["listeners=http://:0"])
    assert [each.url for each in config.rest_listeners()] == ["http://127.0.0.1:0"]


@pytest.mark.parametrize(
    ("overrides", "place"),
    [
        ((), "127.0.0.1:9000"),
        (("listeners=http://[::1]:1",), "[::1]:9000"),
        (("rest.advertised.host.name=node1", "rest.advertised.port=80"), "node1:80"),
    ],
)
def test_others_are_told_the_advertised_place_or_the_real_one(
    overrides: tuple[str, ...], place: str
) -> None:
    assert load_config(None, {}, overrides).place(9000) == place


def test_rest_is_told_every_name_that_leads_to_it() -> None:
    config = load_config(
        None,
        {},
        ["rest.allowed.hosts=etl.example, [fe80::1]:99", "rest.advertised.host.name=fd00::2"],
    )
    command = rest_command(config, [])
    first = command.index("--allowed-host")
    assert command[first : first + 6] == (
        *("--allowed-host", "[fd00::2]"),
        *("--allowed-host", "etl.example"),
        *("--allowed-host", "[fe80::1]:99"),
    )


def test_a_group_lies_in_a_folder_of_its_quoted_name() -> None:
    config = load_config(None, {}, ["data.dir=/d", "group.id=a/b c"])
    assert config.group_folder.as_posix() == "/d/groups/a%2Fb%20c"


def test_a_shared_jvm_has_all_cores_and_its_workers_their_part_of_the_batches() -> None:
    available = len(os.sched_getaffinity(0))

    def engine(*overrides: str) -> tuple[int, int]:
        config = load_config(None, {}, ("engine.kind=shared", *overrides))
        return config.cores(), config.batches()

    assert engine("workers=2") == (available, 2 * max(1, available // 2))
    assert engine("workers=2", "spark.master=local[8]") == (8, 8)
    assert engine("workers=2", "engine.concurrent.batches=5")[1] == 2
    assert engine("workers=8", "engine.concurrent.batches=5")[1] == 1
    assert engine("workers=2", "engine.concurrent.batches=5", "engine.kind=embedded")[1] == 5
    assert not load_config(None, {}, ("engine.kind=shared", "engine=noop")).is_shared


@pytest.mark.parametrize(
    ("given", "is_shared"),
    [
        (("workers=1",), False),
        (("workers=2",), True),
        (("workers=2", "engine.kind=embedded"), False),
        (("workers=1", "engine.kind=shared"), True),
    ],
)
def test_two_workers_share_a_jvm_unless_told_otherwise(
    given: tuple[str, ...], is_shared: bool
) -> None:
    assert load_config(None, {}, given).is_shared == is_shared


SECRET = "spark.conf.spark.authenticate.secret=hush"
EMBEDDED = "engine.kind=embedded"
HOST = "spark.conf.spark.driver.host=here"
K8S = "spark.master=k8s://https://host:6443"
CLUSTER = ("spark.master=spark://host:7077", "paths.allow=/shared", SECRET)


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        (("workers=1", *CLUSTER[:2]), f"needs {SECRET.partition('=')[0]}"),
        (("workers=1", CLUSTER[0], SECRET), "needs paths.allow"),
        (("workers=2", EMBEDDED, *CLUSTER), "or set spark.conf.spark.cores.max"),
        (("spark.master=yarn", CLUSTER[1]), "needs spark.conf.spark.driver.host: the address at"),
        (("spark.master=yarn", HOST), "needs paths.allow"),
        ((K8S, CLUSTER[1], HOST), "needs spark.conf.spark.kubernetes.container.image: what exec"),
    ],
)
def test_a_cluster_is_refused_without_what_it_needs(
    refused: Refused, given: tuple[str, ...], needed: str
) -> None:
    (problem,) = refused(*given)
    assert needed in problem
    assert "hush" not in problem


def test_a_cluster_with_all_that_it_needs_is_taken(refused: Refused) -> None:
    config = load_config(None, {}, ("workers=2", HOST, *CLUSTER))
    assert (config.cluster, config.spark_conf["spark.driver.host"]) == ("spark://host:7077", "here")
    image = "spark.conf.spark.kubernetes.container.image=ours:1"
    for master in (K8S, "spark.master=yarn"):
        config = load_config(None, {}, ("workers=2", HOST, CLUSTER[1], image, master))
        assert config.cluster == master.partition("=")[2]
    (problem,) = refused(HOST)
    assert problem.startswith("spark.driver.host cannot be set: ")


def test_workers_share_the_cores_unless_told_otherwise() -> None:
    available = len(os.sched_getaffinity(0))

    def cores(*overrides: str) -> int:
        return load_config(None, {}, ("engine.kind=embedded", *overrides)).cores()

    assert cores("workers=1") == cores("workers=0") == cores("spark.master=local[*]") == available
    assert (cores("workers=1000"), cores("spark.master=local"), cores("spark.master=local[3]")) == (
        1,
        1,
        3,
    )


SC = ("workers=2", "paths.allow=/shared")
LOCAL = "spark.master=sc://localhost:15002"
AWAY = "spark.master=sc://host:15002"


def test_a_spark_connect_server_is_a_master_and_what_opens_it_is_not_told() -> None:
    token = "hushhush"
    for master in (LOCAL, f"{AWAY}/;use_ssl=true;token={token}", f"{AWAY}/;use_ssl=false"):
        loaded = load_with_sources(None, {}, (*SC, master))
        assert (loaded.config.cluster, loaded.config.is_shared) == (master[13:], False)
        (told,) = (each for each in list_settings(loaded.config, {}) if each.key == "spark.master")
        assert told.value == master[13:].partition("/;")[0]


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        ((LOCAL,), "needs paths.allow"),
        ((*SC, AWAY), "add use_ssl=true, or use_ssl=false if that network is yours alone"),
        ((*SC, f"{AWAY}/;use_ssl=false;token=hushhush"), "would send the token unencrypted"),
        ((*SC, f"{AWAY}/;token=hushhush;session_id=1"), "session_id cannot be given: each worker"),
        ((*SC, f"{AWAY}/;hushhush"), "a parameter has no name or no value"),
        ((*SC, f"{AWAY}/;use_ssl=yes;token=hushhush"), "use_ssl is true or false"),
        ((*SC, "spark.master=sc://me:hushhush@host"), "only a host and a port may stand"),
        ((*SC, LOCAL, "engine.kind=shared"), "leave out engine.kind"),
        ((*SC, LOCAL, "spark.conf.spark.executor.memory=1g"), "a setting of the server, which"),
    ],
)
def test_a_spark_connect_server_is_refused_without_what_it_needs(
    refused: Refused, given: tuple[str, ...], needed: str
) -> None:
    (problem,) = refused(*given)
    assert needed in problem
    assert "hushhush" not in problem


def test_what_spark_connect_needs_is_told_where_it_is_missing(
    refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    (problem,) = refused(*SC, LOCAL)
    assert "pip install 'fairlead-connect[connect]'" in problem
