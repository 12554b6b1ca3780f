"""How a command can end other than well; each way has its exit code."""

from typing import ClassVar

FAILED = 1
MISUSED = 2
UNREACHABLE = 3


class Failed(Exception):  # noqa: N818  # what happened
    """The command could not be carried out; the text says what is kept and what to do."""

    status: ClassVar[int] = FAILED


class Misused(Failed):
    """What was asked for makes no sense as it was written; nothing was done."""

    status: ClassVar[int] = MISUSED


class Unreachable(Failed):
    """No cluster answered; whether a command took place is unknown if it was on its way."""

    status: ClassVar[int] = UNREACHABLE
