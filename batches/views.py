"""The batch collections over HTTP. A dialect says what a body means; the core does what follows."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from django.http import HttpResponse
from rest_framework.viewsets import GenericViewSet

from batches.api_view import CreatingView
from batches.completion.cancel import cancel_batch
from batches.completion.delete import delete_batch
from batches.dialects import CHAT, DIALECTS, MESSAGES, OPENAI, RELAY
from batches.dialects.body_parser import parse_body
from batches.dialects.detection import detect_dialect
from batches.dialects.dialect_response import JSON_CONTENT_TYPE
from batches.dialects.http_response import to_http_response
from batches.dialects.request_context import RequestContext
from batches.models import Batch
from batches.models.public_ids import parse_batch_id, public_id
from batches.submission.accept import accept_batch
from batches.submission.failed_item_filter import parse_item_filter
from batches.submission.replays import CreateRequest, check_before_body, unless_replayed
from batches.submission.resubmit import build_resubmission
from relaybatch.db.snapshot import one_snapshot
from relaybatch.http.body.body_limits import MAX_ITEM_FILTER_BYTES
from relaybatch.http.body.json_scan import too_deep
from relaybatch.http.body.request_body import body_too_large, read_body
from relaybatch.http.errors import InvalidRequest, NotFound, TooLarge
from relaybatch.http.public_url import public_origin
from relaybatch.http.query_params import QueryParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

    from batches.dialects import Dialect
    from batches.dialects.body_parser import SubmissionBody
    from batches.models.batch import BatchQuerySet
    from batches.submission.replays import ReplayKey
    from batches.submission.submission import Submission
    from relaybatch.http.errors import ApiError


class BatchViewSet(CreatingView, GenericViewSet[Batch]):
    """`/v1/batches`. Other people's batches, unknown ids and malformed ones are all the same 404."""

    dialects: tuple[Dialect, ...] = (RELAY, CHAT, OPENAI)
    too_large_error: type[ApiError] = InvalidRequest

    def submitted_dialect(self, parsed: SubmissionBody) -> Dialect:
        return detect_dialect(parsed)

    def listed_dialects(self, parameters: QueryParams) -> tuple[Dialect, ...]:
        """The dialect that the query asks for. By default, those with OpenAI's batch object, which share a list."""
        name = parameters.choice("dialect", default="", among=["", *(one.name for one in self.dialects)])
        return (DIALECTS[name],) if name else (OPENAI, CHAT)

    def get_queryset(self) -> BatchQuerySet:
        visible = Batch.objects.visible_to(self.credential)
        return visible.of_dialect(*(dialect.name for dialect in self.dialects)).select_related("owner")

    def create(self, request: Request) -> HttpResponseBase:
        max_bytes = max(dialect.max_body_bytes() for dialect in self.dialects)
        with self._receive_creation(request, limit_bytes=max_bytes) as (body, replay_key):
            parsed = parse_body(body)
            dialect = self.submitted_dialect(parsed)
            if len(body) > dialect.max_body_bytes():
                raise body_too_large(self.too_large_error, limit_bytes=dialect.max_body_bytes())
            try:
                submission = dialect.parse_submission(parsed, self._context)
            except RecursionError:  # the interpreter's own limit may be nearer than ours
                raise too_deep() from None
            return self._accept(submission, dialect, replay_key)

    def list(self, request: Request) -> HttpResponseBase:
        context = self._context
        dialects = self.listed_dialects(context.parameters)
        names = [dialect.name for dialect in dialects]
        owned = Batch.objects.listed_for(self.credential).of_dialect(*names).select_related("owner")
        with one_snapshot():
            response = dialects[0].render_list(owned, context)
        return to_http_response(response, request)

    def retrieve(self, request: Request, batch_id: str) -> HttpResponseBase:
        with one_snapshot():
            batch, dialect = self._get_batch(batch_id)
            response = dialect.render_status(batch, self._context)
        return to_http_response(response, request)

    def results(self, request: Request, batch_id: str) -> HttpResponseBase:
        batch, dialect = self._get_batch(batch_id)
        return to_http_response(dialect.render_results(batch, self._context), request)

    def cancel(self, request: Request, batch_id: str) -> HttpResponseBase:
        changed = cancel_batch(self._get_batch(batch_id)[0])
        with one_snapshot():
            batch, dialect = self._get_batch(batch_id)
            response = dialect.render_cancelled(batch, self._context, changed=changed)
        return to_http_response(response, request)

    def destroy(self, request: Request, batch_id: str) -> HttpResponseBase:
        batch, dialect = self._get_batch(batch_id)
        delete_batch(batch)
        return to_http_response(dialect.render_deleted(batch), request)

    def retry(self, request: Request, batch_id: str) -> HttpResponseBase:
        with self._receive_creation(request, limit_bytes=MAX_ITEM_FILTER_BYTES) as (body, replay_key):
            batch, dialect = self._get_batch(batch_id)
            submission = build_resubmission(batch, parse_item_filter(body, batch))
            return self._accept(submission, dialect, replay_key)

    @contextlib.contextmanager
    def _receive_creation(
        self, request: Request, *, limit_bytes: int
    ) -> Iterator[tuple[memoryview, ReplayKey]]:
        """Read the body of a creation, and check that the caller may create.

        Raises ReplayedResponse for a request that came before, under the same key or resent by an SDK: it gets the
        response of then, whatever has changed since.
        """
        create = CreateRequest.of(request)
        check_before_body(create, self.credential)
        body = read_body(request, limit_bytes=limit_bytes, too_large=self.too_large_error)
        with unless_replayed(create, self.credential, body) as replay_key:
            yield body, replay_key

    def _accept(self, submission: Submission, dialect: Dialect, replay_key: ReplayKey) -> HttpResponseBase:
        accepted = accept_batch(
            submission, credential=self.credential, replay_key=replay_key, render=dialect.render_created
        )
        return HttpResponse(accepted.body, status=accepted.status, content_type=JSON_CONTENT_TYPE)

    @property
    def _context(self) -> RequestContext:
        request = self.request
        return RequestContext(
            parameters=QueryParams(request, known=None),
            headers=request.headers,
            origin=lambda: public_origin(request),
        )

    def _get_batch(self, batch_id: str) -> tuple[Batch, Dialect]:
        row_id = parse_batch_id(batch_id)
        batch = self.get_queryset().filter(id=row_id).first() if row_id else None
        if batch is None or public_id(batch.dialect, batch.id) != batch_id:
            raise NotFound("There is no such batch.")
        return batch, DIALECTS[batch.dialect]


class MessageBatchViewSet(BatchViewSet):
    """`/v1/messages/batches`: a collection of its own, whose batches the other one does not know."""

    dialects = (MESSAGES,)
    too_large_error = TooLarge

    def submitted_dialect(self, parsed: SubmissionBody) -> Dialect:  # noqa: ARG002 -- the path says it
        return MESSAGES

    def listed_dialects(self, parameters: QueryParams) -> tuple[Dialect, ...]:  # noqa: ARG002
        return (MESSAGES,)
