# pyright: basic
"""Faults of hosts, networks, processes and the store, chosen by a seed.

Each fault is there for a while and then mended; what is measured is how long nobody is answered.
"""

import random
import signal
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock

import httpx
import psutil

from fairlead.events.log.errors import LogError
from fairlead.events.records import OwnerBegan
from fairlead_tests.actor_system import title_of
from fairlead_tests.cluster.node import GROUP, eventually
from fairlead_tests.hosts.network import STORE, Host
from fairlead_tests.hosts.stores import TrialStore
from fairlead_tests.postgres_server import PostgresServer
from fairlead_tests.stores.nodes import ClusterNode

OWNERSHIP = f"/groups/{GROUP}/owner"


@dataclass(frozen=True)
class Place:
    """A host with its node."""

    host: Host
    node: ClusterNode


@dataclass
class Hosts:
    """All hosts, the store, the database of the rows, and the faults of all of them."""

    places: list[Place]
    store: TrialStore
    server: PostgresServer
    """Where the rows are read and written."""
    dice: random.Random
    hurt: list[Place] = field(default_factory=list)
    """The places whose workers a fault may have stopped since all was well."""
    _losing: Lock = field(default_factory=Lock)
    """Held while a node ends: it is started by the fault that has ended it."""
    _failing: Lock = field(default_factory=Lock)
    """Held while the store fails: it stands one loss at a time."""
    _starting: Executor = field(default_factory=lambda: ThreadPoolExecutor(1))
    """Starts servers: each ends with the thread that has started it."""

    def owner(self) -> Place:
        """Return the host that owns the group, as the copy that has come farthest says."""
        found: list[tuple[int, str]] = []
        for each in self.places:
            with suppress(Exception):  # a folder that is gone, or was made just now
                ownership = each.node.group().ownership
                if ownership is not None:
                    found.append((ownership.epoch, ownership.node))
        _, name = max(found)
        return next(each for each in self.places if each.node.name == name)

    def other(self) -> Place:
        """Return a host that does not own the group."""
        owner = self.owner()
        return self.dice.choice([each for each in self.places if each is not owner])

    def either(self) -> Place:
        """Return the owner's host, or less often another one."""
        return self.owner() if self.dice.random() < 0.7 else self.other()

    def pause(self, least: float, most: float) -> None:
        """Leave a fault as it is for a while."""
        time.sleep(self.dice.uniform(least, most))

    # -- faults

    def host_killed(self) -> None:
        """Lose a host without a word, and start it again."""
        self._lose_host(is_wiped=False)

    def folder_wiped(self) -> None:
        """Lose a host together with its data folder."""
        self._lose_host(is_wiped=True)

    def _lose_host(self, *, is_wiped: bool) -> None:
        with self._losing:
            place = self.either()
            if place.node.process is None:
                return
            self.hurt.append(place)
            place.host.unplug()
            place.node.kill()
        self.pause(5, 9)
        if is_wiped:
            place.node.wipe()
        place.host.plug()
        place.node.start()

    def owner_frozen(self) -> None:
        """Freeze the owner's group process for 5 s."""
        with suppress(ValueError, psutil.NoSuchProcess):
            frozen = self.owner().node.hit(f"group {GROUP}", signal.SIGSTOP)
            time.sleep(5)
            frozen.send_signal(signal.SIGCONT)

    def cut_from_all(self) -> None:
        """Cut a host off for a while."""
        place = self.either()
        self.hurt.append(place)
        place.host.unplug()
        self.pause(5, 12)
        place.host.plug()

    def cut_from_store(self) -> None:
        """Lose a host's way to the store alone."""
        place = self.either()
        self.hurt.append(place)
        place.host.lose_way_to(STORE)
        self.pause(5, 12)
        place.host.find_way_to(STORE)

    def deaf_to_store(self) -> None:
        """Lose what the store answers a host: what the host sends arrives, and counts."""
        place = self.either()
        self.hurt.append(place)
        place.host.lose_answers_of(STORE)
        self.pause(5, 12)
        place.host.find_answers_of(STORE)

    def cut_one_way(self) -> None:
        """Lose what one host sends to another; what comes from there arrives."""
        owner, other = self.owner(), self.other()
        pair = [owner, other]
        self.dice.shuffle(pair)
        self.hurt.append(other)
        pair[0].host.lose_way_to(pair[1].host.address)
        self.pause(4, 10)
        pair[0].host.find_way_to(pair[1].host.address)

    def group_killed(self) -> None:
        """Kill the owner's group process."""
        with suppress(ValueError, psutil.NoSuchProcess):
            self.owner().node.hit(f"group {GROUP}", signal.SIGKILL)

    def worker_killed(self) -> None:
        """Kill the process of a worker."""
        workers = [
            (process, place)
            for place in self.places
            for process in place.node.processes()
            if title_of(process).startswith("fairlead: worker")
        ]
        if workers:
            process, place = self.dice.choice(workers)
            self.hurt.append(place)
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def database_crashed(self) -> None:
        """End the server of the rows as a crash does, and start it."""
        self.hurt += self.places
        self.server.stop(signal.SIGQUIT)
        self.pause(0.5, 2)
        self._starting.submit(self.server.start).result()

    def store_crashed(self) -> None:
        """Crash all of the store, and start it."""
        with self._failing:
            self.hurt += self.places
            self.store.crash()
            self.pause(0.5, 2)
            self._starting.submit(self.store.restart).result()

    def leader_lost(self) -> None:
        """Lose the store's server that takes writes: another one takes them.

        That may take longer than a session, in which the store is away for all.
        """
        with self._failing:
            self.hurt += self.places
            self.store.lose_leader()
            self.pause(0.5, 2)
            self._starting.submit(self.store.replace_leader).result()

    def owner_moved(self) -> None:
        """Move the group to another node, as before work on the owner's host."""
        asked, to = self.either().node, self.other().node
        with suppress(httpx.TransportError):  # of a node that is away
            moved = asked.rest("POST", OWNERSHIP, params={"to": to.name})
            if moved.status_code == httpx.codes.NOT_FOUND:  # it has no workers, and never owned
                asked.rest("POST", OWNERSHIP)

    def owner_ended(self) -> None:
        """End the owner's node in order: it gives the group up."""
        with self._losing:
            place = self.owner()
            if place.node.process is None:
                return
            self.hurt.append(place)
            place.node.end()
        self.pause(1, 3)
        place.node.start()


FAULTS: Mapping[str, Callable[[Hosts], None]] = {
    each.__name__: each
    for each in (
        Hosts.host_killed,
        Hosts.owner_frozen,
        Hosts.cut_from_all,
        Hosts.cut_from_store,
        Hosts.deaf_to_store,
        Hosts.cut_one_way,
        Hosts.group_killed,
        Hosts.worker_killed,
        Hosts.folder_wiped,
        Hosts.database_crashed,
        Hosts.store_crashed,
        Hosts.leader_lost,
        Hosts.owner_ended,
        Hosts.owner_moved,
    )
}


def wait_until_well(hosts: Hosts) -> None:
    """Wait until all nodes follow one living owner, and all workers are members."""
    expected = sum(int(str(each.node.settings["workers"])) for each in hosts.places)

    def is_well() -> bool:
        try:
            groups = [each.node.group() for each in hosts.places]
        except LogError:  # of a folder that was made just now
            return False
        owners = {each.ownership for each in groups}
        (owner,) = owners if len(owners) == 1 else (None,)
        is_owned = isinstance(owner, OwnerBegan)
        return is_owned and all(len(each.members) == expected for each in groups)

    eventually(is_well, "all follow one owner, and all workers are members")
