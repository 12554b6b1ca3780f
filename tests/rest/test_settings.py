"""`/settings`: what the node and its group run with, where that is from, and no secret."""

from dataclasses import replace

import pytest
from rest.conftest import RestApi

from fairlead.runtime.config.load import load_with_sources
from fairlead.runtime.config.references.rest_brief import RestBrief
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.node.launcher.rest_process import prepare_rest
from fairlead.runtime.node.shown_settings import describe_setting
from fairlead_tests.rest.client import Client

SECRETS = (
    "ssl.key.password=hunter2",
    "jdbc.allow=jdbc:postgresql://ann:hunter2@db/",
    "spark.conf.spark.hadoop.fs.s3a.secret.key=hunter2",
    "assignor.conf.url=https://ann:hunter2@host/",
    'sasl.jaas.config=org.example.Plain required username="ann" password="hunter2";',
    "producer.ssl.keystore.key=hunter2",
    "key.converter.basic.auth.user.info=ann:hunter2",
    "value.converter.schema.registry.url=https://ann:hunter2@registry/",
    "config.providers.vault.param.token=hunter2",
)


@pytest.fixture
def client(api: RestApi) -> Client:
    loaded = load_with_sources(None, {"FAIRLEAD_WORKERS": "3"}, ("log.level=DEBUG", *SECRETS))
    brief = RestBrief.decode(prepare_rest(loaded.config, loaded.sources).brief)
    settings = [describe_setting(key, *each) for key, each in brief.settings.items()]
    return Client(make_app(replace(api.service, settings=settings)))


def test_each_setting_has_its_value_default_source_and_meaning(
    client: Client, api: RestApi
) -> None:
    changes = {"session.timeout.ms": "20000"}
    assert api.client.request("PATCH", "/groups/connect/config", json=changes).is_success
    answer = client.get("/settings")
    settings = {each["name"]: each for each in answer.json()["settings"]}
    told = {
        key: (each["value"], each["default"], each["source"], each["origin"])
        for key, each in settings.items()
    }
    assert told["workers"] == ("3", "2", "environment", "FAIRLEAD_WORKERS")
    assert told["log.level"] == ("DEBUG", "INFO", "command line", "")
    assert told["session.timeout.ms"] == ("20000", "10000", "group", "")
    assert told["heartbeat.interval.ms"] == ("3000", "3000", "default", "")
    assert told["ssl.key.password"] == ("********", "", "command line", "")
    assert settings["assignor.conf.url"]["meaning"] == "Handed to assignors."
    assert told["sasl.jaas.config"] == ("********", "", "command line", "")
    assert "hunter2" not in answer.text
    assert all(each["meaning"] for each in settings.values())
