# pyright: basic
"""Python starts with this where a test ends or stops a worker at a point of one batch.

    staged       written where no reader looks; it does not count yet
    committed    it counts; nothing of it is in place
    publishing   something of it is in place, as far as the sink has such a moment
    published    in place; the log does not know

A test asks by a file `<connector>.<point>` that holds what is to happen: `kill`, `stop`, or `cut`,
which ends the task's attempt alone. The first batch that comes to the point does it, and renames
the file to `<connector>.<point>.<pid>`.

Connectors whose names begin with `mutant-` go without what makes publishing idempotent, so that a
test that finds nothing wrong with them is known to look at nothing. Those that begin with
`mutant-hasty-` also take each transaction that has begun for one that has ended.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

FOLDER = Path(os.environ["MATRIX_POINTS"])
HOUSE = "fairlead.runtime.pipeline"
FILES = f"{HOUSE}.stores.files"
POSTGRES, KAFKA = (f"{HOUSE}.stores.{each}.sink" for each in ("postgres", "kafka"))
SESSION = f"{HOUSE}.stores.postgres.tables.session"
MUTANT = "mutant-"
HASTY = "mutant-hasty-"


class CutOffError(Exception):
    """An attempt of a task ends here."""


def come_to(point: str, connector: str) -> None:
    """Do what a test asks for at this point, once."""
    asked = FOLDER / f"{connector}.{point}"
    taken = FOLDER / f"{asked.name}.{os.getpid()}"
    try:
        asked.rename(taken)
    except FileNotFoundError:
        return
    what = taken.read_text()
    if what == "cut":
        raise CutOffError(f"cut off at {point}")
    os.kill(os.getpid(), signal.SIGKILL if what == "kill" else signal.SIGSTOP)


def after(owner: Any, name: str, point: str, connector: Callable[..., str]) -> None:
    """Have a method come to a point when it has done its work."""
    wrapped = getattr(owner, name)

    def method(*given: Any, **more: Any) -> Any:
        done = wrapped(*given, **more)
        come_to(point, connector(*given))
        return done

    setattr(owner, name, method)


def at_commits(module: Any) -> None:
    """Know the points that batches of all sinks have."""
    commits = module.TaskCommits
    after(commits, "stage", "staged", lambda self, *_: self._resource.connector)
    after(commits, "commit", "committed", lambda self, *_: self._resource.connector)
    put = commits._publish

    def put_in_place(self: Any, pipeline: Any, commit: Any, sequence: int) -> None:
        told = self._ledger.published

        def published(commit_id: Any) -> None:
            come_to("published", commit_id.connector)
            told(commit_id)

        self._ledger = _Beside(self._ledger, published)
        try:
            put(self, pipeline, commit, sequence)
        finally:
            self._ledger = self._ledger.beside

    commits._publish = put_in_place


class _Beside:
    """A ledger that is told of what is published in another way."""

    def __init__(self, ledger: Any, published: Callable[[Any], None]) -> None:
        self.beside = ledger
        self.published = published

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beside, name)


def at_files(module: Any) -> None:
    """Know when a file was moved; mutants copy theirs, under any name."""
    publication = module._Publication
    after(publication, "move", "publishing", lambda self, *_: self._commit_id.connector)
    publish = module.publish

    def publish_or_copy(root: Path, manifest: Any, commit_id: Any, *rest: Any) -> None:
        if not commit_id.connector.startswith(MUTANT):
            publish(root, manifest, commit_id, *rest)
            return
        staged = root / manifest.staging
        for each in module.data_files(staged):
            shutil.copy(staged / each, root / f"part-{uuid4()}.parquet")

    module.publish = publish_or_copy


def at_file_sink(module: Any) -> None:
    """Have mutants not look at the mark of what was published last."""
    is_done = module._is_done

    def is_done_but_for_mutants(mark: Any, commit_id: Any) -> bool:
        return not commit_id.connector.startswith(MUTANT) and is_done(mark, commit_id)

    module._is_done = is_done_but_for_mutants


def at_reading(module: Any) -> None:
    """Have Arrow read files in tasks of Spark, however small they are."""
    module._LEAST_PARTED = 1


def at_postgres(module: Any) -> None:
    """Know when the marker was moved; mutants put rows in without it, as often as they are told."""
    marker = module.Marker
    after(marker, "move", "publishing", lambda _self, _connection, commit_id: commit_id.connector)
    put = module.put_in_place

    def put_in_place(connection: Any, marker: Any, manifest: Any, commit_id: Any) -> None:
        if not commit_id.connector.startswith(MUTANT):
            put(connection, marker, manifest, commit_id)
            return
        note = manifest.note
        for number, part in enumerate(manifest.parts):
            staged = module.TableName(note["schema"], f"{manifest.staging}{number}")
            if module.read_table(connection, staged) is None:  # swept: another has published it
                continue
            target = module.TableName(*json.loads(part.path))
            change = module._change(connection, target, staged, note["mode"], [])
            for statement in change.statements:
                connection.execute(statement)

    module.put_in_place = put_in_place


def at_prepared(module: Any) -> None:
    """Know when the transaction that was prepared is about to be committed."""
    publish = module.publish

    def come_and_publish(connection: Any, marker: Any, manifest: Any, commit_id: Any) -> None:
        come_to("publishing", commit_id.connector)
        publish(connection, marker, manifest, commit_id)

    module.publish = come_and_publish


def at_sessions(module: Any) -> None:
    """Have hasty mutants read up to the newest transaction, whatever is open before it."""
    session = module.ReadSession
    begin = session.snapshot

    @contextmanager
    def snapshot(self: Any) -> Iterator[Any]:
        with begin(self) as begun:
            if HASTY in self.server.conninfo:  # which names the task that asks
                seen = begun.horizon()
                begun.horizon = lambda: seen._replace(lo=seen.hi)
            yield begun

    session.snapshot = snapshot


def at_kafka(module: Any) -> None:
    """Know when records were sent; mutants look for no mark."""
    publisher = module.Publisher
    after(publisher, "_drain", "publishing", lambda self, *_: _connector(self.group))
    mark = publisher.mark
    publisher.mark = lambda self: None if _is_mutant(self.group) else mark(self)


def at_kafka_staging(module: Any) -> None:
    """Have the files of mutants stay."""
    folder = module.StagingFolder
    discard, sweep = folder.discard, folder.sweep

    def keep(self: Any, name: str) -> None:
        if not name.startswith(MUTANT):
            discard(self, name)

    def keep_all(self: Any, task: Any, token: Any) -> None:
        if not task.connector.startswith(MUTANT):
            sweep(self, task, token)

    folder.discard, folder.sweep = keep, keep_all


def _connector(group: str) -> str:
    return group.removeprefix("fairlead.").rpartition("-")[0]


def _is_mutant(group: str) -> bool:
    return _connector(group).startswith(MUTANT)


CHANGES: dict[str, Callable[[Any], None]] = {
    f"{HOUSE}.tasks.commits": at_commits,
    f"{FILES}.sink_folder.publishing": at_files,
    f"{FILES}.sink.folder_sink": at_file_sink,
    f"{HOUSE}.stores.files.source.reading": at_reading,
    f"{POSTGRES}.publishing": at_postgres,
    f"{POSTGRES}.prepared": at_prepared,
    SESSION: at_sessions,
    f"{KAFKA}.publishing": at_kafka,
    f"{KAFKA}.staging": at_kafka_staging,
}
"""What is done to modules once they are loaded."""


class ChangedModules(MetaPathFinder):
    """Finds the modules that are changed as Python would, and changes them."""

    def find_spec(
        self, fullname: str, path: Any = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in CHANGES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_change(module: Any) -> None:
                load(module)
                CHANGES[fullname](module)

            spec.loader.exec_module = load_and_change  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, ChangedModules())
