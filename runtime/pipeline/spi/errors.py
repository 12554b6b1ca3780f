"""The errors that connectors raise; a task handles each class in its own way.

*Config* errors (`ConfigInvalid`) are not retried. Unreadable *input* must be repaired by a user. An
unreachable *outside* system is retried and costs no restart. Any other error is a bug.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, NamedTuple


class Renamed:
    """Gives members of a class their former names as well, which earlier plugins define and call.

    It stands here since errors have such members, too.
    """

    names_by_former: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for former, name in cls.names_by_former.items():
            if name in vars(cls):
                setattr(cls, former, vars(cls)[name])
            elif former in vars(cls):
                setattr(cls, name, vars(cls)[former])


class PluginUnknown(Exception):  # noqa: N818  # says what it is about
    """A plugin that a config names is not installed, or cannot be loaded."""


class NotReady(Exception):  # noqa: N818  # a state of the world, not a mistake
    """The connector cannot split its work yet; the text says what it waits for."""


class BadInput(Renamed, Exception):  # noqa: N818  # names who is to blame
    """A part of the source cannot be read; the text names the part and the reason."""

    names_by_former = MappingProxyType({"is_put_off": "is_deferred"})

    is_deferred: bool = False
    """Whether that part is tried again even when all restarts are used up.

    The source plans it last; the task is FAILED and reads the rest. False: the whole batch failed.
    """

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute, of which `name` may be the former name."""
        super().__setattr__(self.names_by_former.get(name, name), value)


class LostRange(NamedTuple):
    """One range that cannot be read."""

    range: object
    position: Mapping[str, str]
    """The range for users: a file's name, say."""
    reason: str


class Unreadable(BadInput):
    """Some ranges of a batch cannot be read; the batch continues without them.

    Raise `SourceAway` or `BadInput` instead if they may be readable later.
    """

    def __init__(self, lost: Sequence[LostRange]) -> None:
        first = lost[0]
        super().__init__(f"{' '.join(first.position.values())}: {first.reason}")
        self.lost = tuple(lost)


class SchemaRefused(BadInput):
    """The sink cannot take the rows' schema; the text names the columns and the remedy."""


class RowsRefused(BadInput):
    """The sink cannot take the values of some rows of a batch.

    If `errors.tolerance` allows it, the task bisects the batch to find these rows.
    """


class Away(Exception):  # noqa: N818  # a state of the world, not a mistake
    """The source or the sink of a task is unreachable; the text says why.

    The task keeps its offsets, shows the reason in its status, and retries.
    """


class SourceAway(Away):
    """The source is unreachable."""


class SinkAway(Away):
    """The sink is unreachable."""


class SinkFull(SinkAway):
    """The sink has no space left; the next attempt waits longer."""


class ContractBroken(Exception):  # noqa: N818  # names who is to blame
    """A plugin returned a value that its interface does not allow; nothing was committed.

    The text names the call and the violation.
    """


class PluginExited(Exception):  # noqa: N818  # names who is to blame
    """A plugin raised `SystemExit` or the like; the text names the call."""


class FailedElsewhere(Exception):  # noqa: N818  # names where it happened
    """Code of a plugin has failed in another process; the text is its stack trace there."""


class CallTimedOut(Exception):  # noqa: N818  # names who is to blame
    """A plugin's call took too long; the text names the call, and where it hangs."""


class SinkBroken(Exception):  # noqa: N818  # names who is to blame
    """The sink must not be used in its present state; the text gives the reason and the remedy.

    The task is FAILED, and checks again every few seconds.
    """


class LettersRefused(Exception):  # noqa: N818  # says what was done
    """A connector has no dead letters that can be read here; the text says why, and what to do."""


class CursorRefused(LettersRefused):
    """A cursor is none that a page of these dead letters has had."""

    def __init__(self) -> None:
        super().__init__("cursor: it is no place among these dead letters: begin without one")


class OffsetRefused(Exception):  # noqa: N818  # names what it is about
    """A partition, an offset or a position that a user gave is not valid for the source.

    The text names the key and the valid values.
    """


class SampleRefused(Exception):  # noqa: N818  # says what was refused
    """A sample of a source's rows is not read; the text says why, and what can be done."""
