"""The routes for requests between Connect workers (KIP-507), signed with a shared session key.

Workers here communicate as actors, so there is no session key and no signature is valid: the
responses are those of a Connect worker to an unauthorised client.
"""

from http import HTTPStatus
from typing import Final

from starlette.requests import Request

from .....security.rights import Right
from ...server.errors import ApiError
from ...server.routing import Routes

routes = Routes("connectors")
SIGNATURE: Final = "x-connect-authorization"
ALGORITHM: Final = "x-connect-request-signature-algorithm"
_ALGORITHMS: Final = frozenset(
    f"hmac{each}" for each in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")
)
DEFAULT: Final = "HmacSHA256"
_OTHER: Final = (
    "This worker does not support the '{}' key signing algorithm used by other workers. This worker"
    " is currently configured to use: [{}]. Check that all workers' configuration files permit the"
    " same set of signature algorithms, and correct any misconfigured worker and restart it."
)
REFUSALS: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN)


@routes.add(
    "POST /connectors/{connector}/tasks",
    Right.ADMINISTER,
    status=HTTPStatus.NO_CONTENT,
    errors=REFUSALS,
)
def put_task_configs(request: Request, connector: str) -> None:
    """Refuse task configs: a connector reports them through its worker."""
    del connector
    raise _refusal(request)


@routes.add(
    "PUT /connectors/{connector}/fence",
    Right.ADMINISTER,
    status=HTTPStatus.NO_CONTENT,
    errors=REFUSALS,
)
def fence_zombies(request: Request, connector: str) -> None:
    """Refuse to fence tasks: fencing tokens do that."""
    del connector
    raise _refusal(request)


def _refusal(request: Request) -> ApiError:
    algorithm = request.headers.get(ALGORITHM)
    if algorithm is None or SIGNATURE not in request.headers:
        told = "Internal request missing required signature"
        return ApiError(HTTPStatus.BAD_REQUEST, told)
    if algorithm.lower() not in _ALGORITHMS:
        return ApiError(HTTPStatus.BAD_REQUEST, f"Algorithm {algorithm} not available")
    if algorithm != DEFAULT:
        return ApiError(HTTPStatus.BAD_REQUEST, _OTHER.format(algorithm, DEFAULT))
    return ApiError(HTTPStatus.FORBIDDEN, "Internal request contained invalid signature.")
