"""Checks of how a node is reached: its ports, its certificates, and the file of who may enter."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from shlex import quote

from ....actors.transport.ports import LOOPBACK, HostPort, PortTakenError, check_free
from ....events.log.process import is_alive
from ....events.stores.port import StoreSettingsError
from ...cluster.node_files import read_node
from ...config.load import Config
from ...config.references.resolving import ReferenceBroken
from ...config.references.rest_brief import open_tls
from ...node.launcher.kafka_process import check_kafka_tls, flaw_in_reach
from ...security.followed_files import FileRefused
from ...security.kafka.listeners import parse_kafka_listener
from ...security.proofs.entries import entries_path, read_entries
from ...security.tls import TlsRefusedError
from .findings import Finding, fail, ok, warn


def check_ports(config: Config) -> Iterator[Finding]:
    """Yield whether each port of the settings is free; the running node's own count as free."""
    node = read_node(config.data_path / "run")
    runs = node is not None and is_alive(node.process)
    for key, (host, port) in ports_of(config):
        if not port:
            yield ok("ports", f"{key} is any free port")
        elif runs:
            yield ok("ports", f"{key} is port {port} of {host}, of the running node")
        else:
            yield _check_port(key, host, port)


def _check_port(key: str, host: str, port: int) -> Finding:
    try:
        check_free(host, port)
    except PortTakenError as error:
        return fail("ports", f"{key}: {error}", f"ss -ltnp 'sport = :{port}'")
    return ok("ports", f"{key}: port {port} of {host} is free")


def ports_of(config: Config) -> Iterator[tuple[str, HostPort]]:
    """Yield each setting that names a port, with host and port; port 0 is any free one."""
    for each in config.all_rest_listeners():
        if not each.is_unix:
            yield "listeners", each.address
    yield "actor.port", HostPort(LOOPBACK, config.actor_port)
    if config.kafka_listeners:
        yield "kafka.listeners", parse_kafka_listener(config.kafka_listeners).address


def check_certificates(config: Config) -> Iterator[Finding]:
    """Yield whether key and certificate of encrypted listeners can be used, if there are any."""
    if config.needs_tls:
        rest = partial(open_tls, config.tls_values(), config.data_path)
        yield _check_certificate("REST", config.ssl_keystore_location, rest)
    listeners = config.kafka_listeners
    if listeners and parse_kafka_listener(listeners).is_encrypted:
        kafka = partial(check_kafka_tls, config)
        yield _check_certificate("Kafka's clients", config.kafka_ssl_keystore_location, kafka)


def _check_certificate(whose: str, store: str, open_store: Callable[[], object]) -> Finding:
    """Return whether the listener for REST, or for Kafka's clients, can be opened."""
    try:
        open_store()
    except (TlsRefusedError, ReferenceBroken) as error:
        place = quote(store or "FILE")
        mend = f"openssl x509 -noout -subject -dates -in {place}"
        if store and not Path(store).exists():
            mend = f"openssl req -x509 -nodes -subj /CN=localhost -keyout {place} -out {place}"
        return fail("certificate", str(error), mend)
    text = f"key and certificate of the listener for {whose} fit together, and are valid now"
    return ok("certificate", text)


def check_store(config: Config) -> Iterator[Finding]:
    """Yield whether the store of the log can be opened by its settings, and other nodes reached."""
    if (store := config.store()) is None:
        return
    try:
        store.check()
    except StoreSettingsError as error:
        yield fail("store", str(error), f"ls -l {quote(store.client_file)}")
    if flaw := flaw_in_reach(config):
        yield warn("store", flaw, "fairlead docs many-hosts")


def check_users(data_dir: Path) -> Iterator[Finding]:
    """Yield whether the file of REST's users and tokens can be used, if there is one."""
    path = entries_path(data_dir)
    try:
        count = len(read_entries(path).by_name)
    except FileRefused as error:
        yield fail("users", str(error), f"chmod 600 {quote(str(path))}")
    else:
        if count:
            yield ok("users", f"{path} has {count} users and tokens, and is its owner's alone")
