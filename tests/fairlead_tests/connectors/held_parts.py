# pyright: basic, reportPrivateUsage=false
"""Parts that Arrow writes in tasks of Spark, held in the middle until a test lets them go."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fairlead.runtime.pipeline.stores.files.sink import arrow_parts
from fairlead.runtime.pipeline.stores.files.source import reading
from fairlead.runtime.pipeline.stores.files.source.parts import FileParts

Part = Callable[[], Iterator[Any]]


class HeldParts:
    """Holds the parts of the first batch once their first rows are in their files."""

    def __init__(self, signs: Path, patch: pytest.MonkeyPatch) -> None:
        self._signs = signs
        parts = FileParts.parts

        def parts_or_held(rows: FileParts, most: int) -> Sequence[Part]:
            made = parts(rows, most)
            return [*map(self._held, made)] if not self._go.exists() else made

        patch.setattr(FileParts, "parts", parts_or_held)
        patch.setattr(reading, "_LEAST_PARTED", 1)
        patch.setattr(arrow_parts, "_ROW_GROUP", 1)  # rows do not wait for others

    @property
    def _go(self) -> Path:
        return self._signs / "go"

    def _held(self, part: Part) -> Part:
        """Return a local function, which travels by value: executors do not have this module."""
        signs, go = self._signs, self._go

        def held() -> Iterator[Any]:
            tables = part()
            first = next(tables)
            yield first
            (sign := signs / f"{os.getpid()}.tmp").touch()
            sign.rename(sign.with_suffix(".pid"))
            while not go.exists():
                time.sleep(0.01)
                yield first.slice(0, 0)
            yield from tables

        return held

    def wait(self) -> int:
        """Wait until a part is held, and return the process that writes it."""
        while not (found := [*self._signs.glob("*.pid")]):
            time.sleep(0.01)
        return int(found[0].stem)

    def go(self) -> None:
        """Let go what is held, and hold no more."""
        self._go.touch()
