"""`/v1/files`: OpenAI's Files API, for the input and output files of batches.

https://platform.openai.com/docs/api-reference/files
"""

from __future__ import annotations

from typing import Any, get_args

from batches.files.file_object import FileDeleted, FileList, FileObject
from batches.files.listing import MAX_LIMIT, ORDERS
from batches.files.upload_fields import (
    ANCHOR,
    ANCHOR_FIELD,
    MAX_LIFETIME_SECONDS,
    MIN_LIFETIME_SECONDS,
    SECONDS_FIELD,
)
from batches.models.file import INPUT_PURPOSE, FilePurpose
from batches.openapi import examples, submissions
from relaybatch.http.openapi import Content, Operation, Response, header, json_response, query

_TAG = "Files"
_BINARY = {"application/octet-stream": Content(schema={"type": "string", "format": "binary"})}
_FILE = json_response("The file.", FileObject, file=examples.FILE)
_UPLOAD: dict[str, Any] = {
    "title": "FileUpload",
    "type": "object",
    "properties": {
        "file": {
            "type": "string",
            "format": "binary",
            "description": "JSON Lines, 200 MiB at most by default; any name is accepted.",
        },
        "purpose": {"type": "string", "enum": [INPUT_PURPOSE]},
        ANCHOR_FIELD: {"type": "string", "enum": [ANCHOR], "description": "With the seconds only."},
        SECONDS_FIELD: {
            "type": "integer",
            "minimum": MIN_LIFETIME_SECONDS,
            "maximum": MAX_LIFETIME_SECONDS,
            "description": "Seconds from creation to expiry. Without them the file is kept until it is deleted.",
        },
    },
    "required": ["file", "purpose"],
    "dependentRequired": {ANCHOR_FIELD: [SECONDS_FIELD], SECONDS_FIELD: [ANCHOR_FIELD]},
}

_CREATE = Operation(
    method="post",
    path="/v1/files",
    operation_id="create_file",
    tag=_TAG,
    summary="Upload the requests of a batch as a file",
    description="The parts come in any order; unknown ones are ignored.",
    parameters=(submissions.IDEMPOTENCY_KEY,),
    body=Content(schema=_UPLOAD, examples={"file": {"file": "requests.jsonl", "purpose": INPUT_PURPOSE}}),
    body_type="multipart/form-data",
    responses={200: _FILE},
    errors=(403, 409, 411, 413),
)
_LIST = Operation(
    method="get",
    path="/v1/files",
    operation_id="list_files",
    tag=_TAG,
    summary="List the caller's files",
    parameters=(
        query("after", "Only files behind this one in the order asked for."),
        query("limit", "Files on a page.", type="integer", minimum=1, maximum=MAX_LIMIT, default=MAX_LIMIT),
        query(
            "order", "By creation: `desc` is newest first.", type="string", enum=list(ORDERS), default="desc"
        ),
        query("purpose", f"Only files of this purpose: {', '.join(get_args(FilePurpose))}."),
    ),
    responses={
        200: json_response(
            "A page of files.",
            FileList,
            files={
                "object": "list",
                "data": [examples.FILE],
                "first_id": examples.FILE["id"],
                "last_id": examples.FILE["id"],
                "has_more": False,
            },
        )
    },
)
_RETRIEVE = Operation(
    method="get",
    path="/v1/files/{file_id}",
    operation_id="get_file",
    tag=_TAG,
    summary="A file",
    responses={200: _FILE},
    errors=(404,),
)
_CONTENT = Operation(
    method="get",
    path="/v1/files/{file_id}/content",
    operation_id="get_file_content",
    tag=_TAG,
    summary="The bytes of a file",
    description=(
        "Streamed, and compressed where `Accept-Encoding` allows gzip and no range is asked for. Several ranges, or a "
        "malformed one, get all of it."
    ),
    parameters=(
        header("Range", "One range of bytes, as `bytes=0-1023` or `bytes=-500`."),
        header("If-Range", "The `ETag` of an earlier answer: all of the file unless it still fits."),
    ),
    responses={
        200: Response(description="All of the file.", content=_BINARY),
        206: Response(description="The range, which `Content-Range` names.", content=_BINARY),
    },
    errors=(404, 416),
)
_DELETE = Operation(
    method="delete",
    path="/v1/files/{file_id}",
    operation_id="delete_file",
    tag=_TAG,
    summary="Delete a file",
    description="A batch that was created from it, or that wrote it, is not affected.",
    responses={
        200: json_response(
            "The file is deleted.",
            FileDeleted,
            file={"id": examples.FILE["id"], "object": "file", "deleted": True},
        )
    },
    errors=(404,),
)

OPERATIONS = (_CREATE, _LIST, _RETRIEVE, _CONTENT, _DELETE)
