"""The verb `log publish`: it puts the logs of one host into the store of a cluster (LOG.md §13)."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from ......events.entries.history import summarizer
from ......events.log.errors import LogError
from ......events.log.reader import LogReader
from ......events.stores.opening import StoreSpec
from ......events.stores.stored_log import StoredLog
from ...adapters.parameters import Option
from ...output.printing import Failed, Misused, Table, show
from ...output.progress import show_progress
from ...requests.options import LocalReadOptions, with_options
from .compact import LogPlace, find_logs, stopped_node

if TYPE_CHECKING:
    from .....config.load import Config


class StoreKind(StrEnum):
    """The engines that may keep a log."""

    POSTGRES = "postgres"
    KAFKA = "kafka"


TO: Final = Option("--to", help="The engine; default: log.store.", show_default=False)


@with_options(LocalReadOptions)
def publish(options: LocalReadOptions, to: Annotated[StoreKind | None, TO] = None) -> None:
    """Put all logs of a node that is down into a store that is empty.

    Then set log.store on this node, and start it and others. Its own logs stay as they are, and are
    copies from then on. What was interrupted goes on where it was.
    """
    with stopped_with_store(options, to, "where to? --to") as (_, store):
        found = find_logs(options, None, every=True)
        places = sorted(found, key=lambda each: each.is_control)  # these rest on the others
        rows: list[tuple[str, str]] = []
        ends: dict[Path, int] = {}
        with show_progress("logs published", len(places)) as advance:
            for place in places:
                end = _publish(place, store, ends.get(place.path.parent, 0))
                ends[place.path.parent] = end
                rows.append((place.name, str(end)))
                advance(len(rows))
        rows.sort()
    done = [{"log": name, "entries": int(end)} for name, end in rows]
    show(options.output, done, [Table(("LOG", "END"), rows)])


@contextmanager
def stopped_with_store(
    options: LocalReadOptions, engine: StoreKind | None, question: str
) -> "Generator[tuple[Config, StoreSpec]]":
    """Keep a node that is down from starting; yield its settings, and the store of an engine."""
    if engine is not None:
        given = options.overrides or ()
        options = replace(options, overrides=[*given, f"log.store={engine.value}"])
    config = options.load_config()
    from .....cluster.identity import identity_of  # noqa: PLC0415  # it is slow

    store = config.store()
    if store is None:
        raise Misused(f"{question} postgres or kafka, or set log.store")
    with stopped_node(config.data_path) as is_stopped:
        if not is_stopped:
            raise Failed(f"the node on {config.data_path} runs: end it first (`fairlead down`)")
        yield config, replace(store, folder=identity_of(config.data_path / "run"))


def _publish(place: LogPlace, store: StoreSpec, rests_on: int) -> int:
    """Publish one log, which rests on the end of another, and return its end; raises `Failed`."""
    try:
        with LogReader.open(place.path) as reader:
            log_id = reader.log_id
        opened = store.open(f"{log_id}-{place.kind.value}")
        kind = place.kind.shared if place.is_shared else place.kind.kind
        now_ms = time.time_ns() // 1_000_000
        summarize = summarizer(now_ms, is_shared=place.is_shared) if place.is_control else None
        with StoredLog.open_copy(place.path, log_id, kind, opened) as log:
            return log.publish(store.claimant, summarize, rests_on)
    except LogError as error:
        raise Failed(f"{place.name}: {error}") from None
