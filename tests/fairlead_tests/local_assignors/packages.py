"""Distributions with assignors, as an installer leaves them in a folder."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

IMPORTS = """
from collections.abc import Mapping
from fairlead.actors.assignors.built_in import counting
from fairlead.actors.assignors.sdk import Assignment, Metadata, Resource, plain_metadata
"""

ASSIGNOR = """
class Mine:
    name, minimum_version, maximum_version = "mine", 0, 2
    def __init__(self, conf):
        self.conf = conf
    def metadata(self, worker):
        return plain_metadata(worker)
    def assign(self, group):
        return counting.assign_deferred(group)
    def on_assignment(self, assignment):
        pass
"""


def install(
    site: Path,
    source: str,
    *points: str,
    dist: str = "shop",
    module: str = "shop_rules",
    group: str = "fairlead.assignors",
) -> None:
    """Install a module, and entry points such as `mine = shop_rules:Mine`."""
    site.mkdir(parents=True, exist_ok=True)
    (site / f"{module}.py").write_text(IMPORTS + source)
    named = dict(point.split(" = ", 1) for point in points)
    _inform(site, dist, {group: named})


def install_example(site: Path, example: Path) -> None:
    """Install a distribution from its folder: what its pyproject.toml names, as it says it."""
    described = tomllib.loads((example / "pyproject.toml").read_text())
    project = described["project"]
    (module,) = described["tool"]["setuptools"]["py-modules"]
    site.mkdir(parents=True, exist_ok=True)
    (site / f"{module}.py").write_text((example / f"{module}.py").read_text())
    _inform(site, project["name"], project["entry-points"])


def _inform(site: Path, dist: str, groups: Mapping[str, Mapping[str, str]]) -> None:
    info = site / f"{dist.replace('-', '_')}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.2\n")
    lines = list[str]()
    for group, points in groups.items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
