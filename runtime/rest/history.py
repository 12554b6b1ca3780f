"""What became of a group's epochs, read from its log: a line for each, or one in full."""

from typing import Annotated, Final, Literal

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse

from ...projections.explanation import NotToldError
from .errors import not_found
from .replies import known
from .service import Served

router = APIRouter(tags=["groups"])
LINES: Final = 50
LINES_MAX: Final = 10_000
Limit = Annotated[int, Query(ge=1, le=LINES_MAX, description="How many epochs, the last ones.")]
Epoch = Annotated[int | Literal["latest"], Path(description="A group epoch, or `latest`.")]


@router.get("/groups/{group}/history")
def get_history(service: Served, group: str, limit: Limit = LINES) -> JSONResponse:
    """List a group's last epochs: cause, who asked, how much moved, how long it took.

    `first_epoch` is the first that the log tells of, `is_trimmed` whether there were others
    before. What a target changed is counted at the last of the epochs that it answers.
    """
    known(service, group)
    with service.logs.reading(group) as logs:
        return JSONResponse(logs.history(limit).to_json())


@router.get("/groups/{group}/explain/{epoch}")
def explain_epoch(service: Served, group: str, epoch: Epoch) -> JSONResponse:
    """Explain one epoch: its cause, its answer, each phase, and each resource that moved.

    An epoch that the log does not tell of is a 404 that says of which ones it does.
    """
    known(service, group)
    with service.logs.reading(group) as logs:
        try:
            found = logs.explain(None if epoch == "latest" else epoch)
        except NotToldError as untold:
            raise not_found(str(untold)) from None
        return JSONResponse(found.to_json())
