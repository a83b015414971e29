"""Pages of an owner's files, each beginning behind the file of a given id."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from batches.files.file_object import FileList, file_object
from batches.models import File
from batches.models.file import FilePurpose, parse_file_id
from relaybatch.http.query_params import invalid_param

if TYPE_CHECKING:
    import uuid

    from batches.models.file import FileQuerySet
    from relaybatch.http.query_params import QueryParams
    from routing.credentials.credential import Credential

MAX_LIMIT = 10_000
ORDERS = ("asc", "desc")


def list_files(credential: Credential, parameters: QueryParams) -> FileList:
    """Return the page that the parameters ask for. Raises InvalidRequest, also for an unknown cursor."""
    limit = parameters.number("limit", default=MAX_LIMIT, minimum=1, maximum=MAX_LIMIT)
    newest_first = parameters.choice("order", default="desc", among=ORDERS) == "desc"
    purpose = parameters.text("purpose")
    owned = File.objects.listed_for(credential)
    after = _resolve_cursor(owned, parameters.text("after"))
    files = owned.present().page(newest_first=newest_first, after=after)
    if purpose is not None:
        files = files.filter(purpose=purpose) if purpose in get_args(FilePurpose) else files.none()
    found = list(files[: limit + 1])
    data = [file_object(file) for file in found[:limit]]
    return FileList(
        object="list",
        data=data,
        first_id=data[0].id if data else None,
        last_id=data[-1].id if data else None,
        has_more=len(found) > limit,
    )


def _resolve_cursor(owned: FileQuerySet, text: str | None) -> uuid.UUID | None:
    """Return the id of that file. One that is gone for its owner is still found, so that a client can page on after
    deleting."""
    if text is None:
        return None
    file_id = parse_file_id(text)
    if file_id is None or not owned.filter(id=file_id).exists():
        raise invalid_param("after", "the id of a file in this list")
    return file_id
