"""How much an assignor process may take of its machine.

The limit is on what a process has written or may write of its own memory (`RLIMIT_DATA`;
Linux counts anonymous mappings since 4.7). One on addresses would count what is only
reserved: a second thread alone reserves 64 MiB. Beyond the limit Python raises `MemoryError`.
"""

import gc
import logging
import mmap
import os
import resource

LOGGER = logging.getLogger(__name__)

POLITENESS = 5
"""By how much nicer than a worker: heartbeats go first."""

LEAST_ROOM = 8
"""One part in so many of its memory must be left for a process to be of use, once it had none."""


def limit(memory_bytes: int) -> None:
    """Limit this process; a limit that it was born with may be lower, and stays."""
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    if most != resource.RLIM_INFINITY and most < memory_bytes:
        LOGGER.warning("assignors get %d bytes, not %d: ulimit -d says so", most, memory_bytes)
        memory_bytes = most
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(POLITENESS)


def has_room(memory_bytes: int) -> bool:
    """Tell whether a process of this limit has memory left; what is tried is not written to."""
    gc.collect()
    try:
        mmap.mmap(-1, memory_bytes // LEAST_ROOM, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, MemoryError):
        return False
    return True
