"""Network namespaces on one bridge: hosts that can be cut off, also one way.

A packet is sent to the hardware address that its sender has noted for the receiver's. A wrong note
loses what goes there without a word, as a broken path does; what comes from there still arrives.
"""

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

BRIDGE: Final = "fairlead0"
STORE: Final = "10.89.0.1"
"""Where hosts reach the store, and nothing else."""
OUTSIDE: Final = "10.89.0.2"
"""Where they reach the databases that connectors read and write."""
NOBODY: Final = "02:00:00:00:00:fe"


class NoNetworkError(Exception):
    """Namespaces cannot be had; the message says why."""


@dataclass(frozen=True)
class Host:
    """One namespace."""

    number: int

    @property
    def name(self) -> str:
        return f"fairlead{self.number}"

    @property
    def address(self) -> str:
        return f"10.89.0.{10 + self.number}"

    @property
    def prefix(self) -> tuple[str, ...]:
        """Return the words that run a command on this host."""
        return "ip", "netns", "exec", self.name

    @property
    def _port(self) -> str:
        """Its end of the bridge."""
        return f"fairlead{self.number}b"

    def build(self) -> None:
        """Make it and join it to the bridge."""
        _ip("netns", "add", self.name)
        _ip(*f"link add {self._port} type veth peer name eth0 netns {self.name}".split())
        _ip("link", "set", self._port, "master", BRIDGE, "up")
        _ip("-n", self.name, "addr", "add", f"{self.address}/24", "dev", "eth0")
        for each in ("eth0", "lo"):
            _ip("-n", self.name, "link", "set", each, "up")

    def remove(self) -> None:
        """End it."""
        self.find_answers_of(STORE)
        for words in (("link", "del", self._port), ("netns", "del", self.name)):
            with suppress(subprocess.CalledProcessError):
                _ip(*words)

    def unplug(self) -> None:
        """Cut it from all others."""
        _ip("link", "set", self._port, "down")

    def plug(self) -> None:
        """Join it again."""
        _ip("link", "set", self._port, "up")

    def lose_way_to(self, address: str) -> None:
        """Lose what it sends to an address."""
        place = ("to", address, "lladdr", NOBODY, "dev", "eth0", "nud", "permanent")
        _ip("-n", self.name, "neigh", "replace", *place)

    def find_way_to(self, address: str) -> None:
        """Send to an address as before."""
        with suppress(subprocess.CalledProcessError):
            _ip("-n", self.name, "neigh", "del", "to", address, "dev", "eth0")

    def lose_answers_of(self, address: str) -> None:
        """Lose what an address on the outside sends to it."""
        _ip(*f"rule add from {address} to {self.address} blackhole".split())

    def find_answers_of(self, address: str) -> None:
        """Receive from an address as before."""
        with suppress(subprocess.CalledProcessError):
            _ip(*f"rule del from {address} to {self.address} blackhole".split())


@contextmanager
def network(size: int) -> Generator[list[Host]]:
    """Yield hosts with addresses of their own; raises `NoNetworkError`."""
    if os.geteuid() or shutil.which("ip") is None:
        raise NoNetworkError("network namespaces need root and `ip`")
    hosts = [Host(number) for number in range(1, size + 1)]
    try:
        try:
            _ip("link", "add", BRIDGE, "type", "bridge")
            for each in (STORE, OUTSIDE):
                _ip("addr", "add", f"{each}/24", "dev", BRIDGE)
            _ip("link", "set", BRIDGE, "up")
            for host in hosts:
                host.build()
        except subprocess.CalledProcessError as error:
            raise NoNetworkError(f"network namespaces cannot be made: {error.stderr}") from None
        yield hosts
    finally:
        for host in hosts:
            host.remove()
        with suppress(subprocess.CalledProcessError):
            _ip("link", "del", BRIDGE)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
