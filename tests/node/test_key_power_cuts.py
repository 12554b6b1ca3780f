"""Whatever a power cut leaves of a data folder, a key that was given out is there, and no other."""

from pathlib import Path

import pytest

from fairlead.events.entries.codec import CONTROL
from fairlead.events.log.writer import GroupLog
from fairlead.runtime.cluster.node_files import write_private
from fairlead.runtime.cluster.run_folder import RunFolder
from fairlead_tests.power_cuts import PowerCuts


def test_a_key_and_a_node_id_that_were_given_out_outlive_a_power_cut(tmp_path: Path) -> None:
    data_dir = tmp_path / "deep" / "data"
    with PowerCuts(tmp_path, ("", b"")) as cuts:
        folder = RunFolder(data_dir)
        folder.claim()
        node = folder.node_id()
        cuts.promise((node, b""))
        key = folder.key()
        cuts.promise((node, key))
        folder.release()
    for known, given in cuts.replayed():
        again = RunFolder(data_dir)
        again.claim()
        assert again.node_id() == (known or again.node_id())
        assert again.key() == (given or again.key())
        again.release()


def test_a_power_cut_never_leaves_a_log_whose_key_is_gone(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with PowerCuts(tmp_path, b"", ("data.mdb",)) as cuts:
        folder = RunFolder(data_dir)
        folder.claim()
        key = folder.key()
        folder.release()
        log = data_dir / "groups" / "connect" / "control"
        GroupLog.open_writer(log, "connect", CONTROL).close()
        cuts.promise(key)
    for given in cuts.replayed():
        again = RunFolder(data_dir)
        again.claim()
        if given:
            assert (log / "data.mdb").exists()
        assert again.key() == (given or again.key())  # else: it is gone, and there are logs
        again.release()


@pytest.mark.parametrize("is_durable", [True, False])
def test_a_file_of_a_node_is_replaced_as_a_whole_or_not_at_all(
    tmp_path: Path, is_durable: bool
) -> None:
    path = tmp_path / "node.json"
    write_private(path, b"old", is_durable=True)
    with PowerCuts(tmp_path, {b"old"}) as cuts:
        cuts.promise({b"old", b"new"})
        write_private(path, b"new", is_durable=is_durable)
        cuts.promise({b"new"} if is_durable else {b"old", b"new"})
    for may_be in cuts.replayed():
        # What a node writes anew at its next start may be empty after a power cut.
        assert path.read_bytes() in may_be | (set() if is_durable else {b""})
