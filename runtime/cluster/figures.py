"""Where the coordinators of a node keep their figures: a file for each group and each shard."""

from pathlib import Path
from urllib.parse import quote, unquote

from ...actors.shards.figures import SUFFIX, FiguresRead, read_figures

GROUP, SHARD = "group", "shard"
"""The kinds of coordinators, as their processes are called."""


def figures_file(folder: Path, kind: str, name: str) -> Path:
    """Return the file of a coordinator in the node's folder of metrics."""
    return folder / f"{kind}-{quote(name, safe='')}{SUFFIX}"


def read_all_figures(folder: Path) -> dict[tuple[str, str], FiguresRead]:
    """Return the figures of all coordinators by kind and name."""
    files = sorted(folder.glob(f"*{SUFFIX}"))
    found = ((each.stem.partition("-"), read_figures(each)) for each in files)
    return {(kind, unquote(name)): told for (kind, _, name), told in found if told}
