"""What several tests of this folder read."""

from collections.abc import Iterator

import pytest

from fairlead_tests.shards.recorded import Clients, live


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    """The groups of a shard whose clients have lived; nothing is added to them."""
    data_dir = tmp_path_factory.mktemp("recorded")
    live(data_dir)
    clients = Clients(data_dir)
    yield clients
    clients.close()
