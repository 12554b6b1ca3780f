"""Tokens that an identity provider has signed, checked here by its keys.

A token is a JWT. It counts if one of the provider's keys has signed it, by an algorithm with a
public key, and if issuer, audience and times are right. The keys are a JWKS document, of a file or
an https URL. They are read again each hour, and for a key that they do not have, but for that once
a minute at most: so tokens with invented keys cost nobody a request. If the document cannot be
read, the keys before it stay.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

import jwt

from ..followed_files import FileRefused, read_owned
from ..settings import BearerRefusedError

LOGGER = logging.getLogger(__name__)
ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""Those with a public key: whoever can check a token must not be able to make one."""
KEPT_SECONDS: Final = 3_600.0
AGAIN_SECONDS: Final = 60.0
FETCH_SECONDS: Final = 5.0
LARGEST_BYTES: Final = 1 << 20
LONGEST_SHOWN: Final = 200
"""The number of characters of a key's id that an error has."""
UNREADABLE: Final = (
    OSError,
    FileRefused,
    HTTPException,
    ValueError,
    TypeError,
    AttributeError,
    RecursionError,
)
"""Errors of what is no document of keys, or cannot be reached."""
REQUIRED: Final = ["exp", "iss", "aud"]


class SignedTokens:
    """Verifies the tokens of one provider."""

    def __init__(
        self,
        jwks: str,
        issuer: str,
        audiences: Sequence[str],
        leeway_seconds: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read keys from `jwks`; tokens are for one of `audiences`, clocks may differ by leeway."""
        self._keys = ProviderKeys(jwks, clock)
        self._issuer, self._audiences, self._leeway = issuer, audiences, leeway_seconds

    async def verify(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token; raises `BearerRefusedError` with the reason."""
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS:
                raise BearerRefusedError(f"its algorithm is {header.get('alg')!a}")
            key = await self._keys.find(header.get("kid"))
            claims: Mapping[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                audience=self._audiences,
                issuer=self._issuer,
                leeway=self._leeway,
                options={"require": REQUIRED},
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise BearerRefusedError(str(error) or type(error).__name__) from None
        return claims


class ProviderKeys:
    """The public keys of a provider, by their ids."""

    def __init__(self, place: str, clock: Callable[[], float]) -> None:
        """Read them from a file, or from a URL, when the first one is needed."""
        self._place, self._clock = place, clock
        self._keys: Mapping[str | None, jwt.PyJWK] = {}
        self._read_at = -KEPT_SECONDS
        """When they were read last, or tried to be."""
        self._turn = asyncio.Lock()

    async def find(self, key_id: object) -> jwt.PyJWK:
        """Return a key; without an id the only one. Raises `BearerRefusedError`."""
        if self._is_due(key_id):
            async with self._turn:
                if self._is_due(key_id):  # and not read while this one waited
                    await asyncio.to_thread(self._read)
                    self._read_at = self._clock()
        key = self._pick(key_id)
        if key is None:
            raise BearerRefusedError(f"its key {ascii(key_id)[:LONGEST_SHOWN]} is unknown")
        return key

    def _is_due(self, key_id: object) -> bool:
        """Return whether keys are to be read; whoever has a known one does not wait meanwhile."""
        age = self._clock() - self._read_at
        return age >= KEPT_SECONDS or (self._pick(key_id) is None and age >= AGAIN_SECONDS)

    def _pick(self, key_id: object) -> jwt.PyJWK | None:
        if key_id is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(key_id) if isinstance(key_id, str) else None

    def _read(self) -> None:
        """Read the keys; if that fails, those before stay."""
        try:
            document = json.loads(self._load())
            keys = [each for each in jwt.PyJWKSet.from_dict(document).keys if _is_public(each)]
        except (*UNREADABLE, jwt.PyJWTError) as error:
            LOGGER.error(  # noqa: TRY400  # it says all
                "the keys of the identity provider cannot be read from %s (%s): %s",
                self._place,
                error,
                "those before count on" if self._keys else "its tokens are refused",
            )
        else:
            self._keys = {each.key_id: each for each in keys}

    def _load(self) -> bytes:
        if "://" not in self._place:
            return read_owned(Path(self._place), is_secret=False)
        opener = _make_opener()
        request = Request(self._place, headers={"Accept": "application/json"})  # noqa: S310  # checked with the settings
        with opener.open(request, timeout=FETCH_SECONDS) as answer:
            content: bytes = answer.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise ValueError(f"it has more than {LARGEST_BYTES} bytes")
        return content


def _make_opener() -> OpenerDirector:
    """Open URLs without following redirects, which might lead where nobody has set."""
    opener = OpenerDirector()
    for each in (
        ProxyHandler(),
        HTTPHandler(),
        HTTPSHandler(),
        HTTPDefaultErrorHandler(),
        HTTPErrorProcessor(),
    ):
        opener.add_handler(each)
    return opener


def _is_public(key: jwt.PyJWK) -> bool:
    algorithm: str = key.algorithm_name
    return algorithm in ALGORITHMS and key.public_key_use != "enc"
