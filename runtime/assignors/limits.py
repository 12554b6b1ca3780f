"""How much an assignor process may take of its machine.

The limit is on what a process has written or may write of its own memory (`RLIMIT_DATA`;
Linux counts anonymous mappings since 4.7). One on addresses would count what is only
reserved: a second thread alone reserves 64 MiB. Beyond the limit Python raises `MemoryError`.
"""

import os
import resource

POLITENESS = 5
"""By how much nicer than a worker: heartbeats go first."""


def limit(memory_bytes: int) -> None:
    """Limit this process."""
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(POLITENESS)
