"""Limits of what a group takes into its log, and the checks of names, texts and assignors."""

from ....events.model import ClientAssignor

LONGEST_NAME = 200
"""Bytes of an id: they are part of the log's keys."""

LONGEST_CONNECTOR = 249
"""Bytes of a connector's name, as of a topic's in Kafka: a key has a source partition beside it."""

LARGEST_NUMBER = (1 << 31) - 1
"""The largest int32."""

LONGEST_INT = 63
"""Bits of a number that any log and any answer can encode, without its sign."""

LONGEST_TEXT = 1_024
"""Bytes of a text about a member, such as its url."""

LONGEST_SESSION_MS = 1_800_000
"""The longest session that a member may name, as Kafka's `group.max.session.timeout.ms`."""

LARGEST_METADATA = 64 * 1_024
"""Bytes of an assignor's metadata: each snapshot carries those of all members."""

LARGEST_DATA = 1 << 20
"""Bytes of what an assignor says to single members: they are in one record."""


def flaw_in_name(name: str, what: str, longest: int = LONGEST_NAME) -> str:
    """Return what makes a name unfit for the log's keys; "" if none."""
    if not name or not name.strip():
        return f"{what} is empty"
    if found := flaw_in_text(name, what):
        return found
    if "\0" in name or len(name.encode()) > longest:
        return f"{what} is longer than {longest} bytes or holds a zero byte"
    return ""


def flaw_in_text(text: str, what: str) -> str:
    """Return what makes a text unfit for the log; "" if none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"{what} holds a lone surrogate, which is no Unicode"
    return ""


def flaw_in_assignor(assignor: ClientAssignor) -> str:
    """Return what is wrong with one listed assignor; "" if none."""
    low, high, version = assignor.minimum_version, assignor.maximum_version, assignor.version
    if flaw := flaw_in_name(assignor.name, "an assignor's name"):
        return flaw
    if max(high, assignor.reason) > LARGEST_NUMBER or assignor.reason < 0:
        return f"assignor {assignor.name!r} has a number outside 0 to {LARGEST_NUMBER}"
    if len(assignor.metadata) > LARGEST_METADATA:
        return f"assignor {assignor.name!r} has metadata of more than {LARGEST_METADATA} bytes"
    if low < -1 or high < 0 or high < low:
        allowed = "it must be -1 <= minimum <= maximum and 0 <= maximum"
        span = f"[{show_number(low)}, {show_number(high)}]"
        return f"assignor {assignor.name!r} has the range {span}: {allowed}"
    if not low <= version <= high:
        outside = f"writes version {show_number(version)} outside [{low}, {high}]"
        return f"assignor {assignor.name!r} {outside}: it must read what it writes"
    return ""


def show_number(number: int) -> str:
    """Return a number's digits; Python does not format numbers with too many."""
    return str(number) if number.bit_length() <= LONGEST_INT else "beyond 64 bit"
