"""What plugin hosts run on in tests, and folders with plugins of Maven Central.

All of it is fetched once, into Ivy's cache, and set up once in the environment of the tests.
"""

import atexit
import fcntl
import os
import shutil
import tarfile
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from unittest.mock import patch

import pytest

from fairlead.runtime.pipeline.plugins import host as hosting
from fairlead.runtime.pipeline.plugins.host import HostLaunch
from fairlead.runtime.pipeline.plugins.ivy import Coordinates, Ivy, NotFetched
from fairlead.runtime.pipeline.plugins.options import HostOptions
from fairlead.runtime.pipeline.plugins.setup import Installation, home, set_up
from fairlead.runtime.processes.java import Java, JavaNotFound, find_java

JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {
    "bootstrap.servers": "127.0.0.1:1",
    "group.id": "connect",
    "key.converter": JSON,
    "value.converter": JSON,
    "plugin.discovery": "service_load",
}
"""The properties of a worker that no broker is there for."""
CLASSES = home() / ".tests.jsa"
"""A link to the archive of the classes that a host loads, as of the present installation."""
ARCHIVE_SECONDS = 60.0
ARCHIVE_OPTIONS = "-XX:TieredStopAtLevel=1 -Xlog:cds*=off -Xlog:class+path=off"
QUICK = HostOptions(java_options=f"{ARCHIVE_OPTIONS} -XX:SharedArchiveFile={CLASSES}")
"""Of hosts that live for seconds: the quick compiler alone takes two thirds of what both do, and
with an archive of classes a host is there in half the time. One that does not fit is passed over.
"""
MODULES = ("runtime", "json", "transforms")
LOGGING = ("slf4j-impl", "core")
VERSION = "TEST_CONNECT"
"""Names the version of Connect that hosts run on, if it is not the usual one."""
CONNECT_FILE = "org.apache.kafka:connect-file:4.3.0"
DEBEZIUM = "io.debezium:debezium-connector-postgres:3.6.1.Final:plugin:tar.gz"
OLDER_DEBEZIUM = "io.debezium:debezium-connector-postgres:3.6.0.Final:plugin:tar.gz"


@cache
def java_here() -> Java:
    """Return a Java, or skip the test."""
    try:
        return find_java()
    except JavaNotFound as error:
        pytest.skip(str(error))


@cache
def installation() -> Installation:
    """Return what hosts run on, or skip the test where it cannot be had."""
    version = os.environ.get(VERSION)
    return of_version(version) if version else _set_up()


@cache
def of_version(version: str) -> Installation:
    """Return what was compiled once beside the jars of another version of Connect."""
    wanted = [
        *(Coordinates("org.apache.kafka", f"connect-{each}", version) for each in MODULES),
        *(Coordinates("org.apache.logging.log4j", f"log4j-{each}", "2.25.2") for each in LOGGING),
    ]
    try:
        jars = Ivy(java_here()).fetch(wanted, is_whole=True)
    except NotFetched as error:
        pytest.skip(str(error))
    compiled = _set_up()
    folder = Path(mkdtemp(prefix=f"connect-{version}-"))
    atexit.register(shutil.rmtree, folder)
    (folder / "connect").mkdir()
    for each in jars:
        (folder / "connect" / each.name).symlink_to(each)
    for name in ("boot.jar", "host.jar", compiled.logging.name):
        (folder / name).symlink_to(compiled.folder / name)
    return Installation(folder, version)


def _set_up() -> Installation:
    java = java_here()
    home().mkdir(parents=True, exist_ok=True)
    with (home() / ".tests").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the processes of a test run set it up once
        try:
            found = set_up(java, Ivy(java), lambda _: None, None)
        except NotFetched as error:
            pytest.skip(f"Kafka Connect could not be had: {error}")
        _archive_classes(found)
    return found


def _archive_classes(connect: Installation) -> None:
    """Have a host write down the classes that it has loaded, once for each installation.

    If it takes too long the archive is empty, and hosts are slower.
    """
    kept = home() / f".tests-{connect.folder.name}.jsa"
    if not kept.exists():
        for former in home().glob(".tests-*.jsa"):
            former.unlink()
        with TemporaryDirectory(dir=home(), prefix=".tests-") as work:
            written = Path(work, "classes.jsa")
            options = HostOptions(
                java_options=f"{ARCHIVE_OPTIONS} -XX:ArchiveClassesAtExit={written}"
            )
            launch = HostLaunch(connect, java_here(), Path(work, "host.log"), options)
            with (
                patch.object(hosting, "_STOP_SECONDS", ARCHIVE_SECONDS),
                closing(hosting.PluginHost(launch, WORKER)) as host,
            ):
                host.ask("keys", ARCHIVE_SECONDS, plugin=JSON, version="latest")
            if not written.exists():
                written.write_bytes(b"")
            written.replace(kept)
    if not (CLASSES.is_symlink() and CLASSES.readlink().name == kept.name):
        CLASSES.unlink(missing_ok=True)
        CLASSES.symlink_to(kept.name)


@cache
def fetched(*coordinates: str) -> Sequence[Path]:
    """Return the files of artifacts, or skip the test where they cannot be had.

    Ivy is a JVM each time, even if it has all of them: a process asks it once.
    """
    wanted = [Coordinates.parse(each) for each in coordinates]
    try:
        return Ivy(java_here()).fetch(wanted, is_whole=False)
    except NotFetched as error:
        pytest.skip(str(error))


def plugin_path(folder: Path, *coordinates: str) -> Path:
    """Make a `plugin.path` with one plugin for each artifact, a jar or a maker's archive."""
    for each in coordinates:
        (file,) = fetched(each)
        _, artifact, version, *_ = each.split(":")
        own = folder / f"{artifact}-{version}"
        if file.suffix == ".jar":
            own.mkdir(parents=True)
            shutil.copy(file, own)
        else:
            with tarfile.open(file) as archive:
                archive.extractall(folder, filter="data")
            (folder / artifact).rename(own)
    return folder
