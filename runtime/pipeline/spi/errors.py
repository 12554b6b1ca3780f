"""What a connector says of the world when it cannot go on: each class is dealt with in its own way.

*Config* (`ConfigInvalid`) is not tried again. *Input* that cannot be read is somebody's to mend.
What is *outside* and away is waited for, and costs no restart. Everything else is a bug.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class PluginUnknown(Exception):  # noqa: N818  # says what it is about
    """Nothing of a name that a config gives is installed here, or it cannot be loaded."""


class NotReady(Exception):  # noqa: N818  # a state of the world, not a mistake
    """The connector cannot say yet how to split its work; the text says what it waits for."""


class BadInput(Exception):  # noqa: N818  # names who is to blame
    """A part of the source cannot be read; the text names it and the reason."""

    is_put_off = False
    """Whether the source gives that part last from now on: its task is FAILED, and reads others."""


class LostRange(NamedTuple):
    """One range that cannot be read at all: which, what a user knows it by, and why."""

    range: object
    position: Mapping[str, str]
    reason: str


class Unreadable(BadInput):
    """Ranges that cannot be read, while the rest of the batch can: it goes on without them.

    Not for what may be readable later: that is `SourceAway`, or plain `BadInput`.
    """

    def __init__(self, lost: Sequence[LostRange]) -> None:
        first = lost[0]
        super().__init__(f"{' '.join(first.position.values())}: {first.reason}")
        self.lost = tuple(lost)


class SchemaRefused(BadInput):
    """Rows have a schema that the sink cannot take; the text names the columns and what would."""


class RowsRefused(BadInput):
    """A sink cannot take some of a batch's rows, for their values; it may take the others.

    Where bad rows are tolerated the batch is staged again in parts, to find out which they are.
    """


class Away(Exception):  # noqa: N818  # a state of the world, not a mistake
    """What a task reads from or writes to is out of reach; the text says why.

    The task keeps its place, tells the reason, and tries again until it is back.
    """


class SourceAway(Away):
    """The source is out of reach."""


class SinkAway(Away):
    """The sink is out of reach."""


class SinkFull(SinkAway):
    """The sink has no room: worth another attempt, but not at once."""


class ContractBroken(Exception):  # noqa: N818  # names who is to blame
    """A plugin gave back what its interface does not allow; the text names the call and the flaw.

    Nothing of it was committed.
    """


class PluginExited(Exception):  # noqa: N818  # names who is to blame
    """A plugin raised what ends threads or processes, `SystemExit` say; the text names the call."""


class CallTimedOut(Exception):  # noqa: N818  # names who is to blame
    """A call of a plugin took too long; the text names it, and then where it hangs."""


class SinkBroken(Exception):  # noqa: N818  # names who is to blame
    """The sink cannot be used as it is; the text says what is wrong, and what to do about it.

    The task is FAILED, and looks again every few seconds.
    """


class OffsetRefused(Exception):  # noqa: N818  # names what it is about
    """No such partition or offset is this source's, or it cannot go to where it is to.

    The text names the key at fault, and says what would do.
    """
