"""Moments of the wall clock, as people and programs both read them."""

from datetime import UTC, datetime


def moment(time_ms: object) -> str:
    """Return `2013-01-31T23:59:59.999Z`; nothing for no time, the number for an absurd one."""
    if not isinstance(time_ms, int) or time_ms == 0:
        return ""
    try:
        told = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"
    return told.replace("+00:00", "Z")
