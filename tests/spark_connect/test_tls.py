"""A Spark Connect server behind TLS: who is trusted, who is let in, and what is told if not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead_tests import TESTS
from fairlead_tests.kafka.certificates import Authority
from fairlead_tests.spark_engine import connect_client
from fairlead_tests.spark_engine.connect_server import ConnectServerProcess
from fairlead_tests.spark_engine.tls_proxy import tls_in_front_of

pytestmark = pytest.mark.spark


def ask(folder: Path, roots: Path, *masters: str) -> tuple[list[dict[str, str]], str]:
    """Return what engines of a worker come to, and all that its process has said."""
    trusted = {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(roots), "PYTHONPATH": str(TESTS)}
    ran = subprocess.run(
        [sys.executable, str(connect_client.__file__), str(folder)],
        input="\n".join(masters),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **trusted},
    )
    return [json.loads(line) for line in ran.stdout.splitlines()], ran.stdout + ran.stderr


@pytest.mark.soak
def test_jobs_run_behind_tls_and_who_is_not_trusted_or_not_let_in_is_told_what_to_do(
    server: ConnectServerProcess, tmp_path: Path
) -> None:
    ours, strange = Authority(tmp_path), Authority(tmp_path, "strange")
    with tls_in_front_of(server.port, ours.sign("server")) as port:
        place, token = f"sc://127.0.0.1:{port}", f"token={server.token}"
        right = f"{place}/;use_ssl=true;{token}"
        masters = [
            right,
            f"{place}/;use_ssl=true;token=not-{server.token}",
            f"{place}/;use_ssl=true",
            f"sc://localhost:{port}/;use_ssl=true;{token}",
            f"{place}/;{token}",
            f"sc://127.0.0.1:{server.port}/;use_ssl=true;{token}",
        ]
        found, said = ask(tmp_path, ours.path, *masters)
        (untrusted,), also_said = ask(tmp_path, strange.path, right)
    assert found[0] == {"state": "warm", "detail": f"a session on {place}", "rows": "3"}
    told = [each["detail"].partition(" (")[0].partition(": ")[2] for each in [*found, untrusted]]
    wrong_token = (
        "token=… of spark.master is not the one that it was started with, its own"
        " SPARK_CONNECT_AUTHENTICATE_TOKEN"
    )
    assert told[1:] == [
        wrong_token,
        wrong_token,
        "its certificate is for another name: write that into spark.master",
        "if it speaks TLS there, add use_ssl=true to spark.master",
        "it speaks no TLS there: name another port, or take use_ssl=true away",
        "its certificate is of no authority that this node knows: in the environment of fairlead"
        " up GRPC_DEFAULT_SSL_ROOTS_FILE_PATH names a file of those that are trusted",
    ]
    assert {each["state"] for each in [*found[1:], untrusted]} == {"down"}
    assert server.token not in said + also_said
