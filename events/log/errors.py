"""The errors of an event log, by name: each says what happened, what is kept, what to do."""


class LogError(Exception):
    """The base of everything that the event log raises; the message is meant for people."""


class NoLogError(LogError):
    """There is no log at the path, or its first owner has not finished creating it."""


class WrongLogError(LogError):
    """The log at the path has another id than the expected one."""


class UnknownFormatError(LogError):
    """The log was written in a format that this version does not know; it was not changed."""


class AlreadyOpenError(LogError):
    """The log is already open in this very process: use that one."""


class OwnedError(LogError):
    """Another live process owns the log; `pid` is its process id, 0 if unknown."""

    def __init__(self, message: str, pid: int = 0) -> None:
        super().__init__(message)
        self.pid = pid


class OwnerFencedError(LogError):
    """A newer owner has claimed the log: nothing was written, and this owner has to exit."""


class OffsetConflictError(LogError):
    """The log does not end at the caller's expected offset: nothing was written, reload."""


class InvalidEntryError(LogError):
    """An entry cannot be stored: nothing was written, the log is unchanged."""


class CopiedLogError(LogError):
    """The log is a copy of one in a store, which may have more: it was not opened as its own."""


class CorruptLogError(LogError):
    """The log is damaged: keep it, and restore from a backup."""


class ClosedLogError(LogError):
    """The log was closed, perhaps by another thread of this process: open it again."""


class TrimmedError(LogError):
    """The entries asked for were trimmed: bootstrap by `load()`; `low` is the first one left."""

    def __init__(self, message: str, low: int) -> None:
        super().__init__(message)
        self.low = low


class ReadersFullError(LogError):
    """Too many processes and threads read the log at once: close some, or try again."""


class LowSpaceError(LogError):
    """The disk is nearly full: nothing was written, all is intact, free space and try again."""


class LogFailedError(LogError):
    """A write has an unknown outcome: exit and reload; everything acknowledged is intact."""


class DiskFullError(LogFailedError):
    """The disk ran full within a write: exit, free space, reload."""


class ForkedError(LogError):
    """The log was opened before a fork and used behind it: open it in a spawned process instead."""


class BackupError(LogError):
    """The backup was not made; the log is as before."""
