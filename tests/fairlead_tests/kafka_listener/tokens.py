"""An identity provider for tests: its keys as a file, and the tokens that it signs."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

ISSUER, AUDIENCE = "https://id.example", "fairlead"


@dataclass
class Provider:
    """A provider whose keys lie in a folder."""

    folder: Path
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def __post_init__(self) -> None:
        algorithm = jwt.get_algorithm_by_name("ES256")
        jwk = json.loads(algorithm.to_jwk(self.key.public_key()))
        self.jwks = self.folder / "jwks.json"
        self.jwks.write_text(json.dumps({"keys": [{**jwk, "kid": "k", "alg": "ES256"}]}))

    def sign(self, **claims: Any) -> str:
        """Return a token for ann that ends in ten minutes, but for these claims."""
        usual = {"iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 600, "sub": "ann"}
        token: str = jwt.encode({**usual, **claims}, self.key, "ES256", {"kid": "k"})
        return token


def bearer(token: str, header: str = "n,,", more: str = "") -> bytes:
    """Return the message of OAUTHBEARER."""
    return f"{header}\x01auth=Bearer {token}\x01{more}\x01".encode()
