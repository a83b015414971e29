"""The files collection over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpResponse, StreamingHttpResponse
from django.utils.cache import patch_vary_headers
from django.utils.http import content_disposition_header
from msgspec import json
from rest_framework.viewsets import GenericViewSet

from batches.api_view import CreatingView
from batches.dialects.dialect_response import JSON_CONTENT_TYPE
from batches.files.content import open_content
from batches.files.file_object import FileDeleted, file_object
from batches.files.input_file import find_file
from batches.files.listing import list_files
from batches.files.remove import delete_file
from batches.files.upload import upload_file
from batches.models import File
from batches.submission.replays import CreateRequest, check_before_body
from relaybatch.http.body.body_limits import MAX_FORM_PARTS_BYTES
from relaybatch.http.body.multipart_form import parse_form
from relaybatch.http.body.request_body import decoded_chunks
from relaybatch.http.byte_range import UnsatisfiableRange, parse_range
from relaybatch.http.error_responses import error_response
from relaybatch.http.errors import NotFound, RangeNotSatisfiable, TooLarge
from relaybatch.http.query_params import QueryParams
from relaybatch.http.streaming import accepts_gzip, compress

if TYPE_CHECKING:
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

    from relaybatch.http.byte_range import ByteRange

CONTENT_TYPE = "application/octet-stream"
# Each takes up to twelve bytes in a header, and proxies have room for a few thousand.
MAX_SENT_NAME_CHARACTERS = 150


class UploadTooLarge(TooLarge):
    """Names the limit of a file, which is what there is to know; the body's is a little higher."""

    def __init__(self, message: str, *, code: str | None = None, param: str | None = None) -> None:  # noqa: ARG002
        limit_bytes = settings.RELAY_MAX_FILE_BYTES
        super().__init__(
            f"The body is too large: a file has at most {limit_bytes} bytes.", code=code, param=param
        )


class FileViewSet(CreatingView, GenericViewSet[File]):
    """`/v1/files`. Other people's files, unknown, deleted and expired ones and malformed ids are all the same 404."""

    def create(self, request: Request) -> HttpResponseBase:
        create = CreateRequest.of(request)
        check_before_body(create, self.credential)
        max_bytes = settings.RELAY_MAX_FILE_BYTES
        chunks = decoded_chunks(
            request, limit_bytes=max_bytes + MAX_FORM_PARTS_BYTES, too_large=UploadTooLarge
        )
        events = parse_form(chunks, content_type=request.META.get("CONTENT_TYPE", ""))
        stored = upload_file(events, create=create, credential=self.credential, max_bytes=max_bytes)
        return HttpResponse(stored.body, status=stored.status, content_type=JSON_CONTENT_TYPE)

    def list(self, request: Request) -> HttpResponseBase:
        return _json_response(list_files(self.credential, QueryParams(request, known=None)))

    def retrieve(self, request: Request, file_id: str) -> HttpResponseBase:  # noqa: ARG002 -- DRF's signature
        return _json_response(file_object(self._get_file(file_id)))

    def content(self, request: Request, file_id: str) -> HttpResponseBase:
        file = self._get_file(file_id)
        try:
            part = _requested_range(request, file)
        except UnsatisfiableRange:
            refused = error_response(request, RangeNotSatisfiable("The file has no bytes in this range."))
            refused["Content-Range"] = f"bytes */{file.size_bytes}"
            return refused
        if part is None and "Range" not in request.headers and accepts_gzip(_accept_encoding(request)):
            return _compressed_response(file)
        return _plain_response(file, part)

    def destroy(self, request: Request, file_id: str) -> HttpResponseBase:  # noqa: ARG002
        file = self._get_file(file_id)
        if not delete_file(file.id):
            raise _no_such_file()
        return _json_response(FileDeleted(id=file.public_id, object="file", deleted=True))

    def _get_file(self, file_id: str) -> File:
        file = find_file(self.credential, file_id)
        if file is None:
            raise _no_such_file()
        return file


def _no_such_file() -> NotFound:
    return NotFound("There is no such file.")


def _json_response(value: object) -> HttpResponse:
    return HttpResponse(json.encode(value), content_type=JSON_CONTENT_TYPE)


def _requested_range(request: Request, file: File) -> ByteRange | None:
    """Return the range of a GET; None for all of the file. Raises UnsatisfiableRange."""
    if request.method != "GET" or request.headers.get("If-Range", _etag(file)) != _etag(file):
        return None
    return parse_range(request.headers.get("Range", ""), size_bytes=file.size_bytes)


def _plain_response(file: File, part: ByteRange | None) -> HttpResponseBase:
    response = StreamingHttpResponse(
        open_content(file, part), status=206 if part else 200, content_type=CONTENT_TYPE
    )
    response["Content-Length"] = str(part.length if part else file.size_bytes)
    response["ETag"] = _etag(file)
    if part:
        response["Content-Range"] = part.content_range(file.size_bytes)
    return _with_common_headers(response, file)


def _compressed_response(file: File) -> HttpResponseBase:
    response = StreamingHttpResponse(compress(open_content(file, None)), content_type=CONTENT_TYPE)
    response["Content-Encoding"] = "gzip"
    # Weak: a range of the compressed bytes is nothing that could be asked for.
    response["ETag"] = f"W/{_etag(file)}"
    return _with_common_headers(response, file)


def _with_common_headers(response: StreamingHttpResponse, file: File) -> HttpResponseBase:
    response["Accept-Ranges"] = "bytes"
    response["Content-Disposition"] = content_disposition_header(
        as_attachment=True, filename=file.filename[:MAX_SENT_NAME_CHARACTERS]
    )
    patch_vary_headers(response, ["Accept-Encoding"])
    return response


def _etag(file: File) -> str:
    """A file's content never changes."""
    return f'"{file.public_id}"'


def _accept_encoding(request: Request) -> str:
    return str(request.headers.get("Accept-Encoding", ""))
