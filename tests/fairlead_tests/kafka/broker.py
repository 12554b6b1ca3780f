# pyright: basic, reportPrivateImportUsage=false
"""A real Kafka broker: one KRaft node on loopback, with a small heap.

Its jars come from Maven Central through the Ivy that is part of Spark. What takes long and is the
same for all is kept in the virtual environment: the class path, the formatted storage, and the
classes that a broker loads, which JVMs share.
"""

import fcntl
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from fairlead.actors.tether import tied
from fairlead_tests.java_peer import QUICK, kafka_jars, run_tool, tool
from fairlead_tests.kafka.certificates import Authority

VERSION: Final = "4.3.0"
KEPT: Final = Path(sys.prefix) / f"kafka-{VERSION}"
START_SECONDS: Final = 300
ARCHIVE_SECONDS: Final = 150
_PORTS: Final = range(10_000, 32_768)
_SMALL: Final = ("-Xmx256m", *QUICK)

_PROPERTIES: Final = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl},SECURE://127.0.0.1:{secure},\
MUTUAL://127.0.0.1:{mutual},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl},\
SECURE://127.0.0.1:{secure},MUTUAL://127.0.0.1:{mutual}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,SECURE:SASL_SSL,MUTUAL:SSL,\
CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule \
required user_reader="open sesame";
listener.name.secure.sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN,OAUTHBEARER
listener.name.secure.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_reader="open sesame";
listener.name.secure.oauthbearer.sasl.jaas.config=\
org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required \
unsecuredLoginStringClaim_sub="broker";
listener.name.secure.scram-sha-512.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.mutual.ssl.client.auth=required
ssl.keystore.type=PEM
ssl.keystore.location={certificate}
ssl.truststore.type=PEM
ssl.truststore.location={authority}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
super.users=User:ANONYMOUS
log.dirs={data}
num.network.threads=1
num.io.threads=2
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
metadata.max.idle.interval.ms=0
log.cleaner.dedupe.buffer.size=4194304
log.retention.ms=-1
log.retention.check.interval.ms=500
log.initial.task.delay.ms=100
file.delete.delay.ms=100
auto.create.topics.enable=false
"""


def _is_stopped(pid: int) -> bool:
    """Return whether all threads of a process are stopped."""
    stats = [each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(each.rpartition(")")[2].split()[0] == "T" for each in stats)


class Kept(NamedTuple):
    """What all brokers have in common."""

    classpath: str
    formatted: Path
    """A folder of formatted storage."""
    options: tuple[str, ...]
    """The JVM's options about shared classes."""


