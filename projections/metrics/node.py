"""The metrics that a node tells of itself: its JVMs, disks, processes, encrypted listeners."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from prometheus_client.metrics_core import Metric

from .connect import ConnectBean, connect_families
from .coordinators import CoordinatorFigures
from .families import MS, counter, gauge
from .processes import CERTIFICATE_END, HANDSHAKES

SHARED = "shared"
"""The name of the JVM that workers share, where other JVMs have that of their worker."""


class HeapFigures(NamedTuple):
    """The heap of a JVM, in bytes, and how long it has collected garbage since its start."""

    used: int
    committed: int
    max: int
    gc_ms: int


@dataclass(frozen=True, slots=True)
class EngineFigures:
    """A JVM: whether it runs jobs now, how often it was started again."""

    is_up: bool
    restarts: int
    resident: int | None = None
    """The bytes that it has of the machine's memory; None: it does not run."""
    heap: HeapFigures | None = None
    """None: it does not run, or has not told it yet."""


@dataclass(frozen=True, slots=True)
class DiskFigures:
    """The disk of a folder: bytes and inodes, and how many of them may still be taken."""

    bytes: int
    free_bytes: int
    inodes: int
    free_inodes: int


class CopyFigures(NamedTuple):
    """How a node stands to the group that its cluster shares."""

    is_owner: bool
    behind_entries: int = 0
    in_step_seconds: float = 0
    """How long ago the copies had all that counted; 0 at the owner."""


@dataclass(frozen=True, slots=True)
class NodeFigures:
    """The figures of the node itself; `engines` by worker, "" for the one that they share."""

    engines: Mapping[str, EngineFigures] = field(default_factory=dict[str, EngineFigures])
    disks: Mapping[str, DiskFigures] = field(default_factory=dict[str, DiskFigures])
    """By the folder that is on them: `data`, `logs`."""
    silent: Mapping[str, float] = field(default_factory=dict[str, float])
    """The processes that do not answer, and for how many seconds."""
    coordinators: Sequence[CoordinatorFigures] = ()
    certificates: Mapping[str, float] = field(default_factory=dict[str, float])
    """The end of the certificate of each encrypted listener, in seconds since 1970."""
    failed_handshakes: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many TLS handshakes failed at each of them."""
    spans: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many spans of traces were sent, and dropped, by that word; empty: none are to be sent."""
    connect: Sequence[ConnectBean] = ()
    """What Kafka's own classes tell of connectors and tasks at the workers of this node."""
    copies: CopyFigures | None = None
    """None: its group is on one host, or the group's process has not told it yet."""


def engines(node: NodeFigures) -> Iterator[Metric]:
    """Yield the families of JVMs."""
    up = gauge("engine_up", "Whether the JVM of a worker, or of all, runs jobs now.", "worker")
    restarts = counter("engine_restarts", "How often the JVM was started again.", "worker")
    resident = gauge("engine_resident_bytes", "Memory that the JVM has.", "worker")
    for worker, each in sorted(node.engines.items()):
        labels = [worker or SHARED]
        up.add_metric(labels, float(each.is_up))
        restarts.add_metric(labels, each.restarts)
        if each.resident is not None:
            resident.add_metric(labels, each.resident)
    yield from (up, restarts, resident)


def heaps(node: NodeFigures) -> Iterator[Metric]:
    """Yield the families of the heaps of JVMs."""
    used = gauge("engine_heap_used_bytes", "Heap of the JVM that objects take.", "worker")
    committed = gauge("engine_heap_committed_bytes", "Heap that the JVM has got.", "worker")
    most = gauge("engine_heap_max_bytes", "Heap that the JVM may get.", "worker")
    text = "Time in which the JVM collected garbage, since it started."
    garbage = counter("engine_gc_seconds", text, "worker")
    for worker, each in sorted(node.engines.items()):
        if (heap := each.heap) is not None:
            labels = [worker or SHARED]
            used.add_metric(labels, heap.used)
            committed.add_metric(labels, heap.committed)
            most.add_metric(labels, heap.max)
            garbage.add_metric(labels, heap.gc_ms / MS)
    yield from (used, committed, most, garbage)


def connect(node: NodeFigures) -> Iterator[Metric]:
    """Yield the families of Kafka Connect's own classes."""
    return connect_families(node.connect)


def disks(node: NodeFigures) -> Iterator[Metric]:
    """Yield the families of disks, by what is on them."""
    size = gauge("disk_size_bytes", "How large the disk of a folder is.", "folder")
    free = gauge("disk_free_bytes", "What may still be written to the disk.", "folder")
    inodes = gauge("disk_inodes", "How many files the disk may have; 0: no limit.", "folder")
    left = gauge("disk_free_inodes", "How many more files the disk may have.", "folder")
    for folder, each in sorted(node.disks.items()):
        size.add_metric([folder], each.bytes)
        free.add_metric([folder], each.free_bytes)
        inodes.add_metric([folder], each.inodes)
        left.add_metric([folder], each.free_inodes)
    yield from (size, free, inodes, left)


def processes(node: NodeFigures) -> Iterator[Metric]:
    """Yield the families of processes that do not answer."""
    count = gauge("silent_processes", "Processes of the node that do not answer.")
    count.add_metric([], len(node.silent))
    text = "For how long a process of the node has not answered."
    seconds = gauge("process_silent_seconds", text, "process")
    for name, since in sorted(node.silent.items()):
        seconds.add_metric([name], since)
    yield from (count, seconds)


def encryption(node: NodeFigures) -> Iterator[Metric]:
    """Yield the families of the encrypted listeners of this process."""
    end = gauge(*CERTIFICATE_END, "listener")
    for listener, seconds in sorted(node.certificates.items()):
        end.add_metric([listener], seconds)
    failed = counter(*HANDSHAKES, "listener")
    for listener, count in sorted(node.failed_handshakes.items()):
        failed.add_metric([listener], count)
    yield from (end, failed)


def copies(node: NodeFigures) -> Iterator[Metric]:
    """Yield the families of the copies of a log that counts in a store."""
    owner = gauge("node_owns_group", "1 if this node owns its group, 0 if another one does.")
    behind = gauge("log_copy_behind_entries", "Entries that the copies of the logs lack here.")
    text = "Time since the copies of the logs had all that counted."
    since = gauge("log_copy_in_step_seconds", text)
    if node.copies is not None:
        owner.add_metric([], float(node.copies.is_owner))
        behind.add_metric([], node.copies.behind_entries)
        since.add_metric([], node.copies.in_step_seconds)
    yield from (owner, behind, since)


def traces(node: NodeFigures) -> Iterator[Metric]:
    """Yield the family of spans, if traces are sent."""
    text = "Spans that a collector took, or that were dropped while it was away."
    spans = counter("trace_spans", text, "outcome")
    for outcome, count in sorted(node.spans.items()):
        spans.add_metric([outcome], count)
    yield spans
