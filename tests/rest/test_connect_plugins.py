"""Connect's own plugins over REST: a real JVM with Kafka's classes answers for them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http import HTTPStatus
from threading import Event, Semaphore
from typing import cast

import pytest
from rest.conftest import RestApi
from rest.test_reach import limited

from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.commands import connect_plugins as module
from fairlead.runtime.interfaces.rest.commands.connect_plugins import (
    MOST_AT_ONCE,
    SECRETS_KEPT,
    ConnectPlugins,
    LogMask,
    LookedUp,
    open_plugins,
)
from fairlead.runtime.interfaces.rest.server.errors import ApiError
from fairlead.runtime.pipeline.plugins.catalogue.answers import PluginAnswers
from fairlead.runtime.pipeline.plugins.options import PluginSpec
from fairlead.runtime.security.rights import Role
from fairlead_tests.plugins.installed import (
    CONNECT_FILE,
    QUICK,
    WORKER,
    installation,
    plugin_path,
)
from fairlead_tests.rest.client import Client

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("plugins")]
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectPlugins]:
    """Kafka's connectors of files; one JVM answers for them in all tests."""
    installation()
    folder = tmp_path_factory.mktemp("connect")
    path = str(plugin_path(folder / "plugins", CONNECT_FILE))
    opened = open_plugins(folder / "data", PluginSpec([path], host=QUICK, properties=WORKER))
    yield opened
    opened.close()


@pytest.fixture
def client(api: RestApi, connect: ConnectPlugins) -> Client:
    """The interface of a node whose `plugin.path` has these connectors."""
    api.service = replace(api.service, connect_plugins=connect)
    return Client(make_app(api.service))


def test_plugins_of_connect_stand_beside_those_of_fairlead(client: Client) -> None:
    listed = client.get("/connector-plugins").json()
    assert [each for each in listed if "FileStream" in each["class"]] == [
        {"class": SINK, "type": "sink", "version": "4.3.0"},
        {"class": SOURCE, "type": "source", "version": "4.3.0"},
    ]
    assert "fairlead" in listed[0]["class"]


def test_their_keys_and_refusals_are_those_of_connect(client: Client) -> None:
    keys = client.get("/connector-plugins/FileStreamSource/config").json()
    assert [each["name"] for each in keys[:3]] == ["file", "topic", "batch.size"]
    assert (keys[0]["group"], keys[0]["default_value"]) == (None, None)
    path = f"/connector-plugins/{SOURCE}/config?version=9.9.9"
    answer = client.get(path)
    assert (answer.status_code, answer.json()["message"]) == (
        HTTPStatus.BAD_REQUEST,
        f"Plugin {SOURCE} not found that matches the version range [9.9.9,9.9.9], available"
        " versions: [4.3.0]",
    )
    nobody = client.get("/connector-plugins/FileStreamSorceConnector/config")
    assert nobody.status_code == HTTPStatus.NOT_FOUND
    assert "FileStreamSourceConnector" in nobody.json()["message"]


def test_a_config_is_validated_by_the_plugin_and_its_secrets_are_masked(client: Client) -> None:
    config = {
        "name": "lines",
        "spare": None,
        "batch.size": "hunter2-of-nobody",
        "my.password": "hunter2-of-nobody",
    }
    answer = client.put("/connector-plugins/FileStreamSource/config/validate", json=config)
    assert answer.status_code == HTTPStatus.OK
    assert "hunter2" not in answer.text
    infos = answer.json()
    values = [each["value"] for each in infos["configs"] if each["value"]]
    assert {each["name"]: each["errors"] for each in values if each["errors"]} == {
        "topic": ['Missing required configuration "topic" which has no default value.'],
        "spare": ["Null value can not be supplied as the configuration value."],
        "batch.size": [
            "Invalid value ******** for configuration batch.size: Not a number of type INT"
        ],
    }
    assert (infos["name"], infos["error_count"]) == ("FileStreamSource", 3)


