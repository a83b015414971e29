"""One call, from a model's name to an answered HTTP request. Nobody else calls an upstream."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from django.conf import settings

from relaybatch.db.connection import release_connection
from routing.adapters import ADAPTERS, Adapter
from routing.failpoints import failpoint
from routing.gate.admission import Admission
from routing.gate.breaker_signals import breaker_signal
from routing.gate.denials import AdmissionDenied
from routing.resolution.model_names import printable_name
from routing.resolution.resolve import resolve_model
from routing.secrets.redact import redact_secrets
from routing.transport.connection_attempt import ConnectionAttempt
from routing.transport.http_request import Interrupted, NotConnected, UpstreamRequest, UpstreamResponse, post
from routing.upstream.call import NO_REPORTED_USAGE, Outcome, Target
from routing.upstream.failures import UPSTREAM_ERROR_BYTES, CallFailed, Failure, FailureCode
from routing.upstream.headers import build_headers
from routing.upstream.request_model import requested_model
from routing.upstream.response_usage import UnusableResponse, usage_of_error, usage_of_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from routing.resolution.route import Route, RouteBinding, UsableKey
    from routing.upstream.call import Call, HostKeyRejection, Postponement

MAX_REQUESTS = 3
REDIAL_PAUSES_SECONDS = (0.1, 0.2)
CONCURRENCY_WAIT_SECONDS = 0.1
CONCURRENCY_POLL_INTERVAL_SECONDS = 0.015

_NEXT_KEY_STATUSES = frozenset({401, 402, 403, 429})
_RETRYABLE_BELOW_500 = frozenset({408, 409, 429})
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")


def _no_precheck() -> None:
    return None


def send(call: Call, *, precheck: Callable[[], Failure | None] = _no_precheck) -> Outcome:
    """Never raises for what a caller wrote, an upstream did or another thread cut.

    `refusal` is asked once it is known where the call would go: what it gives ends the call.
    A database error is raised, and only while nothing has been sent: asking again later is safe.
    """
    run = _CallRun(call, precheck)
    try:
        body = run.run()
    except AdmissionDenied as refused:
        return run.outcome(failure=refused.failure, postponement=refused.postponement)
    except CallFailed as failed:
        return run.outcome(failure=failed.failure)
    except Interrupted as interrupted:
        return run.outcome(failure=_interrupted_failure(call, interrupted.reason))
    return run.outcome(body=body)


class _CallRun:
    """What is known of a call while it runs. `requests`: how many may have reached an upstream.

    `owing`: one of them was lost, or refused with a word of use, before another key was asked.
    """

    def __init__(self, call: Call, precheck: Callable[[], Failure | None]) -> None:
        self.call = call
        self.precheck = precheck
        self.target = Target(adapter=call.adapter)
        self.status = 0
        self.requests = 0
        self.upstream_seconds = 0.0
        self.usage = NO_REPORTED_USAGE
        self.earlier_may_have_used = False
        self.host_key_rejected: HostKeyRejection | None = None

    def run(self) -> bytes:
        model = requested_model(self.call.body)
        _check_headers(self.call)
        self.target = replace(self.target, requested_model=printable_name(model))
        found = resolve_model(
            policy_id=self.call.caller.policy_id, model_name=model, adapter=self.call.adapter
        )
        route = found.route
        self.target = replace(self.target, model=route.model, provider=route.provider, policy=route.policy)
        failure = found.failure or self.precheck()
        if failure is not None:
            raise CallFailed(failure)
        release_connection()
        self.deadline = self.call.abort_handle.deadline = time.monotonic() + self.call.timeout_seconds
        self.admission = Admission(rules=route.rules, deadline=self.deadline)
        try:
            return self._try_bindings(route, model)
        finally:
            self.admission.release(self.usage.tokens)
            self.host_key_rejected = self.admission.host_key_rejected

    def _try_bindings(self, route: Route, model: str) -> bytes:
        """The next binding only where no connection could be made: a key's trouble stays with its host."""
        unreachable = ""
        for choice in route.bindings:
            key = self._admit(choice)
            if key is None:
                continue
            try:
                return self._try_keys(choice, key, model)
            except NotConnected as error:
                unreachable = str(error)
        raise CallFailed(
            Failure(FailureCode.UPSTREAM_UNREACHABLE, f"upstream unreachable: {unreachable}", retryable=True)
        )

    def _admit(self, choice: RouteBinding) -> UsableKey | None:
        """A call that has only to wait for another one's end waits a moment: coming back would take longer."""
        give_up_at = time.monotonic() + CONCURRENCY_WAIT_SECONDS
        while True:
            try:
                return self.admission.acquire(choice)
            except AdmissionDenied as refused:
                if not refused.postponement.concurrency_limit or time.monotonic() >= give_up_at:
                    raise
            self.call.abort_handle.wait(CONCURRENCY_POLL_INTERVAL_SECONDS)
            if self.call.abort_handle.abort_reason is not None:
                raise Interrupted(self.call.abort_handle.abort_reason)

    def _try_keys(self, choice: RouteBinding, first: UsableKey, model: str) -> bytes:
        adapter = ADAPTERS[choice.adapter]
        body = adapter.body(self.call.body, model=model, upstream_name=choice.upstream_name)
        key = first
        while True:
            self.target = replace(self.target, host=choice.host, host_key=key.name, prices=choice.prices)
            reply = self._post_with_redial(_build_request(self.call, choice, key=key, body=body))
            self.admission.signal = breaker_signal(reply)
            failure = self._check_response(reply, adapter)
            if failure is None:
                return reply.body
            goes_on = _may_try_next_key(reply) and self.requests < MAX_REQUESTS
            following = self.admission.next_key() if goes_on else None
            if following is None:
                said = redact_secrets(failure.upstream_error, (key.secret, *choice.host_call.secrets))
                raise CallFailed(replace(failure, upstream_error=said))
            key = following

    def _post_with_redial(self, request: UpstreamRequest) -> UpstreamResponse:
        """A connection that cannot be made is no request yet, so it is tried again with the same key."""
        for pause in REDIAL_PAUSES_SECONDS:
            try:
                return self._post(request)
            except NotConnected:
                self.call.abort_handle.wait(min(pause, max(0.0, self.deadline - time.monotonic())))
        return self._post(request)

    def _post(self, request: UpstreamRequest) -> UpstreamResponse:
        trip = ConnectionAttempt(
            abort_handle=self.call.abort_handle, deadline=self.deadline, owner=self.call.caller.owner
        )
        began = time.monotonic()
        try:
            reply = post(
                request,
                attempt=trip,
                max_bytes=settings.RELAY_MAX_RESPONSE_BYTES,
                trust_env_proxies=settings.RELAY_TRUST_ENV_PROXIES,
            )
        finally:
            self.upstream_seconds += time.monotonic() - began
            self.requests += trip.is_sent
            if trip.is_sent:
                # What an earlier key's refusal said is no word of this request's.
                self.earlier_may_have_used, self.usage = (
                    self.earlier_may_have_used or self.usage.is_reported,
                    NO_REPORTED_USAGE,
                )
            self.admission.sent = self.admission.sent or trip.is_sent
        failpoint("after_send")
        self.earlier_may_have_used = self.earlier_may_have_used or (reply.connection_lost and trip.is_sent)
        self.status = reply.status
        return reply

    def _check_response(self, reply: UpstreamResponse, adapter: Adapter) -> Failure | None:
        """None for a usable answer. Notes what was used, which failed calls may have as well."""
        if reply.status and not 200 <= reply.status < 300:
            self.usage = usage_of_error(reply.body, adapter)
            return _status_failure(reply)
        if reply.read_error:
            return _unreadable_response(reply, reply.read_error)
        try:
            self.usage = usage_of_response(reply.body, adapter)
        except UnusableResponse as unusable:
            self.usage = unusable.usage
            return _unreadable_response(reply, unusable.reason)
        return None

    def outcome(
        self, *, body: bytes = b"", failure: Failure | None = None, postponement: Postponement | None = None
    ) -> Outcome:
        return Outcome(
            target=self.target,
            failure=failure,
            body=body,
            status=self.status,
            sent=self.requests > 0,
            keys_tried=self.requests,
            upstream_ms=round(self.upstream_seconds * 1000),
            tokens=self.usage.tokens,
            upstream_cost_nanos=self.usage.upstream_cost_nanos,
            may_have_used=self.usage.is_reported or self.earlier_may_have_used,
            postponement=postponement,
            host_key_rejected=self.host_key_rejected,
        )


