"""Names of Unix sockets that fit, however deep their folder lies."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def short_socket_name(path: Path) -> Generator[str]:
    """Yield a short name of a path through its open folder; socket names have at most 107 bytes."""
    if sys.platform != "linux":
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
