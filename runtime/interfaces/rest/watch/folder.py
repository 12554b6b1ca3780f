"""Keeps the connectors in step with a folder of files: what is there is what runs.

Every few seconds a thread looks at the folder and at the connectors in the log. While neither has
changed that is all. Otherwise each config is examined as `apply` does it, and compared:

* In mode `plan` it is told, in the log and in the status of the node, what would be done.
* In mode `apply` all that differs is written by one command; so what somebody has changed by other
  means is changed back. One that is refused holds up no other, and is tried again each minute.

A connector is *of the folder* if its config was last written from here: the log says so by the
principal. With `prune` such a one is deleted when its file is gone. Never one that a person wrote,
and nothing at all while the folder is missing or has no connector, or while one of its files cannot
be read: it might be the one that is looked for.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Final

from .....actors.messages.orders import DeleteConnector, PutConnectors
from .....events.entries.codec import CodecError
from .....events.log.errors import LogError
from .....events.records import ConnectorConfig
from ...replies.connectors import ConfigDiff
from ...replies.folder import APPLY, FileError, FolderReport
from ..commands.service import Service, forget_topics, refuse
from ..routes.connectors.config_diff import examine_configs
from ..server.errors import ApiError, Unanswered
from ..validation.configs import SealedConfig, has_external_state
from .connector_files import Config, ConnectorFiles, FolderContent, FolderMissing

LOGGER = logging.getLogger(__name__)
LOOK_SECONDS: Final = 3.0
AGAIN_SECONDS: Final = 60.0
"""After this time what was refused is examined again: it may depend on something outside."""
PRINCIPAL: Final = "the files of connectors.dir"
"""The principal of commands from here; no user's name has a blank."""

Examined = tuple[ConfigDiff, SealedConfig] | ApiError


@dataclass(frozen=True, slots=True)
class FolderSettings:
    """The folder that is kept in step, and how."""

    folder: Path
    applies: bool = False
    """Whether what differs is changed; else it is only told."""
    prunes: bool = False
    """Whether connectors of the folder are deleted once their file is gone."""


