"""The errors of a sink behind those of Spark, which writes a batch."""

from pathlib import Path
from typing import Final

from ....engines.failures import failure_text
from ....spi.errors import BadInput, RowsRefused, SinkAway, SinkFull
from .. import keys
from .null_folder import NULL_FOLDER
from .root import sink_full
from .staging import STAGING

_LIKE_NULL: Final = f"""has the text {NULL_FOLDER}, and also null: both would be in one \
folder. Nothing of the batch was written: change the text by a transform"""
_NO_FOLDER: Final = "Mkdirs failed to create"
_LONGEST_NAME: Final = 255
"""The most bytes in the name of a folder."""
_FULL_WORDS: Final = ("No space left on device", "Disk quota exceeded")
_TEMPORARY: Final = """no space left for Spark's temporary files, which lie in data.dir, or in \
spark.local.dir of an executor; the task retries the batch until there is"""
_GONE_WORDS: Final = ("No such file or directory", "does not exist", "FileNotFound")
_AWAY_WORDS: Final = ("Read-only file system", "Stale file handle", "Input/output error")


def explain_spark_error(root: Path, error: Exception) -> SinkAway | BadInput | None:
    """Return the sink's error behind the error of a Spark job; None: the sink did not cause it.

    A full disk of Spark's own temporary files is waited for like that of a sink.
    """
    text = failure_text(error) or ""
    if NULL_FOLDER in text and "already exists" in text:
        return BadInput(f"a column of {keys.SINK_PARTITION_BY} {_LIKE_NULL}")
    names = text.split("/") if _NO_FOLDER in text else []
    if any(len(each.encode()) > _LONGEST_NAME or "\0" in each for each in names):
        why = "has a NUL, so it cannot" if "\0" in text else "is too long to"
        return RowsRefused(f"a value of `{keys.SINK_PARTITION_BY}` {why} name a folder")
    if any(each in text for each in _FULL_WORDS):
        return SinkFull(_TEMPORARY) if _is_of_temporary_files(str(error)) else sink_full(root)
    found = next((each for each in _AWAY_WORDS if each in text), "")
    return SinkAway(f"{root}: {found.lower()}") if found else None


def explain_lost_files(root: Path, error: Exception) -> SinkAway | None:
    """Return the error of staged files that vanished during a Spark job; None: it is another.

    The root itself must have been found there.
    """
    text = failure_text(error) or ""
    if STAGING not in text or not any(each in text for each in _GONE_WORDS):
        return None
    return SinkAway(
        f"files of a batch vanished from {root}/{STAGING} while Spark wrote them. Nothing of the "
        f"batch counts, and it is written again. Keep whatever cleans up away from "
        f"{root}/{STAGING}"
    )


def _is_of_temporary_files(trace: str) -> bool:
    """Tell whether rows were sorted or shuffled, and not written to the sink."""
    is_in_task = "Job aborted due to stage failure" in trace
    return "spill()" in trace or (is_in_task and "TASK_WRITE_FAILED" not in trace)
