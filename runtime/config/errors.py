"""What is wrong with a configuration, in words for whoever wrote it."""

from collections.abc import Iterable


class ConfigError(Exception):
    """The configuration cannot be used; nothing was started or changed.

    `problems` has one line for each thing that is wrong: where it stands and what would do.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))
