"""Waits until a file descriptor is ready; select(2) takes none above 1023, and poll(2) any."""

import select
from typing import Protocol


class HasDescriptor(Protocol):
    """A socket, or an open file."""

    def fileno(self) -> int:
        """Return its file descriptor."""
        ...


def wait_readable(
    file: HasDescriptor | int, seconds: float, *, or_writable: bool = False
) -> tuple[bool, bool]:
    """Wait until a file can be read, or written if that is asked; return which of them it can."""
    poll = select.poll()
    poll.register(file, select.POLLIN | (select.POLLOUT if or_writable else 0))
    events = sum(event for _, event in poll.poll(seconds * 1_000))
    return bool(events & ~select.POLLOUT), or_writable and bool(events & select.POLLOUT)
