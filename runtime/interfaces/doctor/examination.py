"""The whole examination of a machine for the node of a configuration, part by part."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from ...config.load import Config
from ...config.node_keys.kinds import bytes_of
from ...pipeline.engines.settings import is_connect
from .doors import check_certificates, check_ports, check_store, check_users
from .findings import Finding
from .folder import check_access, check_disk, check_node, check_times, nearest_folder, read_disk
from .machine import MachineFacts, read_machine
from .machine_checks import NodeNeeds, check_machine
from .plugins import check_plugins
from .programs import check_extras, check_java, check_packages, check_python, read_requirements


def needs_of(config: Config) -> NodeNeeds:
    """Return what a node of this configuration takes of its machine."""
    is_local = config.engine == "spark" and not is_connect(config.spark_master)
    jvms = (1 if config.is_shared else config.workers) if is_local else 0
    return NodeNeeds(config.workers, jvms, bytes_of(config.spark_heap))


def examine(config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield all findings; nothing is changed, and no port or file is left open."""
    machine = read_machine()
    needs = needs_of(config)
    yield from examine_packages()
    if needs.jvms:
        yield from check_java(environ)
    yield from check_plugins(config.plugins(), environ)
    yield from check_machine(machine, needs)
    yield from examine_folder(config.data_path, machine)
    yield from check_ports(config)
    yield from check_certificates(config)
    yield from check_store(config)
    yield from check_users(config.data_path)


def examine_packages() -> Iterator[Finding]:
    """Yield the findings about what is installed, for which no setting matters."""
    ranges = read_requirements()
    yield check_python()
    yield from check_packages(ranges)
    yield from check_extras(ranges)


def examine_folder(folder: Path, machine: MachineFacts) -> Iterator[Finding]:
    """Yield the findings about the data folder and its disk."""
    there = nearest_folder(folder)
    try:
        mounts = Path("/proc/mounts").read_text("utf-8", "surrogateescape")
    except OSError:
        mounts = ""
    yield from check_disk(folder, read_disk(there, mounts))
    yield from check_access(folder, machine.user)
    yield from check_times(folder, machine.now)
    yield check_node(folder)
