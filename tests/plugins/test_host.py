import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from fairlead.runtime.pipeline.plugins.host import (
    HostDied,
    HostLaunch,
    HostListener,
    HostSlow,
    PluginFailed,
    PluginHost,
    trust_options,
)
from fairlead_tests.plugins.installed import (
    CONNECT_FILE,
    QUICK,
    WORKER,
    installation,
    java_here,
    plugin_path,
)

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("plugins")]
SECONDS = 120.0
PROVIDER = "org.apache.kafka.common.config.provider.FileConfigProvider"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def launch(folder: Path, **given: str) -> HostLaunch:
    return HostLaunch(installation(), java_here(), folder / "host.log", replace(QUICK, **given))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("host")


@pytest.fixture(scope="module")
def plugins(folder: Path) -> Path:
    return plugin_path(folder / "plugins", CONNECT_FILE)


@pytest.fixture(scope="module")
def host(folder: Path, plugins: Path) -> Iterator[PluginHost]:
    host = PluginHost(launch(folder), {**WORKER, "plugin.path": str(plugins)})
    yield host
    host.close()


def validated(host: PluginHost, **config: str) -> dict[str, list[str]]:
    infos = host.ask("validate", SECONDS, config=config, ms=int(SECONDS * 1000))
    values = [each["value"] for each in infos["configs"] if each["value"]]
    return {each["name"]: each["errors"] for each in values if each["errors"]}


def test_a_host_tells_whose_classes_it_has(host: PluginHost) -> None:
    assert host.about == {"connect": "4.3.0", "java": java_here().version}


def test_keys_are_those_that_a_plugin_defines(host: PluginHost) -> None:
    keys = host.ask("keys", SECONDS, plugin="FileStreamSource", version="latest")
    assert [each["name"] for each in keys][:3] == ["file", "topic", "batch.size"]
    assert keys[1] == {
        "name": "topic",
        "type": "STRING",
        "required": True,
        "default_value": None,
        "importance": "HIGH",
        "documentation": "The topic to publish data to",
        "group": None,
        "order_in_group": -1,
        "width": "NONE",
        "display_name": "topic",
        "dependents": [],
    }


@pytest.mark.parametrize(
    ("plugin", "version", "status", "words"),
    [
        ("Nothing", "latest", 404, "Unknown plugin Nothing."),
        ("FileStreamSource", "[[", 400, "Invalid version specification: [["),
        (
            "FileStreamSource",
            "[9,)",
            400,
            f"Plugin {SOURCE} not found that matches the version range [9,), available versions:"
            " [4.3.0]",
        ),
    ],
)
def test_a_refusal_has_the_status_and_the_words_of_connect(
    host: PluginHost, plugin: str, version: str, status: int, words: str
) -> None:
    with pytest.raises(PluginFailed) as refused:
        host.ask("keys", SECONDS, plugin=plugin, version=version)
    assert (refused.value.status, str(refused.value)) == (status, words)


def test_a_config_is_validated_as_by_a_distributed_worker(host: PluginHost) -> None:
    errors = validated(
        host,
        **{
            "name": "lines",
            "connector.class": "FileStreamSource",
            "exactly.once.support": "required",
            "transaction.boundary": "connector",
            "batch.size": "many",
        },
    )
    assert errors == {
        "exactly.once.support": [
            "This worker does not have exactly-once source support enabled.",
            "An unexpected error occurred during validation: Missing required configuration"
            ' "topic" which has no default value.',
        ],
        "transaction.boundary": [
            "The connector does not support connector-defined transaction boundaries with the given"
            " configuration. Please reconfigure it to use a different transaction boundary"
            " definition."
        ],
        "topic": ['Missing required configuration "topic" which has no default value.'],
        "batch.size": ["Invalid value many for configuration batch.size: Not a number of type INT"],
    }


def test_a_scan_finds_what_no_service_file_declares(host: PluginHost, plugins: Path) -> None:
    found = host.ask("scan", SECONDS, folder=str(plugins / "connect-file-4.3.0"))
    assert found == [
        {
            "type": kind,
            "name": f"org.apache.kafka.connect.file.FileStream{kind.title()}Connector",
            "version": "4.3.0",
            "service": f"org.apache.kafka.connect.{kind}.{kind.title()}Connector",
            "declared": True,
        }
        for kind in ("sink", "source")
    ]


def test_a_question_that_nobody_knows_is_refused_and_the_host_goes_on(host: PluginHost) -> None:
    with pytest.raises(PluginFailed, match="nonsense is no question"):
        host.ask("nonsense", SECONDS)
    assert host.is_alive


