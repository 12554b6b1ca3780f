"""Kafka's own plugins and Debezium's: fetched, scanned by Kafka's classes, and found by a host."""

import zipfile
from pathlib import Path

import pytest

from fairlead.runtime.pipeline.plugins.catalogue.catalogue import Catalogue, open_catalogue
from fairlead.runtime.pipeline.plugins.catalogue.host_scanner import HostScanner
from fairlead.runtime.pipeline.plugins.catalogue.installing.connect_jars import is_connects
from fairlead.runtime.pipeline.plugins.catalogue.installing.fetching import fetch_parts
from fairlead.runtime.pipeline.plugins.catalogue.installing.jars import jars_of
from fairlead.runtime.pipeline.plugins.catalogue.installing.refusals import PluginRefused
from fairlead.runtime.pipeline.plugins.catalogue.installing.store import PluginPart, PluginStore
from fairlead.runtime.pipeline.plugins.catalogue.settings import PluginSettings
from fairlead.runtime.pipeline.plugins.host import HostLaunch, PluginHost
from fairlead.runtime.pipeline.plugins.ivy import Coordinates, Ivy
from fairlead_tests.plugins.installed import (
    CONNECT_FILE,
    DEBEZIUM,
    QUICK,
    WORKER,
    fetched,
    installation,
    java_here,
)

pytestmark = pytest.mark.spark

FILE_STREAM = "org.apache.kafka.connect.file.FileStream"
SECONDS = 60.0


@pytest.fixture
def scanner(tmp_path: Path) -> HostScanner:
    """A scanner on what the environment of the tests has of Connect."""
    launch = HostLaunch(installation(), java_here(), tmp_path / "logs/scan.log", QUICK)
    return HostScanner(launch)


def without_services(jar: Path, target: Path) -> Path:
    """Copy a jar without its service files, as small makers publish theirs."""
    target.parent.mkdir(parents=True)
    with zipfile.ZipFile(jar) as whole, zipfile.ZipFile(target, "w") as rest:
        for name in whole.namelist():
            if not name.startswith("META-INF/services/"):
                rest.writestr(name, whole.read(name))
    return target


def classes_of(catalogue: Catalogue) -> dict[str, tuple[str, str]]:
    """Return type and version of each class."""
    return {each.class_name: (each.type, each.version) for each in catalogue.plugins}


def test_what_has_no_service_files_is_found_by_a_host_that_does_not_scan(
    tmp_path: Path, scanner: HostScanner
) -> None:
    (jar,) = fetched(CONNECT_FILE)
    without_services(jar, tmp_path / "path/files/renamed.jar")
    settings = PluginSettings(tmp_path / "data", [tmp_path / "path"])
    catalogue = open_catalogue(settings, scanner)
    assert catalogue.flaws == ()
    assert classes_of(catalogue) == {
        f"{FILE_STREAM}SinkConnector": ("sink", "4.3.0"),
        f"{FILE_STREAM}SourceConnector": ("source", "4.3.0"),
    }
    assert [each.aliases for each in catalogue.plugins] == [
        ("FileStreamSink", "FileStreamSinkConnector"),
        ("FileStreamSource", "FileStreamSourceConnector"),
    ]
    paths = ",".join(map(str, catalogue.paths))
    host = PluginHost(scanner.launch, {**WORKER, "plugin.path": paths})
    try:
        keys = host.ask("keys", SECONDS, plugin="FileStreamSource", version="[4.3.0]")
    finally:
        host.close()
    assert {"file", "topic"} <= {each["name"] for each in keys}


@pytest.mark.soak  # each run adds archives of its own: test_store.py
def test_debeziums_own_archive_is_added_without_what_connect_has_and_scanned(
    tmp_path: Path, scanner: HostScanner
) -> None:
    (archive,) = fetched(DEBEZIUM)
    store = PluginStore(tmp_path / "data")
    plugin = store.add("debezium", [PluginPart(archive)], DEBEZIUM)
    assert plugin.left_out == [
        *("connect-api-4.3.0.jar", "kafka-clients-4.3.0.jar", "slf4j-api-1.7.36.jar")
    ]
    catalogue = open_catalogue(PluginSettings(tmp_path / "data"), scanner)
    connector = "io.debezium.connector.postgresql.PostgresConnector"
    assert classes_of(catalogue)[connector] == ("source", "3.6.1.Final")
    assert "io.debezium.transforms.ExtractNewRecordState" in classes_of(catalogue)
    assert store.differences("debezium") == []
    again = open_catalogue(PluginSettings(tmp_path / "data"), scanner)
    assert again == catalogue


def test_connects_own_plugins_are_known_by_their_service_files(scanner: HostScanner) -> None:
    assert {
        ("converter", "org.apache.kafka.connect.json.JsonConverter"),
        ("transformation", "org.apache.kafka.connect.transforms.Flatten$Value"),
        ("predicate", "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone"),
    } <= scanner.own


def test_connects_jars_are_known_by_what_they_hold_where_their_names_were_changed(
    tmp_path: Path,
) -> None:
    for jar in installation().class_path:
        (tmp_path / f"renamed-{jar.stem.rpartition('-')[0]}.jar").symlink_to(jar)
    known = [each.stem.removeprefix("renamed-") for each in jars_of(tmp_path) if is_connects(each)]
    assert known == [
        *("connect-api", "connect-json", "connect-runtime", "connect-transforms"),
        *("jackson-annotations", "jackson-core", "jackson-databind"),
        *("kafka-clients", "log4j-api", "log4j-core", "slf4j-api"),
    ]


def test_what_no_repository_has_is_told_and_an_archive_is_preferred() -> None:
    fetched(DEBEZIUM)  # or skip
    ivy = Ivy(java_here())
    plain = Coordinates.parse(DEBEZIUM.removesuffix(":plugin:tar.gz"))
    (part,) = fetch_parts(ivy, [plain], may_be_archive=True)
    assert (part.path.name, part.is_archive) == (
        "debezium-connector-postgres-3.6.1.Final-plugin.tar.gz",
        True,
    )
    nothing = [Coordinates("org.nothing", "at-all", "1.0", "plugin")]
    with pytest.raises(PluginRefused, match=r"org\.nothing:at-all:1\.0.*; nothing was added"):
        fetch_parts(ivy, nothing, may_be_archive=True)
