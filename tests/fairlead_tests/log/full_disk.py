"""A log on a full 3 MiB disk, in a separate mount namespace.

Prints the result as JSON. The mount ends with this process.
"""

import json
import logging
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from fairlead.actors.transport.log_file import LogFile
from fairlead.events.entries.codec import CONTROL, encode, restore
from fairlead.events.entries.compaction import Compactor, RequestedCompaction
from fairlead.events.entries.history import read_summary
from fairlead.events.entries.retention import Retention
from fairlead.events.log.errors import LogError
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import Cause, Why
from fairlead.events.records import GroupMetadata
from fairlead_tests.log.samples import TIME_MS, member

DISK_BYTES = 3 << 20
ENTRY = member("W1", "x" * 500)


def fill(path: Path) -> None:
    with suppress(OSError), path.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def leave(path: Path, left_bytes: int) -> None:
    space = os.statvfs(path.parent)
    path.write_bytes(bytes(space.f_bavail * space.f_frsize - left_bytes))


def outcome(log: GroupLog, *, into_reserve: bool = False) -> str:
    try:
        log.append(log.end, [ENTRY], TIME_MS, into_reserve=into_reserve)
    except LogError as error:
        return type(error).__name__
    return "appended"


def opened(path: Path) -> str:
    try:
        GroupLog.open_writer(path, "flights").close()
    except LogError as error:
        return type(error).__name__
    return "opened"


def hits_the_wall(disk: Path) -> dict[str, object]:
    """Without a check of the free space, LMDB itself gets the error of the full disk."""
    path, filler = disk / "log", disk / "filler"
    log = GroupLog.open_writer(path, "flights", reserve_bytes=0)
    while (said := outcome(log)) == "appended":
        if log.end == 100:
            fill(filler)
    acknowledged = log.end
    found: dict[str, object] = {"first": said, "then": outcome(log)}
    found["readable"] = len(log.read(0).entries) == acknowledged
    log.close()
    found["reopened when full"] = opened(path)
    with LogReader.open(path) as reader:
        found["read by another"] = reader.verify().entries == acknowledged
    filler.unlink()
    with GroupLog.open_writer(path, "flights", reserve_bytes=0) as again:
        found["kept"] = again.verify().entries == acknowledged
        found["with space"] = outcome(again)
    return found


def refuses_in_time(disk: Path) -> dict[str, object]:
    """With the reserve, appends are refused, and trimming still works."""
    path, filler = disk / "log", disk / "filler"
    with GroupLog.open_writer(path, "flights", reserve_bytes=1 << 20) as log:
        while (said := outcome(log)) == "appended":
            pass
        end = log.end
        found: dict[str, object] = {"first": said, "then": outcome(log)}
        found["trimmed"] = log.trim(50) == 50
        filler.write_bytes(b"")
        found["kept"] = log.verify().entries == end - 50
        space = os.statvfs(disk)
        found["reserve"] = space.f_bavail * space.f_frsize > 1 << 19
        subprocess.run(["mount", "-o", "remount,size=6m", str(disk)], check=True)
        found["with space"] = outcome(log)
    return found


def is_filled_by_another(disk: Path) -> dict[str, object]:
    """If another program fills the disk, the next append is refused, also that of a new owner."""
    path, filler = disk / "log", disk / "filler"
    found: dict[str, object] = {}
    with GroupLog.open_writer(path, "flights", reserve_bytes=1 << 20) as log:
        found["at first"] = [outcome(log) for _ in range(3)]
        leave(filler, 600 << 10)
        found["low"] = [outcome(log), outcome(log, into_reserve=True)]
        found["space"] = [log.space.is_low, log.space.is_out]
    with GroupLog.open_writer(path, "flights", reserve_bytes=1 << 20) as log:
        found["opened anew"] = [outcome(log), outcome(log, into_reserve=True)]
        fill(filler)
        found["full"] = [outcome(log), outcome(log, into_reserve=True)]
        found["out"] = [log.space.is_low, log.space.is_out]
        filler.unlink()
        found["with space"] = outcome(log)
        found["kept"] = log.verify().entries == log.end
    return found


def has_no_room_to_begin(disk: Path) -> dict[str, object]:
    """LMDB's lock file would be a sparse file on a full disk: touching it would kill."""
    with GroupLog.open_writer(disk / "log", "flights") as log:
        log.backup(disk / "copy")
    fill(disk / "filler")
    found: dict[str, object] = {"new": opened(disk / "new"), "restored": opened(disk / "copy")}
    try:
        LogReader.open(disk / "copy")
    except LogError as error:
        found["read"] = type(error).__name__
    (disk / "filler").unlink()
    found["with space"] = [opened(disk / "new"), opened(disk / "copy")]
    return found


def is_full_amid_compaction(disk: Path) -> dict[str, object]:
    """A compaction stops in time; without a check of the space its slice is done or is not."""
    path, filler = disk / "log", disk / "filler"
    with GroupLog.open_writer(path, "connect", CONTROL, reserve_bytes=256 << 10) as log:
        for epoch in range(1, 4_001):
            record = GroupMetadata(epoch, Cause(Why.MEMBER_JOINED), epoch)
            log.append(log.end, [encode(record)], epoch)
        before, end = restore("connect", *log.load()), log.end
        compaction = RequestedCompaction(log, Retention(epochs=20))
        while not compaction.trimmed:
            compaction.step(1)
        fill(filler)
        found: dict[str, object] = {"goes on": compaction.step(1), "why": "full" in compaction.why}
        try:
            compactor = Compactor(log, Retention(epochs=20))
            while compactor.step(1):
                pass
            found["unchecked"] = "done"
        except LogError as error:
            found["unchecked"] = type(error).__name__
    with LogReader.open(path) as reader:
        low, packed = reader.trimmed()
        summary = read_summary(packed)
        found["summed up"] = summary is not None and summary.entries == low
        found["sound"] = reader.verify().end == end
        found["state"] = restore("connect", *reader.load()) == before
    filler.unlink()
    with GroupLog.open_writer(path, "connect", CONTROL, reserve_bytes=0) as log:
        compaction = RequestedCompaction(log, Retention(epochs=20))
        while compaction.step(1):
            pass
        found["with space"] = (log.low(), restore("connect", *log.load()) == before)
    return found


def loses_log_lines(disk: Path) -> dict[str, object]:
    """A log file drops lines while the disk is full, and says so once it is not."""
    path, filler = disk / "a.log", disk / "filler"
    handler = LogFile(path)

    def say(text: str) -> None:
        handler.handle(logging.LogRecord("a", logging.INFO, "a.py", 1, text, None, None))

    say("before")
    fill(filler)
    for number in range(200):
        say(f"{number} {'x' * 100}")
    dropped = handler.dropped
    filler.unlink()
    say("after")
    say("later")
    handler.close()
    lines = path.read_text().splitlines()
    told = f"{dropped} lines are missing before the last one: the disk did not take them"
    return {"dropped": 100 < dropped <= 200, "first": lines[0], "last": lines[-3:], "told": told}


def main(disk: Path, scenario: str) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(disk)]
    subprocess.run(mount, check=True)
    scenarios = {play.__name__: play for play in (hits_the_wall, refuses_in_time)}
    scenarios["has_no_room_to_begin"] = has_no_room_to_begin
    scenarios["is_filled_by_another"] = is_filled_by_another
    scenarios["is_full_amid_compaction"] = is_full_amid_compaction
    scenarios["loses_log_lines"] = loses_log_lines
    sys.stdout.write(json.dumps(scenarios[scenario](disk)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