def test_a_question_has_a_deadline_and_the_answer_that_comes_late_is_dropped(
    host: PluginHost, plugins: Path
) -> None:
    with pytest.raises(HostSlow, match=r"^no answer for 1e-05 s"):
        host.ask("scan", 0.00001, folder=str(plugins / "connect-file-4.3.0"))
    keys = host.ask("keys", SECONDS, plugin="FileStreamSource", version="latest")
    assert keys[0]["name"] == "file"


class SlowToAnswer(HostListener):
    """Answers once it is told to."""

    def __init__(self) -> None:
        self.is_asked, self.goes_on = Event(), Event()

    def answer(self, question: str, about: Mapping[str, object]) -> object:  # noqa: ARG002
        """Wait, and answer."""
        self.is_asked.set()
        return self.goes_on.wait(SECONDS)


def test_a_question_of_a_host_holds_up_no_other_one(folder: Path, plugins: Path) -> None:
    file, listener = folder / "own.properties", SlowToAnswer()
    file.write_text("path=/Kx7-somewhere-Qz\n")
    properties = {
        **WORKER,
        "plugin.path": str(plugins),
        "config.providers": "props",
        "config.providers.props.class": PROVIDER,
        "config.providers.props.param.allowed.paths": str(folder),
    }
    host = PluginHost(launch(folder), properties, listener)
    config = {"name": "a", "connector.class": SOURCE, "file": f"${{props:{file}:path}}"}
    question = host.put("validate", config=config, ms=int(SECONDS * 1000))
    assert listener.is_asked.wait(SECONDS), "it asks whether the value is masked"
    keys = host.ask("keys", SECONDS, plugin="FileStreamSource", version="latest")
    assert (keys[0]["name"], question.is_done) == ("file", False)
    listener.goes_on.set()
    assert question.result(SECONDS)["name"] == SOURCE
    host.close()


def test_a_host_that_is_killed_is_told_with_its_last_words(folder: Path, plugins: Path) -> None:
    host = PluginHost(launch(folder), {**WORKER, "plugin.path": str(plugins)})
    os.kill(host.pid, signal.SIGKILL)
    with pytest.raises(HostDied, match="the plugin host was killed by SIGKILL"):
        host.ask("scan", SECONDS, folder=str(plugins))
    with pytest.raises(HostDied, match="was killed by SIGKILL"):
        host.ask("scan", SECONDS, folder=str(plugins))
    assert not host.is_alive


def test_a_host_has_no_secret_of_the_node_and_no_file_of_its_socket(
    host: PluginHost,
) -> None:
    environ = Path(f"/proc/{host.pid}/environ").read_bytes().split(b"\0")
    names = {each.partition(b"=")[0] for each in environ if each}
    kept = {b"PATH", b"HOME", b"LANG", b"LC_ALL", b"TZ", b"TMPDIR"}
    assert names <= {*kept, b"MALLOC_ARENA_MAX"}
    command = Path(f"/proc/{host.pid}/cmdline").read_bytes().split(b"\0")
    assert not Path(command[-2].decode()).parent.exists()


def test_properties_that_connect_refuses_end_the_host(folder: Path) -> None:
    with pytest.raises(PluginFailed, match=r"plugin\.discovery"):
        PluginHost(launch(folder), {**WORKER, "plugin.discovery": "by_chance"})


def test_a_heap_that_java_does_not_take_is_told_in_its_words(folder: Path) -> None:
    with pytest.raises(HostDied, match="Invalid maximum heap size"):
        PluginHost(launch(folder, heap="lots"), WORKER)


def test_a_wrapper_runs_the_jvm(folder: Path) -> None:
    host = PluginHost(launch(folder, wrapper="env WRAPPED=1"), WORKER)
    assert b"WRAPPED=1" in Path(f"/proc/{host.pid}/environ").read_bytes().split(b"\0")
    host.close()
    with pytest.raises(HostDied, match="wrapper names no-such-program, which is not on PATH"):
        PluginHost(launch(folder, wrapper="no-such-program -x"), WORKER)


def test_a_trust_store_that_is_named_is_taken() -> None:
    assert trust_options("/a.jks") == ["-Djavax.net.ssl.trustStore=/a.jks"]


def test_a_host_ends_when_it_is_closed(folder: Path) -> None:
    host = PluginHost(launch(folder), WORKER)
    host.close()
    deadline = time.monotonic() + SECONDS
    while host.is_alive and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not host.is_alive
