"""What the page has from others is as they published it, with its licence."""

import hashlib
import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

VENDOR = Path(__file__).parents[2] / "runtime" / "interfaces" / "page" / "vendor"
FILES: list[dict[str, Any]] = json.loads((VENDOR / "vendored.json").read_text())


def test_each_file_is_listed_with_its_hash_and_has_a_licence_beside_it() -> None:
    hashes = {each["file"]: each["sha256"] for each in FILES}
    licences = {f"{Path(each['file']).name.split('.')[0]}.LICENSE" for each in FILES}
    listed = {"vendored.json", *hashes, *licences}
    assert {each.name for each in VENDOR.iterdir()} == listed
    for name, digest in hashes.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name


@pytest.mark.soak
@pytest.mark.parametrize("each", FILES, ids=lambda each: str(each["file"]))
def test_each_file_is_the_one_that_its_authors_published(
    each: dict[str, Any], tmp_path: Path
) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("there is no npm to fetch packages with")
    name = f"{each['package']}@{each['version']}"
    packed = subprocess.run(
        [npm, "pack", name], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if packed.returncode:
        pytest.skip(f"the registry cannot be reached: {packed.stderr[-200:]}")
    (archive,) = tmp_path.glob("*.tgz")
    with tarfile.open(archive) as opened:
        published = opened.extractfile(f"package/{each['published_as']}")
        assert published is not None
        assert published.read() == (VENDOR / each["file"]).read_bytes()
