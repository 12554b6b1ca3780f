"""One result of an examination: what was looked at, how it is, and the command that mends it."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    WARN = "warn"
    """The node runs, but something will be slower, less safe, or gone one day."""
    FAIL = "fail"
    """The node does not start, or does not run for long."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about one thing; without a secret, since it is shown to whoever asks."""

    check: str
    """What was looked at, in one word."""
    level: Severity
    text: str
    mend: str = ""
    """The command that mends or changes it; "" if there is none to give."""


def ok(check: str, text: str, mend: str = "") -> Finding:
    """Return a finding of something that is as it should be; `mend` offers more of it."""
    return Finding(check, Severity.OK, text, mend)


def warn(check: str, text: str, mend: str) -> Finding:
    """Return a finding of something that a node can run with."""
    return Finding(check, Severity.WARN, text, mend)


def fail(check: str, text: str, mend: str) -> Finding:
    """Return a finding of something that a node cannot run with."""
    return Finding(check, Severity.FAIL, text, mend)