def test_who_may_put_no_config_has_none_validated_by_a_plugin(client: Client, api: RestApi) -> None:
    assert client.get("/connector-plugins").status_code == HTTPStatus.OK
    viewer = limited(Role.VIEWER)(api)
    path = "/connector-plugins/FileStreamSource/config/validate"
    answer = viewer.put(path, json={"name": "lines"})
    assert answer.status_code == HTTPStatus.FORBIDDEN
    assert "may connect to where a config leads" in answer.json()["message"]


def test_so_many_plugins_are_asked_at_once_that_others_find_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "TURN_SECONDS", 0.01)
    may_answer, asked = Event(), Semaphore(0)

    class Blocking:
        def keys(self, *_: str) -> list[object]:
            asked.release()
            assert may_answer.wait(60)
            return []

    plugins = ConnectPlugins(cast(PluginAnswers, Blocking()), LookedUp(LogMask()))
    with ThreadPoolExecutor(MOST_AT_ONCE) as threads:
        waiting = [threads.submit(plugins.keys, "A", "latest") for _ in range(MOST_AT_ONCE)]
        for _ in waiting:
            assert asked.acquire(timeout=60)
        with pytest.raises(ApiError, match="8 plugins are being asked already: try again"):
            plugins.keys("A", "latest")
        may_answer.set()
        assert [each.result(60) for each in waiting] == [[]] * MOST_AT_ONCE
    assert plugins.keys("A", "latest") == []


def test_the_log_masks_the_worker_and_the_last_configs() -> None:
    mask = LogMask()
    mask.add({"of-the-worker": "${env:KEY}"})
    for number in range(SECRETS_KEPT + 1):
        mask.add({}, [f"secret-{number:03}"])
    assert mask.hide("of-the-worker secret-000 secret-001 secret-100") == (
        "${env:KEY} secret-000 ******** ********"
    )


KEY: dict[str, object] = {
    "name": "plain",
    "type": "STRING",
    "required": False,
    "default_value": None,
    "importance": "LOW",
    "documentation": None,
    "group": None,
    "order_in_group": -1,
    "width": "NONE",
    "display_name": None,
    "dependents": [],
}
"""A key whose plugin says nothing of it."""
VALUE: dict[str, object] = {
    "name": "plain",
    "value": None,
    "recommended_values": ["a", None],
    "errors": [None],
    "visible": True,
}


class Silent:
    """Stands for the answers of a plugin that leaves out what it may."""

    def keys(self, *_: object) -> list[dict[str, object]]:
        return [dict(KEY)]

    def validate(self, *_: object, **__: object) -> dict[str, object]:
        infos = [
            {"definition": dict(KEY), "value": dict(VALUE)},
            {"definition": None, "value": None},
        ]
        return {"name": "a", "error_count": 1, "groups": [], "configs": infos}


def test_texts_that_a_plugin_leaves_out_are_filled_in() -> None:
    plugins = ConnectPlugins(cast(PluginAnswers, Silent()), LookedUp(LogMask()))
    (key,) = plugins.keys("a", "latest")
    assert (key.documentation, key.display_name, key.group) == ("", "plain", None)
    info, none = plugins.validate({"name": "a"}).configs
    assert info.value
    assert info.value.errors == ("it is refused without a reason",)
    assert info.value.recommended_values == ("a",)
    assert (none.definition, none.value) == (None, None)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "io.debezium.connector.mysql.MySqlConnector",
            "`fairlead plugins fetch io.debezium:debezium-connector-mysql:3.6.1.Final`",
        ),
        (
            "com.example.ShopConnector",
            "the plugin of ShopConnector comes from its maker's archive, by `fairlead plugins add`",
        ),
    ],
)
def test_a_class_that_is_not_there_leads_to_its_plugin(api: RestApi, name: str, told: str) -> None:
    answer = Client(make_app(api.service)).get(f"/connector-plugins/{name}/config")
    assert answer.status_code == HTTPStatus.NOT_FOUND
    assert told in answer.json()["message"]
