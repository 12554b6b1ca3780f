"""Bodies of answers that many readers get as they are: encoded, compressed and tagged once.

The tag is a digest of the body. So it is the same after a restart, and another one for a caller
who sees other connectors.
"""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from ..middleware.answers import GZIP_LEVEL, LEAST_GZIP_BYTES
from ..server.errors import JSON


@dataclass(frozen=True)
class EncodedBody:
    """A body as it is sent."""

    plain: bytes
    kind: str = JSON
    """Its media type."""

    @cached_property
    def tag(self) -> str:
        """Its entity tag."""
        return f'W/"{blake2b(self.plain, digest_size=12).hexdigest()}"'

    @cached_property
    def packed(self) -> bytes:
        """The same by gzip."""
        return gzip.compress(self.plain, GZIP_LEVEL, mtime=0)

    def answer(self, request: Request, own: Mapping[str, str] | None = None) -> Response:
        """Return the answer to a request, with headers of its `own`: 304 if the client has it.

        It may compress the body: for a thread, not for the event loop.
        """
        headers = {"ETag": self.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        headers |= own or {}
        if self.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        is_packed = "gzip" in request.headers.get("accept-encoding", "")
        if not is_packed or len(self.plain) < LEAST_GZIP_BYTES:
            return Response(self.plain, headers=headers, media_type=self.kind)
        headers["Content-Encoding"] = "gzip"
        return Response(self.packed, headers=headers, media_type=self.kind)