def _build_request(call: Call, choice: RouteBinding, *, key: UsableKey, body: bytes) -> UpstreamRequest:
    return UpstreamRequest(
        url=choice.host_call.url,
        headers=build_headers(
            ADAPTERS[choice.adapter],
            host_headers=choice.host_call.headers,
            forwarded=call.headers,
            auth=choice.host_call.auth,
            secret=key.secret,
        ),
        body=body,
        idempotency_key=call.idempotency_key,
    )


def _may_try_next_key(reply: UpstreamResponse) -> bool:
    return reply.connection_lost or reply.status in _NEXT_KEY_STATUSES or reply.status >= 500


def _status_failure(reply: UpstreamResponse) -> Failure:
    retryable = reply.status >= 500 or reply.status in _RETRYABLE_BELOW_500
    return Failure(
        code=FailureCode.UPSTREAM_STATUS,
        message=f"batch item: upstream status {reply.status}",
        retryable=retryable,
        retry_after_seconds=reply.retry_after_seconds if retryable else None,
        upstream_status=reply.status,
        upstream_error=reply.body,
    )


def _unreadable_response(reply: UpstreamResponse, reason: str) -> Failure:
    return Failure(
        code=FailureCode.UPSTREAM_UNREADABLE,
        message=f"the upstream response cannot be used: {reason}",
        retryable=True,
        upstream_status=reply.status or None,
        upstream_error=reply.body[:UPSTREAM_ERROR_BYTES],
    )


def _interrupted_failure(call: Call, reason: str) -> Failure:
    if reason == FailureCode.CANCELLED:
        return Failure(FailureCode.CANCELLED, "cancelled while running")
    if reason == FailureCode.TIMEOUT:
        return Failure(FailureCode.TIMEOUT, f"timed out after {call.timeout_seconds:g} s", retryable=True)
    return Failure(FailureCode.WORKER_LOST, "worker lost: it stopped before the answer came", retryable=True)


def _check_headers(call: Call) -> None:
    for name, value in call.headers.items():
        if not _HEADER_VALUE.fullmatch(value):
            raise CallFailed(
                Failure(FailureCode.INVALID_ITEM, f"the header {name} has characters that no header may have")
            )
