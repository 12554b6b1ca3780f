"""What the demo says when its node does not answer."""

import socket
from pathlib import Path

import pytest

from fairlead.runtime.demo import stage


def test_a_rest_interface_that_does_not_answer_ends_the_demo_with_a_plain_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setattr(stage.Stage, "_rest", url)
        monkeypatch.setattr(stage, "CREATE_SECONDS", 0.2)
        with pytest.raises(stage.DemoFailedError, match="REST interface did not answer: ReadTime"):
            stage.Stage(tmp_path).create_connector()
