"""The batch collections over HTTP. What a body means is a dialect's to say, what happens then the core's."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, cast

from django.http import HttpResponse
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from batches import schema
from batches.accept import accept_batch
from batches.answers import http_answer
from batches.body import read_body
from batches.cancel import cancel_batch
from batches.delete import delete_batch
from batches.dialects import DIALECTS, RELAY
from batches.dialects.answer import JSON
from batches.dialects.detection import detected
from batches.dialects.ids import batch_id_from, public_id
from batches.dialects.wire import read_wire
from batches.idempotency import Idempotency
from batches.models import Batch
from batches.retry import read_selection, retry_submission
from relaybatch.errors import InvalidRequest, MethodNotAllowed, NotFound
from routing.credentials import require_creation
from usage.parameters import Parameters

if TYPE_CHECKING:
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

    from batches.dialects import Dialect
    from batches.models.batch import BatchQuerySet
    from batches.submission import Submission
    from routing.credentials import Credential

# A list of 50,000 items by `idx` or by long ids.
LARGEST_SELECTION_BYTES = 33_554_432
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


class MessageBatches(APIView):
    """The collection's place is kept: a client learns why, where a 404 would look like a wrong address."""

    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise InvalidRequest("Message Batches are not served yet; POST /v1/batches is.", code="not_served")


class BatchViewSet(GenericViewSet[Batch]):
    """`/v1/batches`. Other people's batches, unknown ids and malformed ones are all the same 404."""

    dialects: tuple[Dialect, ...] = (RELAY,)
    http_method_names = ["get", "post", "delete", "head"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """A wrong method is told to anybody, before any credential is asked for."""
        if str(request.method).lower() not in self.action_map:
            raise MethodNotAllowed(f"{request.method} is not allowed here.")
        super().initial(request, *args, **kwargs)

    def get_queryset(self) -> BatchQuerySet:
        visible = Batch.objects.visible_to(self._credential)
        return visible.of_dialect(*(dialect.name for dialect in self.dialects)).select_related("owner")

    @schema.CREATE
    def create(self, request: Request) -> HttpResponseBase:
        require_creation(self._credential)
        idempotency_key = _idempotency_key(request)
        largest = max(dialect.max_body_bytes() for dialect in self.dialects)
        body = read_body(request, limit_bytes=largest, too_large=InvalidRequest)
        wire = read_wire(body)
        dialect = detected(wire)
        submission = dialect.submission(wire, headers=request.headers)
        return self._accepted(
            submission, dialect, _idempotency(idempotency_key, path=request.path_info, body=body)
        )

    @schema.LIST
    def list(self, request: Request) -> HttpResponseBase:
        parameters = Parameters(request, known=None)
        wanted = parameters.choice("dialect", default="", among=[dialect.name for dialect in self.dialects])
        if not wanted:
            raise InvalidRequest(
                "Only Relay's batches can be listed yet: add ?dialect=relay.",
                code="not_served",
                param="dialect",
            )
        dialect = DIALECTS[wanted]
        return http_answer(dialect.listed(self.get_queryset().of_dialect(dialect.name), parameters), request)

    @schema.RETRIEVE
    def retrieve(self, request: Request, batch_id: str) -> HttpResponseBase:
        batch, dialect = self._batch(batch_id)
        return http_answer(dialect.shown(batch, Parameters(request, known=None)), request)

    @schema.RESULTS
    def results(self, request: Request, batch_id: str) -> HttpResponseBase:
        batch, dialect = self._batch(batch_id)
        return http_answer(dialect.results(batch, Parameters(request, known=None)), request)

    @schema.CANCEL
    def cancel(self, request: Request, batch_id: str) -> HttpResponseBase:
        batch, dialect = self._batch(batch_id)
        cancel_batch(batch)
        return http_answer(dialect.cancelled(batch), request)

    @schema.DELETE
    def destroy(self, request: Request, batch_id: str) -> HttpResponseBase:
        batch, dialect = self._batch(batch_id)
        delete_batch(batch)
        return http_answer(dialect.deleted(batch), request)

    @schema.RETRY
    def retry(self, request: Request, batch_id: str) -> HttpResponseBase:
        require_creation(self._credential)
        idempotency_key = _idempotency_key(request)
        batch, dialect = self._batch(batch_id)
        body = read_body(request, limit_bytes=LARGEST_SELECTION_BYTES, too_large=InvalidRequest)
        submission = retry_submission(batch, read_selection(body))
        return self._accepted(
            submission, dialect, _idempotency(idempotency_key, path=request.path_info, body=body)
        )

    def _accepted(
        self, submission: Submission, dialect: Dialect, idempotency: Idempotency | None
    ) -> HttpResponseBase:
        accepted = accept_batch(
            submission, credential=self._credential, idempotency=idempotency, render=dialect.created
        )
        return HttpResponse(accepted.body, status=accepted.status, content_type=JSON)

    @property
    def _credential(self) -> Credential:
        return cast("Credential", self.request.auth)

    def _batch(self, batch_id: str) -> tuple[Batch, Dialect]:
        row_id = batch_id_from(batch_id)
        batch = self.get_queryset().filter(id=row_id).first() if row_id else None
        if batch is None or public_id(batch.dialect, batch.id) != batch_id:
            raise NotFound("There is no such batch.")
        return batch, DIALECTS[batch.dialect]


def _idempotency_key(request: Request) -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is not None and not _KEY.fullmatch(key):
        raise InvalidRequest(
            "Idempotency-Key must be 1 to 255 visible ASCII characters.", param="Idempotency-Key"
        )
    return key


def _idempotency(key: str | None, *, path: str, body: memoryview) -> Idempotency | None:
    """The hash covers the decoded body, so that a retry may be compressed differently."""
    if key is None:
        return None
    asked = hashlib.sha256(path.encode())
    asked.update(b"\0")
    asked.update(body)
    return Idempotency(key_hash=hashlib.sha256(key.encode("ascii")).digest(), body_hash=asked.digest())
