"""Write a new generation of golden logs: `PYTHONPATH=tests python -m fairlead_tests.golden.write`.

Existing generations are never changed: their logs were written by versions that are
in use. If no record has changed, no generation is added.
"""

import shutil
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from fairlead_tests.golden.fixtures import FOLDER, generations, state_of, to_lines, to_text
from fairlead_tests.golden.lives import LIVES, lead

ON_DISK = "moves"
"""The history whose LMDB file is kept as well."""


def write(folder: Path) -> None:
    """Write all histories into a new folder."""
    folder.mkdir()
    for name in LIVES:
        with TemporaryDirectory() as place:
            control, offsets = lead(name, Path(place))
            if name == ON_DISK:
                with tarfile.open(folder / f"{name}.lmdb.tar.gz", "w:gz") as packed:
                    packed.add(Path(place) / "backup", "control", filter=_without_owner)
        (folder / f"{name}.control").write_text(to_lines(control))
        if offsets:
            (folder / f"{name}.offsets").write_text(to_lines(offsets))
        (folder / f"{name}.state").write_text(to_text(state_of(control, offsets)))


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def is_like(folder: Path, other: Path) -> bool:
    """Return whether two generations are equal."""
    names = {each.name for each in (*folder.iterdir(), *other.iterdir()) if each.is_file()}
    return all(
        (folder / name).is_file()
        and (other / name).is_file()
        and (folder / name).read_bytes() == (other / name).read_bytes()
        for name in names
        if not name.endswith(".gz")
    )


def main() -> None:
    """Add a generation if the newest one is not what would be written today."""
    existing = generations()
    folder = FOLDER / str(len(existing) + 1)
    with TemporaryDirectory(dir=FOLDER) as place:
        written = Path(place) / "new"
        write(written)
        if existing and is_like(existing[-1], written):
            sys.stdout.write(f"{existing[-1]} is what is written today: nothing to add\n")
            return
        shutil.move(written, folder)
    sys.stdout.write(f"{folder} written; the older ones stay as they are\n")


if __name__ == "__main__":
    main()
