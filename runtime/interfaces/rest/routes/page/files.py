"""The routes of the page's own files, and of the root: the page for browsers, JSON for others.

The page names its files below a digest of all of them. So a browser asks for each once in its life,
and a page never has files of two versions.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import blake2b
from html import escape
from http import HTTPStatus
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from .....security.rights import Right
from ....replies.live.state import ConnectorRow, PageVerdict
from ....replies.node import ServerInfo
from ...commands.service import CallerAccess, Served
from ...reading.encoded import EncodedBody
from ...server.bodies import negotiate
from ...server.errors import ApiError, error_reply, not_found
from ...server.permissions import ANYBODY, Reach, RouteRights
from ...server.routing import Routes, encode
from ..node.health import describe_server

routes = Routes("page")
FOLDER: Final = Path(__file__).parents[3] / "page"
INDEX: Final = "index.html"
HTML: Final = "text/html"
_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css",
    ".html": HTML,
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".svg": "image/svg+xml",
}
"""By suffix; other files are texts."""
GUARDS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none';"
        " form-action 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""The headers that keep others out of the page."""
_LASTING: Final = {**GUARDS, "Cache-Control": "max-age=31536000, immutable"}
"""The same for a file below the digest."""
CONTENT: Final = "{content}"
"""The place in the page for what is shown before its script runs, or without it."""
PRELOAD: Final = '<link rel="preload" href="state" as="fetch" crossorigin>'
"""What has a browser ask for the data before it has read the script."""
UNREAD: Final = '<p class="sub">Reading the state of the node …</p>'
"""What is shown as long as the node has not read its group."""
_HEADS: Final = ("Connector", "State", "Tasks", "Rows/s", "Reason")


@cache
def page_files() -> Mapping[str, EncodedBody]:
    """Return the files of the page, by their path in its folder."""
    files = (each for each in FOLDER.rglob("*") if each.is_file())
    return {each.relative_to(FOLDER).as_posix(): _read(each) for each in files}


def _read(file: Path) -> EncodedBody:
    return EncodedBody(file.read_bytes(), _TYPES.get(file.suffix, "text/plain"))


@cache
def _digest() -> str:
    """Return a digest of all files and their names."""
    digest = blake2b(digest_size=8)
    for name, file in sorted(page_files().items()):
        digest.update(b"%b %b\n" % (name.encode(), file.tag.encode()))
    return digest.hexdigest()


def public_paths() -> Iterator[str]:
    """Yield the paths of all files: they hold no data, so anybody may read them."""
    return (f"/ui/{below}{name}" for name in page_files() for below in ("", f"{_digest()}/"))


@routes.add(
    "GET /",
    RouteRights(Right.VIEW, Reach.NEUTRAL),
    also={HTTPStatus.OK: ServerInfo},
)
def get_root(service: Served, access: CallerAccess, request: Request) -> Response:
    """Return the version of Connect's API that is spoken, fairlead's, and the cluster's id.

    A browser, which accepts HTML, gets the page instead.
    """
    if not _wants_page(request):
        negotiate(request, is_read=False)
        answer = encode(describe_server(service))
        answer.headers["Vary"] = "Accept"
        return answer
    view = service.page.view_of(access)
    if view is None:
        return answer_page(UNREAD)
    rows = {name: each.row for name, each in view.rows.items()}
    return answer_page(describe_page(view.verdict, rows))


def refuse_stranger(request: Request, refused: ApiError) -> Response:
    """Answer a caller who is not known: a browser gets a page that asks for a token."""
    if request.url.path != "/" or not _wants_page(request):
        return error_reply(refused.status, refused.message)
    # The script asks for no data: each request for it might make the browser ask, too.
    page = answer_page(
        f'<h1 id="stranger">Who are you?</h1>\n<p>{escape(refused.message)}</p>', PRELOAD
    )
    page.status_code = refused.status
    return page


def _wants_page(request: Request) -> bool:
    return INDEX in page_files() and HTML in request.headers.get("accept", "")


def answer_page(content: str, without: str = "") -> Response:
    """Return the page, with what is in it before its script runs, and `without` a text of it."""
    index = page_files()[INDEX].plain.decode().replace(without, "")
    index = index.replace('"ui/', f'"ui/{_digest()}/')
    headers = {**GUARDS, "Vary": "Accept"}
    return Response(index.replace(CONTENT, content), headers=headers, media_type=HTML)


@routes.add("GET /ui/{file:path}", ANYBODY, errors=(HTTPStatus.NOT_FOUND,))
def get_page_file(file: str, request: Request) -> Response:
    """Return a file of the page; it holds no data of the node."""
    digest, _, name = file.partition("/")
    is_lasting = digest == _digest()
    content = page_files().get(name if is_lasting else file)
    if content is None:
        raise not_found(f"the page has no file {file}")
    return content.answer(request, _LASTING if is_lasting else GUARDS)


def describe_page(verdict: PageVerdict, connectors: Mapping[str, ConnectorRow]) -> str:
    """Return the verdict as HTML, and the connectors for a browser without JavaScript.

    A browser shows the verdict before it has the script and the data.
    """
    heads = "".join(f"<th>{each}</th>" for each in _HEADS)
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{each.state}</td><td>{len(each.cells)}</td>"
        f"<td>{each.rows_per_second:g}</td><td>{escape(each.reason)}</td></tr>\n"
        for name, each in sorted(connectors.items())
    )
    return (
        f'<h1>{escape(verdict.title)}</h1>\n<p class="sub">{escape(verdict.text)}</p>\n'
        f"<noscript>\n<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>"
        "\n</noscript>"
    )
