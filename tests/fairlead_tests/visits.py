"""Which files a call visits: what a reader has to open to follow it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import fairlead

HOUSE = Path(fairlead.__file__).parent


@dataclass
class Visits:
    """The files of the product that are visited, in order; one file in a row counts once."""

    order: list[str] = field(default_factory=list[str])

    @property
    def files(self) -> set[str]:
        """The files."""
        return {*self.order}

    @property
    def changes(self) -> int:
        """How often another file is opened."""
        return max(0, len(self.order) - 1)

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call of a function of the product; comprehensions and lambdas have no name."""
        path = Path(frame.f_code.co_filename)
        if event != "call" or frame.f_code.co_name.startswith("<") or HOUSE not in path.parents:
            return
        name = path.relative_to(HOUSE).as_posix()
        if not name.startswith(("tests/", ".venv/")) and self.order[-1:] != [name]:
            self.order.append(name)


@contextmanager
def visits() -> Iterator[Visits]:
    """Note what is visited meanwhile."""
    noted = Visits()
    sys.setprofile(noted.note)
    try:
        yield noted
    finally:
        sys.setprofile(None)
