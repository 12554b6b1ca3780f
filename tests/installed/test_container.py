"""A node as in a container: read-only root, a user without rights, process 1 that reaps, SIGTERM.

The steps of the Containerfile are run by `buildah`, which no test can do without base images. What
the container gives a node is made here of namespaces; that needs root.
"""

import os
import re
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from fairlead_tests.actor_system import runs
from fairlead_tests.installed.service import NOOP, listening, running

HOUSE = Path(__file__).parents[2]
FOLDER = HOUSE / "deploy" / "container"
CONTAINER = """
mount --make-rprivate /
case {python} in {home}/*)  # others have no way to this Python, but through a mount
  mount --bind {python} /media
  mount -t tmpfs -o mode=755 tmpfs {home}
  mkdir -p {python}
  mount --bind /media {python}
esac
mount --bind {data} /mnt
mount -t tmpfs tmpfs /tmp
mount -o remount,bind,ro /
mount -t proc proc /proc
exec tini -- setpriv --reuid 10001 --regid 10001 --clear-groups --inh-caps=-all --no-new-privs \
  {program} up --log stdout --data-dir /mnt/data {settings}
"""


def steps() -> dict[str, list[str]]:
    """Return the arguments of each instruction of the Containerfile, in their order."""
    found: dict[str, list[str]] = {}
    text = (FOLDER / "Containerfile").read_text().replace("\\\n", " ")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, rest = line.partition(" ")
            found.setdefault(name, []).append(" ".join(rest.split()))
    return found


def test_the_image_runs_a_user_without_rights_below_a_process_that_reaps() -> None:
    image = steps()
    assert image["USER"] == ["10001:10001"]
    assert image["STOPSIGNAL"] == ["SIGTERM"]
    assert image["ENTRYPOINT"] == ['["/usr/bin/tini", "--", "fairlead"]']
    assert image["VOLUME"] == ["/var/lib/fairlead"]
    assert "FAIRLEAD_LOG_TO=stdout" in image["ENV"][0]
    assert any("fairlead prepare" in each for each in image["RUN"])


def test_the_image_is_made_of_files_that_are_there() -> None:
    sources = [each.split()[0] for each in steps()["COPY"] if not each.startswith("--from")]
    assert [each for each in sources if not (HOUSE / each).exists()] == []


needs_namespaces = pytest.mark.skipif(
    os.getuid() != 0 or not all(map(shutil.which, ("unshare", "tini", "setpriv"))),
    reason="needs root, unshare, setpriv and tini",
)


@needs_namespaces
@pytest.mark.cluster
def test_a_node_runs_without_a_root_to_write_to_and_ends_in_order(tmp_path: Path) -> None:
    data = tmp_path / "volume"
    data.mkdir()
    os.chown(data, 10001, 10001)
    address = f"@fairlead-container-{os.getpid()}"
    script = CONTAINER.format(
        data=data,
        home=Path.home(),
        python=sys.base_prefix,
        program=f"{sys.prefix}/bin/fairlead",
        settings=" ".join(NOOP),
    )
    command = ("unshare", "--mount", "--pid", "--fork", "sh", "-ec", script)
    variables = {"NOTIFY_SOCKET": address, "HOME": "/mnt", "TMPDIR": "/tmp", "PYTHONPATH": ""}
    with listening(address) as reports, running(command, tmp_path, **variables) as container:
        assert reports.wait_for("READY")["STATUS"].startswith("group connect is up")
        (tini,) = psutil.Process(container.pid).children()
        (node,) = tini.children()
        below = node.children(recursive=True)
        assert {each.uids().real for each in (node, *below)} == {10001}
        (former,) = supervisors(node)
        former.kill()
        deadline = time.monotonic() + 120
        while supervisors(node) in ([], [former]):
            assert time.monotonic() < deadline, "nobody made another supervisor"
            time.sleep(0.1)
        left = [each for each in tini.children(recursive=True) if each.status() == "zombie"]
        assert left == []
        below = tini.children(recursive=True)
        tini.send_signal(signal.SIGTERM)
        reports.wait_for("STOPPING")
        assert container.wait(60) == 0
    assert [each for each in below if runs(each)] == []
    lines = (tmp_path / "output").read_text().splitlines()
    assert lines[-1] == "the node is down (SIGTERM)"
    assert len([line for line in lines if re.match(r"\d{4}-\d\d-\d\d .* INFO ", line)]) > 3


def supervisors(node: psutil.Process) -> list[psutil.Process]:
    """Return the supervisors of a node that run."""
    found: list[psutil.Process] = []
    for each in node.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "fairlead: supervisor" in " ".join(each.cmdline()):
                found.append(each)
    return found
