"""Paths that only look like a file: pipes, devices, folders, and more than anybody reads."""

import os
from collections.abc import Mapping
from pathlib import Path

OTHER = "it is a pipe, a socket or a device, and only plain files are read"


def no_plain_files(folder: Path, most: int = 1 << 20) -> Mapping[Path, str]:
    """Make them; return them with the reason that is told. `most` is how much may be read."""
    os.mkfifo(folder / "pipe")
    (folder / "to-pipe").symlink_to("pipe")
    (folder / "folder").mkdir()
    with (folder / "huge").open("wb") as file:
        file.truncate(3 << 30)
    (folder / "round").symlink_to("round")
    return {
        folder / "pipe": OTHER,
        folder / "to-pipe": OTHER,
        folder / "folder": "it is a folder, and only plain files are read",
        folder / "huge": f"it has more than {most:,} bytes",
        folder / "round": "too many levels of symbolic links",
        folder / "none": "no such file or directory",
        Path("/dev/zero"): OTHER,
        Path("/dev/tty"): OTHER,
    }
