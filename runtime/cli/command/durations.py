"""Moments of the wall clock, as people and programs both read them."""

import time
from datetime import UTC, datetime
from typing import Final

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60))


def age(time_ms: int | None) -> str:
    """Return how long ago a moment was, in its largest whole unit: `5m ago`."""
    if time_ms is None:
        return ""
    seconds = max(0, int(time.time() - time_ms / 1000))
    unit, size = next((each for each in _UNITS if seconds >= each[1]), ("s", 1))
    return f"{seconds // size}{unit} ago"


def moment(time_ms: int | None) -> str:
    """Return `2013-01-31T23:59:59.999Z`; nothing for no time, the number for an absurd one."""
    if not time_ms:
        return ""
    try:
        told = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"
    return told.replace("+00:00", "Z")


def seconds(duration_ms: int | None) -> str:
    """Return a duration as `0.024 s`; nothing where none is known."""
    return "" if duration_ms is None else f"{duration_ms / 1000:.3f} s"