class Broker:
    """One broker; `up` starts it, on the same ports and with the same data each time."""

    def __init__(self, folder: Path, kept: Kept | None = None) -> None:
        """Create a broker with its files in the folder; raises `NoPeer` without its jars."""
        self._folder = folder
        self.data = folder / "data"
        """The folder of its log."""
        self._kept = kept or keep()
        ports = free_ports(5)
        self.bootstrap = f"127.0.0.1:{ports[0]}"
        self.with_password = f"127.0.0.1:{ports[1]}"
        """The listener for the user `reader` with the password `open sesame`."""
        self.encrypted = f"127.0.0.1:{ports[2]}"
        """The TLS listener for SCRAM-SHA-512 users, which `let_in` creates, for `reader`, and for
        whoever an unsigned token names."""
        self.mutual = f"127.0.0.1:{ports[3]}"
        """The mutual-TLS listener, which requires a certificate of `authority`."""
        self.authority = Authority(folder)
        shutil.copytree(self._kept.formatted, self.data)
        told = _properties(ports, self.data, self.authority.path, self.authority.sign("broker"))
        (folder / "server.properties").write_text(told)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def classpath(self) -> str:
        """The jars of a broker, in which some of Kafka's tools are."""
        return self._kept.classpath

    def up(self) -> None:
        """Start it, and wait until it serves: one that does not is a failure, no missing peer."""
        log = self._folder / "log"
        command = [tool("java"), *_SMALL, *self._kept.options, "-cp", self._kept.classpath]
        command += ["kafka.Kafka", str(self._folder / "server.properties")]
        environ = {**os.environ, "JAVA_TOOL_OPTIONS": ""}  # these may be for what Spark shares
        with log.open("wb") as out:
            self._process = subprocess.Popen(tied(command), stdout=out, stderr=out, env=environ)
        admin = AdminClient(_asking(self.bootstrap))
        deadline = time.monotonic() + START_SECONDS
        while not _serves(admin):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError("the broker does not start: " + log.read_text()[-500:])

    def has_ended(self) -> bool:
        """Whether it was started and has ended."""
        return self._process is not None and self._process.poll() is not None

    @contextmanager
    def hanging(self) -> Generator[None]:
        """Suspend its process in the context: connections stay open, without responses."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        while not _is_stopped(self._process.pid):  # a thread that runs may answer until then
            time.sleep(0.001)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def let_in(self, user: str, password: str) -> None:
        """Create a SCRAM-SHA-512 user."""
        known = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        wanted = UserScramCredentialUpsertion(user, known, password.encode())
        admin = AdminClient(_asking(self.bootstrap))
        admin.alter_user_scram_credentials([wanted])[user].result(START_SECONDS)

    def end(self, seconds: float = START_SECONDS) -> None:
        """Have it end by itself."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(seconds)

    def kill(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None


@contextmanager
def broker_at(folder: Path) -> Generator[Broker]:
    """Yield a broker that has its files in a folder, which is made; raises `NoPeer`."""
    folder.mkdir()
    broker = Broker(folder)
    broker.up()
    try:
        yield broker
    finally:
        broker.kill()


def _asking(bootstrap: str) -> dict[str, str | int | float | bool]:
    return {"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 200, "log_level": 0}


def _serves(admin: AdminClient) -> bool:
    try:
        return bool(admin.list_topics(timeout=0.5).brokers)
    except KafkaException:
        return False


def _properties(ports: Sequence[int], data: Path, authority: Path, certificate: Path) -> str:
    names = ("port", "sasl", "secure", "mutual", "controller")
    files = {"data": data, "authority": authority, "certificate": certificate}
    return _PROPERTIES.format(**dict(zip(names, ports, strict=True)), **files)


def keep() -> Kept:
    """Return what is kept; make what is not there."""
    KEPT.mkdir(exist_ok=True)
    classpath, formatted, classes = KEPT / "classpath", KEPT / "formatted", KEPT / "classes.jsa"
    with (KEPT / "lock").open("w") as lock, TemporaryDirectory(dir=KEPT) as work:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other processes of the same run want it, too
        if not (classpath.exists() and _are_there(classpath.read_text())):
            shutil.rmtree(formatted, ignore_errors=True)
            classes.unlink(missing_ok=True)
            jars = kafka_jars(Path(work), ["kafka_2.13"], VERSION, is_whole=True)
            _format(Path(work), formatted, ":".join(jars))
            classpath.write_text(":".join(jars))
        if not classes.exists():
            _write_classes(Path(work), Kept(classpath.read_text(), formatted, ()), classes)
    # An archive that does not fit, as after an update of Java, is passed over.
    return Kept(classpath.read_text(), formatted, (f"-XX:SharedArchiveFile={classes}",))


def _write_classes(work: Path, kept: Kept, classes: Path) -> None:
    """Run a broker that writes the classes that it has loaded when it ends.

    One that takes too long leaves an empty archive: to try again costs each test a minute.
    """
    written = work / "classes.jsa"
    broker = Broker(work, kept._replace(options=(f"-XX:ArchiveClassesAtExit={written}",)))
    broker.up()
    try:
        broker.end(ARCHIVE_SECONDS)
    except subprocess.TimeoutExpired:
        written.write_bytes(b"")
    finally:
        broker.kill()
    written.replace(classes)


def _are_there(classpath: str) -> bool:
    return all(Path(jar).exists() for jar in classpath.split(":"))


def _format(work: Path, formatted: Path, classpath: str) -> None:
    """Format the storage, which does not depend on the ports."""
    properties = work / "server.properties"
    properties.write_text(_properties((1, 2, 3, 4, 5), formatted, work, work))
    command = [tool("java"), *_SMALL, "-cp", classpath, "kafka.tools.StorageTool", "format"]
    told = ["--cluster-id", "fairlead-tests-cluster", "--config", str(properties)]
    run_tool([*command, *told], "the broker's storage cannot be formatted")


def free_ports(count: int) -> list[int]:
    """Return free ports, below those that the system gives to others before a broker has them."""
    with ExitStack() as held:
        found = list[int]()
        while len(found) < count:
            port = secrets.choice(_PORTS)
            with suppress(OSError):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
                found.append(port)
        return found
