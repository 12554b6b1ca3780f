"""A real worker of Connect and fairlead are asked the same of plugins, and answer word for word.

Both have the same jars, plugins and properties. What is not equal is told by the name of its test.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path

import httpx
import pytest
from rest.conftest import service_over

from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.commands.connect_plugins import (
    ConnectPlugins,
    LogMask,
    LookedUp,
)
from fairlead.runtime.pipeline.plugins.catalogue.answers import PluginAnswers
from fairlead.runtime.pipeline.plugins.catalogue.catalogue import open_catalogue
from fairlead.runtime.pipeline.plugins.catalogue.host_scanner import HostScanner
from fairlead.runtime.pipeline.plugins.catalogue.settings import PluginSettings
from fairlead.runtime.pipeline.plugins.host import HostLaunch, PluginFailed, PluginHost
from fairlead.runtime.pipeline.plugins.options import PluginSpec
from fairlead_tests.java_peer import NoPeer
from fairlead_tests.kafka.broker import broker_at
from fairlead_tests.plugins.installed import (
    CONNECT_FILE,
    DEBEZIUM,
    OLDER_DEBEZIUM,
    QUICK,
    WORKER,
    installation,
    java_here,
    plugin_path,
)
from fairlead_tests.plugins.real_worker import real_worker, topics_of
from fairlead_tests.rest.client import Client
from fairlead_tests.rest.gateway import FakeGateway
from fairlead_tests.rest.group_process import running_group_process

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.soak,  # each run holds a host's words against Connect's: test_host.py
    pytest.mark.xdist_group("plugins"),
]
SECONDS = 120.0
SOURCE, SINK = "FileStreamSource", "FileStreamSink"
DATABASE = "io.debezium.connector.postgresql.PostgresConnector"
VALUE_OF = "org.apache.kafka.connect.transforms."
LINES = {"connector.class": SOURCE, "name": "lines", "topic": "t"}
COPY = {"connector.class": SINK, "name": "copy", "topics": "a,b"}
ROWS = {
    "connector.class": DATABASE,
    "name": "rows",
    "topic.prefix": "shop",
    "database.hostname": "127.0.0.1",
    "database.port": "1",
    "database.user": "reader",
    "database.password": "hunter2-of-rows",
    "database.dbname": "shop",
}
VERSIONS = ("3.6.0.Final", "3.6.1.Final")
"""Of Debezium; both are there."""
CONNECTS_OWN = tuple(
    f"org.apache.kafka.connect.{each}." for each in ("converters", "json", "storage", "transforms")
)
"""The packages of the plugins that a worker has without a `plugin.path`."""
DATABASE_KEYS = f"/connector-plugins/{DATABASE}/config"
DOUBLED = "io.debezium.transforms.ExtractNewRecordState"
"""A class that fairlead has as well."""

FLAWED: Mapping[str, Mapping[str, str | None]] = {
    "missing keys of a source": {"connector.class": SOURCE},
    "missing keys of a sink": {"connector.class": SINK, "name": "copy"},
    "wrong types": {
        **LINES,
        "batch.size": "many",
        "tasks.max": "none",
        "tasks.max.enforce": "perhaps",
    },
    "values out of their bounds": {
        **LINES,
        "tasks.max": "0",
        "errors.tolerance": "some",
        "config.action.reload": "never",
        "topic.creation.groups": "g",
        "topic.creation.g.include": "[",
    },
    "null values": {**LINES, "topic": None, "batch.size": None, "nothing.knows.it": None},
    "empty values": {**LINES, "name": "", "topic": "", "batch.size": ""},
    "a version that is not there": {**LINES, "connector.plugin.version": "9.9.9"},
    "classes that are no converters": {
        **LINES,
        "key.converter": "org.none.Converter",
        "value.converter": "java.lang.String",
    },
    "keys and version of a converter": {
        **LINES,
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "perhaps",
        "key.converter": "JsonConverter",
        "key.converter.plugin.version": "7.0",
    },
    "unknown transforms and predicates": {
        **LINES,
        "transforms": "a,b,c,a",
        "transforms.a.type": "org.none.Transform",
        "transforms.b.type": f"{VALUE_OF}InsertField$Value",
        "transforms.b.predicate": "nobody",
        "transforms.b.negate": "x",
        "transforms.c.type": f"{VALUE_OF}Cast$Value",
        "predicates": "p,q",
        "predicates.p.type": "org.none.Predicate",
        "predicates.q.type": f"{VALUE_OF}predicates.TopicNameMatches",
        "predicates.q.pattern": "[",
    },
    "exactly once that the plugin cannot tell": {
        **LINES,
        "exactly.once.support": "required",
        "transaction.boundary": "interval",
    },
    "boundaries that the plugin does not set": {
        **LINES,
        "file": "/a/file",
        "exactly.once.support": "required",
        "transaction.boundary": "connector",
    },
    "exactly once of unknown words": {
        **LINES,
        "exactly.once.support": "maybe",
        "transaction.boundary": "x",
        "transaction.boundary.interval.ms": "x",
        "offsets.storage.topic": "",
    },
    "topics and topics.regex": {**COPY, "topics.regex": "t.*"},
    "a topics.regex that is none": {"connector.class": SINK, "name": "c", "topics.regex": "["},
    "dead letters among the topics": {**COPY, "errors.deadletterqueue.topic.name": "b"},
    "the group of the worker": {**COPY, "consumer.override.group.id": "connect"},
    "a reference to a provider that is not there": {**LINES, "batch.size": "${nobody:size}"},
    "a reference to a value that is wrong": {**LINES, "batch.size": "${dir:FOLDER:size}"},
    "a database that is not there, by an alias": {**ROWS, "connector.class": "Postgres"},
    "the keys of a database": {
        **ROWS,
        "topic.prefix": "a b",
        "database.port": "x",
        "snapshot.mode": "x",
        "slot.name": "Upper",
        "table.include.list": "[",
        "table.exclude.list": "a",
        "exactly.once.support": "required",
        "transaction.boundary": "connector",
    },
}
"""Configs with mistakes; the folder of a reference is that which the test has."""

REFUSED: Mapping[str, Mapping[str, str]] = {
    "a range of versions that is none": {**LINES, "connector.plugin.version": "[1,"},
    "an override of the producer": {**LINES, "producer.override.linger.ms": "soon"},
    "an override of the consumer": {**COPY, "consumer.override.max.poll.records": "x"},
}
"""Configs that Connect does not validate to their end."""


@dataclass
class Beside:
    """Those that are asked: the worker, a plugin host, and REST."""

    worker: httpx.Client
    host: PluginHost
    rest: Client
    folder: Path
    """It has a file `size`, whose text is no number."""

    def validate(
        self, ask: Callable[..., httpx.Response], given: Mapping[str, str | None]
    ) -> httpx.Response:
        """Have a config validated by one that is asked over HTTP."""
        config = self.filled(given)
        path = f"/connector-plugins/{config['connector.class']}/config/validate"
        return ask(path, json=config)

    def filled(self, given: Mapping[str, str | None]) -> dict[str, str | None]:
        return {
            key: value and value.replace("FOLDER", str(self.folder)) for key, value in given.items()
        }


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    root = tmp_path_factory.mktemp("beside")
    connect = installation()
    path = plugin_path(root / "plugins", CONNECT_FILE, OLDER_DEBEZIUM, DEBEZIUM)
    values = root / "values"
    values.mkdir()
    (values / "size").write_text("many")
    try:
        with broker_at(root / "broker") as broker:
            properties = {
                **WORKER,
                **topics_of("beside"),
                "bootstrap.servers": broker.bootstrap,
                "plugin.path": str(path),
                "exactly.once.source.support": "enabled",
                "config.providers": "dir",
                "config.providers.dir.class": (
                    "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
                ),
            }
            launch = HostLaunch(connect, java_here(), root / "host.log", QUICK)
            with (
                real_worker(connect, properties, root) as (worker, _),
                closing(PluginHost(launch, properties)) as host,
                rest_over(root / "data", launch, properties) as rest,
            ):
                yield Beside(worker, host, rest, values)
    except NoPeer as reason:
        pytest.skip(f"a real Connect cannot be had: {reason}")


@contextmanager
def rest_over(folder: Path, launch: HostLaunch, properties: Mapping[str, str]) -> Generator[Client]:
    """Yield REST of a node in a folder, whose plugin hosts have these properties."""
    settings = PluginSettings(folder, [Path(properties["plugin.path"])])
    spec = PluginSpec(properties=properties)
    answers = PluginAnswers(
        settings,
        lambda: open_catalogue(settings, HostScanner(launch)),
        lambda paths: PluginHost(launch, {**properties, "plugin.path": ",".join(paths)}),
        idle_seconds=SECONDS,
    )
    with (
        running_group_process() as process,
        process.serving(folder / "groups" / "connect") as group,
        closing(ConnectPlugins(answers, LookedUp(LogMask()), spec=spec)) as plugins,
    ):
        service = service_over(folder, FakeGateway(group))
        yield Client(make_app(replace(service, connect_plugins=plugins)))
        service.logs.close()


@pytest.mark.parametrize("flawed", FLAWED.values(), ids=FLAWED)
def test_validation_is_equal_word_for_word(
    beside: Beside, flawed: Mapping[str, str | None]
) -> None:
    connects = beside.validate(beside.worker.put, flawed)
    assert connects.status_code == HTTPStatus.OK
    assert connects.json()["error_count"] > 0
    config = beside.filled(flawed)
    assert beside.host.ask("validate", SECONDS, config=config, ms=90_000) == connects.json()
    assert beside.validate(beside.rest.put, flawed).json() == connects.json()


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_a_refusal_has_the_same_words_but_is_no_fault_of_the_server(
    beside: Beside, refused: Mapping[str, str]
) -> None:
    connects = beside.validate(beside.worker.put, refused)
    assert connects.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
    java_class, _, reason = connects.json()["message"].partition(": ")
    with pytest.raises(PluginFailed) as failed:
        beside.host.ask("validate", SECONDS, config=refused, ms=90_000)
    told = (failed.value.kind, str(failed.value), failed.value.status)
    assert told == (java_class, reason, HTTPStatus.BAD_REQUEST)
    ours = beside.validate(beside.rest.put, refused)
    assert ours.json() == {"error_code": HTTPStatus.BAD_REQUEST, "message": reason}


def test_a_version_that_is_not_there_is_told_each_time_not_only_the_first(beside: Beside) -> None:
    flawed = {**COPY, "connector.plugin.version": "9.9.9"}
    connects = [beside.validate(beside.worker.put, flawed) for _ in range(2)]
    assert "NullPointerException" in connects[1].text
    ours = [beside.validate(beside.rest.put, flawed) for _ in range(2)]
    assert [each.json() for each in ours] == [connects[0].json()] * 2


def test_the_class_may_be_left_to_the_path(beside: Beside) -> None:
    config = {"name": "lines"}
    path = f"/connector-plugins/{SOURCE}/config/validate"
    connects = beside.worker.put(path, json=config)
    assert "contains no connector type" in connects.json()["message"]
    whole = beside.worker.put(path, json={**config, "connector.class": SOURCE}).json()
    assert beside.rest.put(path, json=config).json() == whole


def test_an_unknown_class_is_not_found_where_connect_lists_all_classes_with_their_places(
    beside: Beside,
) -> None:
    unknown = {"connector.class": "org.none.None", "name": "nothing"}
    connects = beside.validate(beside.worker.put, unknown)
    assert connects.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
    assert "name matches org.none.None, available connectors are: " in connects.text
    ours = beside.validate(beside.rest.put, unknown)
    assert ours.json() == {"error_code": 404, "message": "Unknown plugin org.none.None."}


def test_a_config_of_an_unknown_class_is_told_those_of_plugins_and_the_nearest_one(
    beside: Beside,
) -> None:
    unknown = {"connector.class": "org.none.FileStreamSorceConnector", "name": "nothing"}
    ours = beside.rest.put("/connectors/nothing/config", json=unknown)
    assert ours.status_code == HTTPStatus.BAD_REQUEST
    assert (
        ".FileStreamSourceConnector"
        in ours.json()["message"].partition("available connectors are: ")[2]
    )
    assert "did you mean FileStreamSourceConnector" in ours.json()["message"]


def test_another_class_than_that_of_the_path_is_refused_alike(beside: Beside) -> None:
    path = f"/connector-plugins/{SOURCE}/config/validate"
    for named in (DATABASE, "", "FileStreamSourceConnectorConnector"):
        config = {**LINES, "connector.class": named}
        connects, ours = (each.put(path, json=config) for each in (beside.worker, beside.rest))
        assert (ours.status_code, ours.json()) == (HTTPStatus.BAD_REQUEST, connects.json())


def test_a_secret_that_connect_shows_is_masked(beside: Beside) -> None:
    config = {**LINES, "batch.size": "hunter2-of-rows", "my.password": "hunter2-of-rows"}
    connects = beside.validate(beside.worker.put, config)
    assert "hunter2-of-rows" in connects.text
    ours = beside.validate(beside.rest.put, config)
    assert ours.text == connects.text.replace("hunter2-of-rows", "********")


def listed(asked: httpx.Client | Client) -> set[tuple[str, str, str]]:
    """Return class, type and version of all plugins."""
    plugins = asked.get("/connector-plugins?connectorsOnly=false").json()
    return {(each["class"], each["type"], each["version"]) for each in plugins}


def test_rest_lists_the_same_plugins_and_connects_own_as_those_of_fairlead(beside: Beside) -> None:
    connects, ours = listed(beside.worker), listed(beside.rest)
    own = {each for each in connects if each[0].startswith(CONNECTS_OWN)}
    assert connects - own == {each for each in ours if each[2] in {*VERSIONS, "4.3.0"}} - own
    missing = {each[:2] for each in own} - {each[:2] for each in ours}
    assert {kind for _, kind in missing} == {"converter", "header_converter"}


def test_keys_are_equal_of_all_that_the_worker_lists(beside: Beside) -> None:
    for name, kind, version in sorted(listed(beside.worker)):
        path = f"/connector-plugins/{name}/config?version={version}"
        connects = beside.worker.get(path).json()
        asked = beside.host.ask("keys", SECONDS, plugin=name, version=version)
        assert asked == connects, (name, kind)
        if not name.startswith(CONNECTS_OWN):
            assert beside.rest.get(path).json() == connects, (name, kind)


@pytest.mark.parametrize(
    "version",
    [
        *VERSIONS,
        "latest",
        "[3.6.0.Final,3.6.1.Final)",
        "[3.6.1.Final]",
        "(,9.0)",
        "9.9.9",
        "[1,",
        "",
    ],
)
def test_one_of_two_versions_is_chosen_as_connect_does(beside: Beside, version: str) -> None:
    path = f"{DATABASE_KEYS}?version={version}"
    connects, ours = beside.worker.get(path), beside.rest.get(path)
    assert (ours.status_code, ours.json()) == (connects.status_code, connects.json())
    flawed = {**ROWS, "database.port": "x", "connector.plugin.version": version}
    connects, ours = (beside.validate(each.put, flawed) for each in (beside.worker, beside.rest))
    if connects.is_success:
        assert ours.json() == connects.json()
    else:
        assert connects.json()["message"].endswith(ours.json()["message"])


def test_the_two_versions_differ_in_their_keys(beside: Beside) -> None:
    keys = [beside.rest.get(f"{DATABASE_KEYS}?version={each}").json() for each in VERSIONS]
    assert keys[0] != keys[1] == beside.rest.get(DATABASE_KEYS).json()


def test_a_class_that_fairlead_has_as_well_is_that_of_the_version(beside: Beside) -> None:
    path = f"/connector-plugins/{DOUBLED}/config"
    fairleads = beside.rest.get(path).json()
    assert beside.rest.get(f"{path}?version=1.0").json() == fairleads
    whole = beside.rest.get(f"{path}?version={VERSIONS[1]}").json()
    assert whole == beside.worker.get(path).json() != fairleads
    impossible = f"{path}?version=9.9.9"
    assert beside.rest.get(impossible).json() == beside.worker.get(impossible).json()
