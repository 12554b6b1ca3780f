"""The certificates and the key that nodes of a cluster have in common, made by openssl."""

import secrets
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ..stage import DemoFailedError

NODE: Final = "fairlead-node"
_CURVE: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def missing_openssl() -> str:
    """Return what mends it if openssl is missing; "" if it is there."""
    return "" if shutil.which("openssl") else "openssl: apt-get install openssl"


def make_credentials(folder: Path) -> Mapping[str, str]:
    """Make an authority, a certificate for all nodes and the cluster's key in a new folder.

    Returns the settings that name them. Raises `DemoFailedError`.
    """
    folder.mkdir(mode=0o700, parents=True)
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    authority = ["-subj", "/CN=authority of the demo", "-keyout", "ca.key", "-out", "ca.pem"]
    _openssl(folder, "req", "-x509", *_CURVE, "-days", "2", *authority)
    request = ["-subj", f"/CN={NODE}", "-keyout", "node.key", "-out", "node.csr"]
    _openssl(folder, "req", *_CURVE, *request)
    signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names"]
    _openssl(folder, "x509", "-req", "-in", "node.csr", *signed, "-days", "2", "-out", "node.crt")
    own, key = folder / "node.pem", folder / "cluster.key"
    for each in (own, key):
        each.touch(mode=0o600)
    own.write_text((folder / "node.key").read_text() + (folder / "node.crt").read_text())
    key.write_bytes(secrets.token_bytes(32))
    return {
        "cluster.key.file": str(key),
        "kafka.ssl.keystore.location": str(own),
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.truststore.location": str(folder / "ca.pem"),
        "kafka.ssl.truststore.type": "PEM",
        "members.principal": f"User:CN={NODE}",
    }


def _openssl(folder: Path, *words: str) -> None:
    ran = subprocess.run(  # noqa: S603 - a program of the system, no shell
        ["openssl", *words],  # noqa: S607 - wherever the system has it
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise DemoFailedError(f"openssl {words[0]}: {ran.stderr.strip()}")
