"""The files of one batch on their way to rows, and which of them is to blame where that fails."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from pyspark.sql.utils import is_remote

from ....spi.errors import BadInput, LostRange, SchemaRefused, Unreadable
from ....spi.rows import Rejects
from ...evolution.policy import DEAD_LETTER
from .bad_rows import BAD_VALUE
from .formats import ReadFormat
from .listing import SourceFile
from .looks import admit, look_through
from .text import Copies, Surveyed, is_about_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BLAMED = re.compile(r"FAILED_READ_FILE\S* [^\n]*?file (?:file:(?://)?)?(?P<path>/\S+?)\.?\s")
_VALUE = re.compile(
    BAD_VALUE + r" (?:file:(?://)?)?(?P<path>/\S+) (?P<why>column `.*?)(?: SQLSTATE: \w+|$)",
    re.S | re.M,
)
_UNREADABLE = re.compile(
    r"column: \[(?P<name>.+?)\], physicalType: (?P<stored>\w+), logicalType: (?P<wanted>.+)"
)
"""How Spark says that a parquet file has a type that it does not take for that of the schema."""
_CAUSE = re.compile(r"^Caused by: \S+?: (?P<why>.+)$", re.M)
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+")
_AWAY_WORDS: Final = ("Input/output error", "Stale file handle", "No space left on device")


class Reading:
    """Reads one batch of files after the other; a file is told by the path below their folder."""

    def __init__(self, root: Path, form: ReadFormat) -> None:
        self._root = root
        self._form = form
        self._files: Sequence[SourceFile] = ()
        """What was read last."""
        self.rejects: tuple[Rejects, ...] = ()
        """The rows of these that do not fit the schema."""
        self.left_out: dict[str, None] = {}
        """The columns that files have and the schema has not, where these are left out."""
        self._copies = Copies()
        """Copies of files that Spark would not read as they are."""

    def read(self, spark: "SparkSession", files: Sequence[SourceFile]) -> "DataFrame":
        """Describe the rows of files, and take up what they have beyond the schema.

        Raises `Unreadable` for all that cannot be read, if that is tolerated; else `BadInput`.
        """
        self.close()
        self._files = files
        # That of a server of Spark Connect is no folder of this node.
        within = None if is_remote() else spark.conf.get("spark.local.dir", None)
        found: list[Surveyed] = []
        lost: list[LostRange] = []
        for each in files:
            file = self._root / each.path
            try:
                surveyed = look_through(self._form, file, self._copies, within)
                self._form, left_out = admit(self._form, surveyed, file)
                self.left_out |= dict.fromkeys(left_out)
                found.append(surveyed)
            except BadInput as error:
                if not self._is_tolerated(error):
                    raise
                reason = str(error).removeprefix(f"{file}: ")
                lost.append(LostRange(each, {"file": str(file)}, reason))
        if lost:
            raise Unreadable(lost)
        good, self.rejects = self._form.rows(spark, found, self._copies)
        return good

    def _is_tolerated(self, error: BadInput) -> bool:
        """Tell whether the batch goes on without the file that an error is about."""
        if isinstance(error, SchemaRefused):
            return self._form.policy.mode == DEAD_LETTER
        return self._form.tolerant and is_about_file(error)

    def blame(self, error: Exception) -> BadInput | None:
        """Name the file and the reason, if an error of Spark's is about a file."""
        told = _file_and_reason(str(error))
        if told is None:
            return None
        plain, why = unquote(told[0]), told[1]
        file = str(self._copies.originals.get(plain, plain))
        path = os.path.relpath(file, self._root)
        read = next((each for each in self._files if each.path == path), None)
        if self._form.tolerant and read and not any(each in why for each in _AWAY_WORDS):
            return Unreadable([LostRange(read, {"file": file}, why)])
        return BadInput(f"{file}: {why}")

    def close(self) -> None:
        """Remove what was copied to be read."""
        self._copies.clear()
        self.rejects = ()


def _file_and_reason(text: str) -> tuple[str, str] | None:
    """Return which file an error of a job is about, as Spark knows it, and why; None: none."""
    value = _VALUE.search(text)
    if value:
        return value["path"], value["why"]
    blamed = _BLAMED.search(text)
    if not blamed:
        return None
    causes = [_SQLSTATE.sub("", each).strip() for each in _CAUSE.findall(text)]
    causes = [_UNREADABLE.sub(_told_of_type, each) for each in causes]
    return blamed["path"], "; ".join(dict.fromkeys(causes)) or "it cannot be read"


def _told_of_type(match: "re.Match[str]") -> str:
    name, stored, wanted = match["name"], match["stored"], match["wanted"].upper()
    return (
        f"column `{name}` is stored as {stored}, and not as Spark reads {wanted} from; give it a "
        "type in `source.schema` that fits what is stored, or write the file anew"
    )
