"""A node on which a connector refuses rows, and retries them once its transform is mended.

A file has three rows: the first one arrives, and the others are dead letters until then. The retry
reads a row a second, so that a test can kill what runs it meanwhile.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import httpx

from fairlead_tests.monitoring.watched_node import WatchedNode

FILES: Final = 6
LETTERS: Final = 2 * FILES
NUMBERS: Final = sorted(each + number for number in range(FILES) for each in (0, 100, 200))
"""What is in the sink if each row has arrived once."""
PATIENCE_S: Final = 300.0
MENDED: Final = {
    "source.schema": "n STRING",
    "transforms": "mend",
    "transforms.mend.type": "select",
    "transforms.mend.columns": "CAST(replace(n, ' min', '') AS INT) AS n",
    "rate.limit.rows.per.second": "1",
}


class LateLetters:
    """The connector `late` of a node, and `late-retry`."""

    def __init__(self, home: WatchedNode, more: Mapping[str, str]) -> None:
        self._home = home
        self._config = {
            "connector.class": "SparkPipeline",
            "source.format": "csv",
            "source.schema": "n INT",
            "source.path": str(home.folder / "late"),
            "source.max.files.per.batch": "1",
            "errors.tolerance": "all",
            **more,
        }

    def refuse(self) -> None:
        """Write the files, and wait until all that is bad in them is a dead letter."""
        folder = Path(self._config["source.path"])
        folder.mkdir()
        for number in range(FILES):
            rows = f"n\n{number}\n{100 + number} min\n{200 + number} min\n"
            (folder / f"{number}.csv").write_text(rows)
        self._put(self._config)
        self.wait_for("late", "dead_letters", LETTERS)

    def mend(self) -> None:
        """Give the connector the transform that takes all rows."""
        self._put(self._config | MENDED)

    def retry(self) -> None:
        """Mend the transform, begin the retry, and wait until it has ended a batch."""
        self.mend()
        path = f"{self._home.url}/connectors/late/dead-letters/retry"
        assert httpx.post(path, timeout=60).status_code == httpx.codes.CREATED
        self.begin()

    def begin(self) -> None:
        """Wait until the retry has ended a batch."""
        self.wait_for("late-retry", "batches", 1)

    def kill_worker(self) -> None:
        """Kill the worker of the retry's task, which is not at its end yet."""
        assert self._progress("late-retry")[0]["rows_out"] < LETTERS
        path = f"{self._home.url}/connectors/late-retry/status"
        (task,) = httpx.get(path, timeout=60).json()["tasks"]
        self._home.node.hit(f"worker {task['worker_id'].rpartition('/')[2]}")

    def kill_node(self) -> None:
        """Kill all processes of the node, with the retry not at its end yet, and start it again."""
        assert self._progress("late-retry")[0]["rows_out"] < LETTERS
        self._home.kill()
        self._home.up()

    def end(self) -> None:
        """Wait until the retry has written all letters."""
        self.wait_for("late-retry", "rows_out", LETTERS)

    def wait_for(self, connector: str, count: str, least: int) -> None:
        """Wait until a count of the connector's only task is as large, and all is published."""
        deadline = time.monotonic() + PATIENCE_S
        tasks = []
        while time.monotonic() < deadline:
            tasks = self._progress(connector)
            if any(each[count] >= least and not each["unpublished"] for each in tasks):
                return
            time.sleep(0.2)
        raise AssertionError(tasks)

    def _progress(self, connector: str) -> list[dict[str, int]]:
        url = f"{self._home.url}/connectors/{connector}/progress"
        try:
            answer = httpx.get(url, timeout=60).json()
        except httpx.TransportError:
            return []  # the node comes up again
        return list(answer.get("tasks", ()))

    def _put(self, config: Mapping[str, str]) -> None:
        path = f"{self._home.url}/connectors/late/config"
        assert httpx.put(path, json=dict(config), timeout=60).is_success
