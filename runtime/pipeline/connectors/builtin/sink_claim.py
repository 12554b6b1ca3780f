"""How a connector comes to write to a sink: the one place where its root is ever made.

The first start under a path makes the root and claims it. After that the claim is in the task
configs, so in the log: a start that comes later, and finds no such root, waits for it. The word
`sink.adopt=true` takes a root as it is, whoever it belonged to and whatever has become of it;
it counts once, when it comes into the config, for task configs that have it are of a connector
that obeyed it.
"""

import secrets
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..config import ParsedConfig
from ..files import sink_marks as marks
from ..files.sink_marks import SinkClaim
from ..files.sink_root import SinkLocation, foreign, translated
from ..files.staging import make_folder
from ..spi import SinkAway
from . import pipeline_keys as keys

_WRITER_BYTES = 4


def claim_sink(
    settings: ParsedConfig, cluster: str, connector: str, before: Mapping[str, str] | None
) -> SinkClaim:
    """Return the claim that a connector's tasks write under, and make it if need be.

    `before` is a task config that is in force, if there is any. Raises `SinkAway` or
    `SinkBroken`, and has changed nothing then.
    """
    root, adopts = Path(settings.text(keys.SINK_PATH)), settings.flag(keys.SINK_ADOPT)
    is_known = before is not None and before.get(keys.SINK_PATH) == str(root)
    had = SinkClaim.read(before.get(keys.TASK_CLAIM, "")) if before and is_known else None
    was_obeyed = had is not None and before is not None and _says_adopt(before)
    place = SinkLocation(root, cluster, connector, None, has_adopted=was_obeyed and adopts)
    if adopts and not was_obeyed:
        return _adopted(place)
    if had is not None:
        return had
    if is_known and not (root / "_fairlead").is_dir():
        raise SinkAway(
            f"{root}, which {connector} was started with before, is not there or has no "
            f"_fairlead: is it not mounted? If nothing was ever written to it, {place.adopting}"
        )
    return _claimed(place)


def _claimed(place: SinkLocation) -> SinkClaim:
    with _made(place.root) as folder:
        marks.write_owner(place.root, place.cluster, anew=False)
        owner = marks.read_owner(place.root)
        if owner != place.cluster:
            raise foreign(place, str(owner))
        before = marks.read_claim(place.root, place.connector)
        is_foreign = before is not None and before[0] != place.cluster
        writer = secrets.token_hex(_WRITER_BYTES)
        if before is None or is_foreign:
            where = (place.root, place.connector, place.cluster)
            marks.write_claim(*where, writer, anew=is_foreign)
        _, writer = marks.read_claim(place.root, place.connector) or ("", writer)
        return SinkClaim(writer, folder)


def _adopted(place: SinkLocation) -> SinkClaim:
    with _made(place.root) as folder:
        marks.write_owner(place.root, place.cluster, anew=True)
        writer = secrets.token_hex(_WRITER_BYTES)
        marks.write_claim(place.root, place.connector, place.cluster, writer, anew=True)
        return SinkClaim(writer, folder, is_adopted=True)


@contextmanager
def _made(root: Path) -> Generator[int]:
    """Make a root if there is none, and give its inode."""
    with translated(root):
        make_folder(root)
        yield root.stat().st_ino


def _says_adopt(config: Mapping[str, str]) -> bool:
    return config.get(keys.SINK_ADOPT, "").strip().lower() == "true"
