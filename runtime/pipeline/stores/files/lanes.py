# pyright: basic
"""Counts the files that Arrow may read, and finds why Spark has to read the others."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ...formats.csv.grammar import PlainForm
from ...formats.csv.mismatch import find_flaw
from ...spi.rows import LaneCount
from . import keys
from .compression import CODECS, is_compressed, is_spark_only
from .copies import FileSurvey


class LaneCounter:
    """Counts batch by batch.

    The status tells of files that are not proved only when their number has doubled, and only then
    one of them is looked through for the reason.
    """

    def __init__(self, form_name: str, look: Callable[[Path, FileSurvey], str]) -> None:
        """Begin; `look` finds where the text of a file is not proved, or returns an empty text."""
        self._look = look
        self._of_format = "" if form_name == "csv" else f"{keys.SOURCE_FORMAT}={form_name}"
        """Why files of this format are not proved."""
        self.last = LaneCount(why_spark=self._of_format)
        """Of the last batch."""
        self.refusal = ""
        """Why Arrow could not read the batch that is to be read again."""
        self._unproved = 0
        """How many files were not proved so far."""
        self._told = 0
        """How many of them there were when the status told of them last."""

    def count(
        self,
        form: PlainForm,
        files: Sequence[tuple[Path, FileSurvey]],
        *,
        is_parted: bool,
    ) -> None:
        """Count the files of a batch, which Arrow reads in parts or not."""
        refusal, self.refusal = self.refusal, ""
        others = [each for each in files if each[1].proof is None]
        if is_parted and not others:
            self.last = LaneCount(len(files))
            return
        proved = len(files) - len(others) if is_parted else 0
        others = others or [*files]  # all are proved, and executors have no Arrow
        why = self._of_format or _why_never(form, *others[-1])
        is_news = False
        if not why:
            self._unproved += len(others)
            is_news = self._unproved >= 2 * self._told
            why = f"Arrow could not read them: {refusal}" if refusal else ""
            why = why or self._why_not(*others[-1], looks=is_news)
        if is_news:
            self._told = self._unproved
        self.last = LaneCount(proved, why_spark=why, is_news=is_news)

    def _why_not(self, file: Path, survey: FileSurvey, *, looks: bool) -> str:
        where = self._look(file, survey) if looks else ""
        return f"{file}: {where}" if where else f"{file} is not proved"


def _why_never(form: PlainForm, file: Path, survey: FileSurvey) -> str:
    """Return why a file cannot be proved, whatever its text is; empty: it may be."""
    if is_spark_only(file) or (is_compressed(file) and file.suffix.lower() not in CODECS):
        return f"only Spark reads files such as {file}"
    if survey.folders or survey.shadowed:
        return f"only Spark reads columns that folders name, such as those of {file}"
    return find_flaw(form)
