"""Uploading a file: all of it is stored, or nothing is."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from batches.files.file_object import file_object
from batches.files.new_file import insert_file, new_content
from batches.files.receive import receive_upload
from batches.submission.accept import CreateResponse
from batches.submission.create_context import read_create_context
from batches.submission.replays import store_replay, unless_replayed
from relaybatch.ids import uuid7

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator

    from batches.files.new_file import NewContent
    from batches.files.receive import Upload
    from batches.submission.replays import CreateRequest, ReplayKey
    from relaybatch.http.body.multipart_form import Event
    from routing.credentials.credential import Credential

logger = logging.getLogger(__name__)


def upload_file(
    events: Iterator[Event], *, create: CreateRequest, credential: Credential, max_bytes: int
) -> CreateResponse:
    """Store the file that the form's events bring, and return the response: its file object.

    Raises ReplayedResponse (it came before), Conflict (its Idempotency-Key came with another file), InvalidRequest,
    TooLarge, Forbidden, or Unavailable (the payload store can't take it); nothing is stored then.
    """
    file_id = uuid7()
    with new_content(file_id) as content:
        # Who may not create gets at most the response of an earlier request, for which the digest is enough.
        write = _ignore if credential.denial_code else content.write
        upload = receive_upload(events, write=write, max_bytes=max_bytes)
        # Two that are the same wait for one another from here on, with the content not committed yet.
        with unless_replayed(create, credential, upload.fingerprint()) as replay_key:
            content.commit()
            response = _store_row(
                file_id, upload, content, owner_name=credential.owner, replay_key=replay_key
            )
    logger.info("file stored", extra={"file_id": file_id})
    return response


def _store_row(
    file_id: uuid.UUID, upload: Upload, content: NewContent, *, owner_name: str, replay_key: ReplayKey
) -> CreateResponse:
    context = read_create_context(owner_name)
    with content.row():
        file = insert_file(
            file_id,
            owner_id=context.owner_id,
            purpose="batch",
            filename=upload.filename,
            size_bytes=upload.size_bytes,
            created_at=context.now,
            lifetime_seconds=upload.lifetime_seconds,
        )
        response = CreateResponse(200, msgspec.json.encode(file_object(file)))
        store_replay(context.owner_id, replay_key, status=response.status, body=response.body)
    return response


def _ignore(piece: bytes) -> None:
    pass