class FolderWatch:
    """Keeps the connectors of a node's own group in step with a folder."""

    def __init__(self, service: Service, settings: FolderSettings) -> None:
        self._service, self._settings = service, settings
        self._files = ConnectorFiles(settings.folder)
        self._is_over = Event()
        self._thread = Thread(target=self._run, name="connector files", daemon=True)
        self._seen: tuple[FolderContent, Mapping[str, ConnectorConfig]] | None = None
        """The folder and the connectors that were compared last."""
        self._again_at = 0.0
        """When they are compared again although neither has changed, in monotonic seconds."""
        self._examined: dict[str, tuple[Config, ConnectorConfig | None, Examined]] = {}
        """The examination of each connector, with the config and the record that it was of."""
        mode = APPLY if settings.applies else "plan"
        self._report = FolderReport(str(settings.folder), mode, settings.prunes)
        self._told = ""
        """What the log has of the last report."""

    def report(self) -> FolderReport:
        """Return what was found at the last look."""
        return self._report

    def start(self) -> None:
        """Begin to look, on a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._is_over.set()

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                self.look()
            except (LogError, CodecError, Unanswered):
                pass  # the group is not there yet, or busy: it is tried again
            except Exception:
                LOGGER.exception("connectors.dir is not kept in step for now; it is tried again")
            self._is_over.wait(LOOK_SECONDS)

    def look(self) -> None:
        """Compare, tell and apply; raises `LogError`, `CodecError`, `Unanswered`."""
        try:
            content = self._files.look()
        except FolderMissing as error:
            self._seen = None
            flaw = FileError("", "", f"{error}: nothing is changed or deleted until it is back")
            self._tell(self._make_report("missing", FolderContent(errors=(flaw,))))
            return
        if content is None:
            return
        with self._service.logs.reading(self._service.group_id) as logs:
            stored = dict(logs.group.connectors)
        is_same = self._seen is not None and self._seen[0] is content and self._seen[1] == stored
        if is_same and time.monotonic() < self._again_at:
            return
        asyncio.run(self._compare(content, stored))
        self._seen, self._again_at = (content, stored), time.monotonic() + AGAIN_SECONDS

    async def _compare(self, content: FolderContent, stored: Mapping[str, ConnectorConfig]) -> None:
        await self._examine(content, stored)
        results = {name: outcome for name, (_, _, outcome) in self._examined.items()}
        flaws = [
            FileError(content.origins[name], name, outcome.message)
            for name, outcome in results.items()
            if isinstance(outcome, ApiError)
        ]
        fine = {name: each for name, each in results.items() if not isinstance(each, ApiError)}
        changed = {name: each for name, each in fine.items() if _differs(each[0])}
        gone = self._find_gone(content, stored)
        drifted = [name for name in changed if name in stored and stored[name].actor != PRINCIPAL]
        if self._settings.applies:
            flaws += await self._apply(changed, gone)
        report = self._make_report(
            "failed" if flaws or content.errors else "differs" if changed or gone else "in step",
            content,
            [diff for diff, _ in changed.values()],
            gone,
            drifted,
            flaws,
        )
        self._tell(report)

    async def _examine(self, content: FolderContent, stored: Mapping[str, ConnectorConfig]) -> None:
        """Examine new configs, those that were refused, and those of changed connectors."""
        former = self._examined
        to_examine = {
            name: config
            for name, config in content.configs.items()
            if (kept := former.get(name)) is None
            or kept[:2] != (config, stored.get(name))
            or isinstance(kept[2], ApiError)
        }
        outcomes = await examine_configs(self._service, to_examine)
        self._examined = {
            name: (config, stored.get(name), outcomes[name]) if name in outcomes else former[name]
            for name, config in content.configs.items()
        }

    def _find_gone(
        self, content: FolderContent, stored: Mapping[str, ConnectorConfig]
    ) -> list[str]:
        """Return the connectors of the folder that it has no more; none if that is not sure."""
        if not self._settings.prunes or not content.is_whole:
            return []
        return [
            name
            for name, each in sorted(stored.items())
            if name not in content.configs and each.actor == PRINCIPAL and not each.deleting
        ]

    async def _apply(
        self, changed: Mapping[str, tuple[ConfigDiff, SealedConfig]], gone: Sequence[str]
    ) -> list[FileError]:
        """Write configs and delete connectors; return what was refused. Raises `Unanswered`."""
        service, flaws = self._service, list[FileError]()
        if changed:
            configs = {name: sealed.config for name, (_, sealed) in changed.items()}
            command = PutConnectors(service.group_id, configs, PRINCIPAL)
            try:
                refuse((await service.commands.carry_out(command)).reply)
            except ApiError as error:
                flaws.append(FileError("", "", f"nothing was applied: {error.message}"))
        for name in gone:
            with service.logs.reading(service.group_id) as logs:
                before = logs.group.connectors.get(name)
            if before is None or before.deleting or before.actor != PRINCIPAL:
                continue  # somebody was quicker
            forgets = has_external_state(service.plugins, before.config)
            order = DeleteConnector(service.group_id, name, PRINCIPAL, forgets, True)  # noqa: FBT003
            try:
                await forget_topics(service, name, before.config, PRINCIPAL)
                refuse((await service.commands.carry_out(order)).reply)
            except ApiError as error:
                flaws.append(FileError("", name, f"it was not deleted: {error.message}"))
        return flaws

    def _make_report(
        self,
        state: str,
        content: FolderContent,
        to_apply: Sequence[ConfigDiff] = (),
        to_delete: Sequence[str] = (),
        drifted: Sequence[str] = (),
        flaws: Sequence[FileError] = (),
    ) -> FolderReport:
        settings = self._settings
        return FolderReport(
            str(settings.folder),
            APPLY if settings.applies else "plan",
            settings.prunes,
            state,
            content.files,
            len(content.configs),
            [*to_apply],
            [*to_delete],
            [*drifted],
            [*content.errors, *flaws],
        )

    def _tell(self, report: FolderReport) -> None:
        """Keep a report, and log what is new in it."""
        self._report = report
        lines = [*_lines(report)]
        if (told := "\n".join([*lines, *(each.line for each in report.errors)])) != self._told:
            self._told = told
            for each in report.errors:
                LOGGER.warning("connectors.dir: %s", each.line)
            for line in lines:
                LOGGER.info("connectors.dir: %s", line)


def _differs(diff: ConfigDiff) -> bool:
    return diff.is_new or bool(diff.changes)


def _lines(report: FolderReport) -> list[str]:
    """Return the lines of the log about a report: what was done, or would be."""
    is_plan = report.mode != APPLY
    refused = {each.connector for each in report.errors if not each.file}  # "": all that is written
    would = "would be " if is_plan or "" in refused else ""
    lines = [report.summary]
    for diff in report.to_apply:
        keys = ", ".join(each.key for each in diff.changes)
        by = ", which others wrote last" if diff.name in report.drifted else ""
        how = "created" if diff.is_new else f"changed ({keys})"
        lines.append(f"connector {diff.name}{by} {would}{how}")
    for name in report.to_delete:
        how = "would be deleted" if is_plan or name in refused else "deleted"
        lines.append(f"connector {name} {how}")
    return lines
