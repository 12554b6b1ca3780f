"""Each key of Connect's distributed worker is known, as Connect itself lists them."""

import html
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from fairlead.runtime.config.connect_worker import (
    REQUIRED,
    TAKEN,
    WORDS,
    hides_secret,
    is_otherwise,
    is_taken,
)
from fairlead.runtime.config.load import load_config
from fairlead.runtime.pipeline.plugins.host import HostLaunch, PluginFailed, PluginHost
from fairlead_tests.plugins.installed import QUICK, installation, java_here
from fairlead_tests.plugins.worker_table import own_keys

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("plugins")]
LISTS_ITS_KEYS = "org.apache.kafka.connect.runtime.distributed.DistributedConfig"
"""Prints, as a program, the definitions of all keys: Kafka's page of them is made by it."""
OF_ADMIN_CLIENTS = {"default.api.timeout.ms", "enable.metrics.push"}
"""No keys of a worker, which hands them on to admin clients all the same."""
TOPICS = {f"{each}.storage.topic" for each in ("config", "offset", "status")}
"""What a host needs no value for: it has another where it needs one."""


class Key(NamedTuple):
    """A key as Connect defines it."""

    name: str
    type: str
    default: str
    valid: str


@pytest.fixture(scope="module")
def keys() -> dict[str, Key]:
    class_path = ":".join(map(str, installation().class_path))
    command = [str(java_here().command), "-cp", class_path, LISTS_ITS_KEYS]
    page = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, Key] = {}
    for item in page.split("<li>\n")[1:]:
        (name,) = re.findall(r'<a id="connectconfigs_([^"]+)"', item)
        about = dict(re.findall(r"<th>([^<]+):</th><td>(.*?)</td>", item, re.DOTALL))
        of_key = (html.unescape(about[each]) for each in ("Type", "Default", "Valid Values"))
        found[name] = Key(name, *of_key)
    return found


def test_each_key_is_the_nodes_or_given_to_plugins_or_told(keys: dict[str, Key]) -> None:
    assert len(keys) > 100
    own = own_keys()
    assert own <= keys.keys()
    assert {
        key for key in keys.keys() - own if not is_taken(key) and not is_otherwise(key)
    } == set()
    named = {each for each in TAKEN if not each.endswith(".")}
    assert named - keys.keys() == OF_ADMIN_CLIENTS


def test_a_key_with_few_values_has_those_of_connect(keys: dict[str, Key]) -> None:
    few: dict[str, set[str]] = {}
    for key in keys.values():
        words = re.search(r"\[([a-zA-Z_]+(?:, ?[a-zA-Z_]+)+)\]$", key.valid)
        if key.type == "boolean" or words:
            few[key.name] = {*words[1].lower().split(", ")} if words else {"true", "false"}
    of_plugins = {key for key in few if is_taken(key) and not key.startswith("sasl.")}
    ours = {key: {each.lower() for each in words} for key, words in WORDS.items()}
    assert {key: few[key] for key in of_plugins - own_keys()} == ours


REPLICAS = "offset.storage.replication.factor"


def test_what_has_no_default_in_connect_has_one_here(keys: dict[str, Key]) -> None:
    without = {each.name for each in keys.values() if not each.default}
    assert without == {*REQUIRED, "group.id", *TOPICS} - {REPLICAS}
    assert (keys[REPLICAS].default, REQUIRED[REPLICAS]) == ("3", "-1"), "the broker's own number"


def test_no_password_is_shown(keys: dict[str, Key]) -> None:
    passwords = {each.name for each in keys.values() if each.type == "password"} - own_keys()
    assert {*passwords} >= {"sasl.jaas.config"}
    assert [key for key in sorted(passwords) if not hides_secret(key, "x")] == []
    assert [key for key in sorted(passwords) if not hides_secret(f"producer.{key}", "x")] == []


WORKER = """
bootstrap.servers=one.example:9093
group.id=connect-cluster
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
value.converter.schemas.enable=false
offset.storage.topic=connect-offsets
exactly.once.source.support=enabled
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
    username="connect" password="hunter2";
producer.sasl.jaas.config=${secrets:SECRETS:login}
ssl.key.password=hunter2
config.providers=secrets
config.providers.secrets.class=org.apache.kafka.common.config.provider.FileConfigProvider
config.providers.secrets.param.allowed.paths=ALLOWED
metric.reporters=org.apache.kafka.common.metrics.JmxReporter
topic.creation.enable=false
"""


@pytest.fixture
def worker(tmp_path: Path) -> dict[str, str]:
    """The properties of a file with logins, a provider, and a reference to what that has."""
    secrets = tmp_path / "secrets.properties"
    secrets.write_text('login=org.example.Login required password="hunter3";\n')
    file = tmp_path / "worker.properties"
    file.write_text(WORKER.replace("SECRETS", str(secrets)).replace("ALLOWED", str(tmp_path)))
    return load_config(file, {}, ()).worker_properties()


def test_a_host_is_the_worker_of_the_file_and_writes_no_secret(
    tmp_path: Path, worker: dict[str, str]
) -> None:
    host = PluginHost(HostLaunch(installation(), java_here(), tmp_path / "host.log", QUICK), worker)
    config = {"name": "mirror", "connector.class": "SourceNobodyHas"}
    try:
        with pytest.raises(PluginFailed, match="SourceNobodyHas"):
            host.ask("validate", 120, config=config, ms=120_000)
    finally:
        host.close()
    log = (tmp_path / "host.log").read_text()
    assert "Kafka version: " in log
    assert "hunter" not in log
