"""The files of one batch on their way to rows, and which of them is to blame where that fails."""

import errno
import os
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from ....spark.sessions import cores_of, runs_elsewhere, scratch_of
from ....spi.context import Context
from ....spi.errors import BadInput, LostRange, SchemaRefused, SourceAway, Unreadable
from ....spi.rows import Rejects
from ...evolution.policy import DEAD_LETTER
from ..copies import Copies, Surveyed, put_together
from .bad_rows import BAD_VALUE
from .formats import ReadFormat
from .listing import SourceFile
from .looks import MOST_HELD, LookAhead, admit, held_of, look_through
from .text import is_about_file

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
_WORDS: Final = """
    dateformat delimiter escape header locale nullvalue quote sep timestampformat timestampntzformat
"""
_OF_VALUES: Final = frozenset(_WORDS.split())
"""Options, in lower case, with which any part of a csv file's lines is read as all of them are."""
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
_AWAY_WORDS: Final = ("Input/output error", "Stale file handle", "No space left on device")


class Reading:
    """Reads one batch of files after the other; a file is told by the path below their folder."""

    def __init__(self, root: Path, form: ReadFormat, context: Context) -> None:
        self._root = root
        self._form = form
        self._put_off = context.put_off
        """Where files are written down that cannot be read, by path."""
        self._may_merge = _merges(form) and not context.may_use_file_names
        """Whether nobody asks from which file a row is, but to tell what is wrong with it."""
        self._merges = False
        """Whether files that were read last could be read as one."""
        self._ahead = LookAhead(root)
        self._within: str | None = None
        """Where folders of copies were made last."""
        self._files: Sequence[SourceFile] = ()
        """What was read last."""
        self.rejects: tuple[Rejects, ...] = ()
        """The rows of these that do not fit the schema."""
        self.left_out: dict[str, None] = {}
        """The columns that files have and the schema has not, where these are left out."""
        self._copies = Copies()
        """What Spark reads in place of files."""

    def read(self, spark: "SparkSession", files: Sequence[SourceFile]) -> "DataFrame":
        """Describe the rows of files, and take up what they have beyond the schema.

        Raises `Unreadable` for all that cannot be read, if that is tolerated; else `BadInput`.
        """
        self._clear()
        self._files = files
        self._within = scratch_of(spark)
        # An empty line is a value where there is one column, and else nothing.
        is_one = len(self._form.columns.fields) == 1
        self._merges = self._may_merge and not (is_one or runs_elsewhere(spark))
        try:
            found = self._look_through(files)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            where = self._within or tempfile.gettempdir()
            raise SourceAway(
                f"there is no room in {where} for a copy of what cannot be read as it is: "
                f"{error.strerror}; make room there"
            ) from error
        if self._merges:
            with suppress(OSError):  # they are read one by one where there is no room for more
                found = put_together(found, cores_of(spark), self._copies, self._within)
        good, self.rejects = self._form.rows(spark, found, self._copies)
        return good

    def look_ahead(self, files: Sequence[SourceFile]) -> None:
        """Look through the files of the next batch meanwhile."""
        self._ahead.begin(self._form, files, self._within, keeps_text=self._merges)

    def _look_through(self, files: Sequence[SourceFile]) -> list[Surveyed]:
        known, self._copies = self._ahead.take(self._form)
        found: list[Surveyed] = []
        lost: list[LostRange] = []
        refused: BadInput | None = None
        held = 0
        for each in files:
            file = self._root / each.path
            try:
                keeps = self._merges and held < MOST_HELD
                surveyed = known.get(each) or look_through(
                    self._form, file, self._copies, self._within, keeps_text=keeps
                )
                held += held_of(surveyed)
                self._form, left_out = admit(self._form, surveyed, file)
                self.left_out |= dict.fromkeys(left_out)
                found.append(surveyed)
            except BadInput as error:
                if not self._is_tolerated(error):
                    if not is_about_file(error):
                        raise
                    # Each that is bad is found at once, and none costs an attempt of its own.
                    self._read_last(each, error)
                    refused = refused or error
                    continue
                reason = str(error).removeprefix(f"{file}: ")
                lost.append(LostRange(each, {"file": str(file)}, reason))
        if refused:
            raise refused
        if lost:
            raise Unreadable(lost)
        return found

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
        blamed = BadInput(f"{file}: {why}")
        if read and not any(each in why for each in _AWAY_WORDS):
            self._read_last(read, blamed)
        return blamed

    def _read_last(self, found: SourceFile, error: BadInput) -> None:
        """Have a file that cannot be read keep none waiting."""
        self._put_off[found.path] = found
        error.is_put_off = True

    def narrow(self, error: Exception) -> bool:
        """Tell whether an error is of files that were put together; they are not again."""
        told = _file_and_reason(str(error))
        is_merged = told is not None and unquote(told[0]) in self._copies.merged
        self._may_merge = self._may_merge and not is_merged
        return is_merged

    def close(self) -> None:
        """Remove what was copied to be read."""
        self._ahead.close()
        self._clear()

    def _clear(self) -> None:
        self._copies.clear()
        self.rejects = ()


def _merges(form: ReadFormat) -> bool:
    """Tell whether lines of several files can be read as one; bad rows tell which is theirs."""
    is_csv = form.name == "csv" and not form.tolerant
    return is_csv and form.options.keys() <= _OF_VALUES


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
