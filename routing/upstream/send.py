"""Make one call, from the model's name to the upstream's response. No other module calls an upstream.

The way of a call: resolve the model, `precheck`, admission at the gate, then for each binding and host key build → post
→ parse.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from django.conf import settings

from relaybatch.db.connection import release_connection
from routing.adapters import ADAPTERS, Adapter
from routing.calls.call import NO_REPORTED_USAGE, Outcome, Target
from routing.calls.failures import CallFailed, Failure, FailureCode
from routing.failpoints import failpoint
from routing.gate.admission import Admission
from routing.gate.breaker_signals import breaker_signal
from routing.gate.denials import AdmissionDenied
from routing.hosts.headers import FIXED_HEADERS, build_headers
from routing.resolution.model_names import printable_name
from routing.resolution.resolve import resolve_model
from routing.secrets.redact import redact_secrets, redact_short_text
from routing.transport.connection_attempt import ConnectionAttempt, Interrupted
from routing.transport.http_request import NotConnected, UpstreamRequest, post
from routing.transport.response_body import MAX_ERROR_BYTES
from routing.upstream.request_model import requested_model
from routing.upstream.response_usage import UnusableResponse, usage_of_error, usage_of_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from routing.calls.call import Call, HostKeyRejection, Postponement
    from routing.resolution.route import Route, RouteBinding, UsableKey
    from routing.transport.response_body import UpstreamResponse

MAX_REQUESTS = 3
REDIAL_PAUSES_SECONDS = (0.1, 0.2)
CONCURRENCY_WAIT_SECONDS = 0.1
CONCURRENCY_POLL_INTERVAL_SECONDS = 0.015

# Statuses that may be about the host key alone, besides 5xx. 402: its account has no credit.
_NEXT_KEY_STATUSES = frozenset({401, 402, 403, 429})
# Time-out, conflict, too many requests: the same request may succeed later.
_RETRYABLE_BELOW_500 = frozenset({408, 409, 429})
_FIXED_HEADERS = tuple(FIXED_HEADERS.items())
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")


def _no_precheck() -> None:
    return None


def send(call: Call, *, precheck: Callable[[], Failure | None] = _no_precheck) -> Outcome:
    """Make the call and return its outcome; whatever the caller wrote or the upstream did becomes a failure in it.

    `precheck` is called once it is known where the call would go; a failure that it returns ends the call.
    Raises a database error, but only while nothing has been sent: calling again later is safe.
    """
    run = _CallRun(call, precheck)
    try:
        body = run.run()
    except AdmissionDenied as denied:
        return run.outcome(failure=denied.failure, postponement=denied.postponement)
    except CallFailed as failed:
        return run.outcome(failure=failed.failure)
    except Interrupted as interrupted:
        return run.outcome(failure=_interrupted_failure(call, interrupted.reason))
    return run.outcome(body=body)


class _CallRun:
    """One run of a call. `requests`: how many may have reached an upstream.

    `request_id`: that of the last answer; empty once another request was sent after it.
    `earlier_may_have_used`: one of them was lost, or failed and reported usage, before another key was tried.
    """

    def __init__(self, call: Call, precheck: Callable[[], Failure | None]) -> None:
        self.call = call
        self.precheck = precheck
        self.target = Target(adapter=call.adapter)
        self.status = 0
        self.request_id = ""
        self.requests = 0
        self.upstream_seconds = 0.0
        self.usage = NO_REPORTED_USAGE
        self.earlier_may_have_used = False
        self.host_key_rejected: HostKeyRejection | None = None

    def run(self) -> bytes:
        model = requested_model(self.call.body)
        _check_headers(self.call)
        found = resolve_model(
            policy_id=self.call.caller.policy_id, model_name=model, adapter=self.call.adapter
        )
        route = found.route
        self.target = Target(
            requested_model=printable_name(model),
            model=route.model,
            provider=route.provider,
            adapter=self.call.adapter,
            policy=route.policy,
        )
        failure = found.failure or self.precheck()
        if failure is not None:
            raise CallFailed(failure)
        # Other threads of the process use this thread's database connection while the upstream responds.
        release_connection()
        self.deadline = self.call.abort_handle.deadline = time.monotonic() + self.call.timeout_seconds
        self.admission = Admission(rules=route.rules, deadline=self.deadline)
        try:
            return self._try_bindings(route, model)
        finally:
            self.admission.release(self.usage.tokens)
            self.host_key_rejected = self.admission.host_key_rejected

    def _try_bindings(self, route: Route, model: str) -> bytes:
        """Try the bindings in order; only a failed connect leads to the next one, other failures end the call."""
        unreachable = ""
        for binding in route.bindings:
            key = self._admit(binding)
            if key is None:
                continue
            try:
                return self._try_keys(binding, key, model)
            except NotConnected as error:
                unreachable = str(error)
        raise CallFailed(
            Failure(FailureCode.UPSTREAM_UNREACHABLE, f"upstream unreachable: {unreachable}", retryable=True)
        )

    def _admit(self, binding: RouteBinding) -> UsableKey | None:
        """Acquire a key. Poll for a moment when only `concurrency` denies it: a retry of the item would take longer."""
        stop_at = time.monotonic() + CONCURRENCY_WAIT_SECONDS
        while True:
            try:
                return self.admission.acquire(binding)
            except AdmissionDenied as denied:
                if not denied.postponement.concurrency_limit or time.monotonic() >= stop_at:
                    raise
            self.call.abort_handle.wait(CONCURRENCY_POLL_INTERVAL_SECONDS)
            if self.call.abort_handle.abort_reason is not None:
                raise Interrupted(self.call.abort_handle.abort_reason)

    def _try_keys(self, binding: RouteBinding, first: UsableKey, model: str) -> bytes:
        """Send the request with one key after another, 3 at most, and return the body of a usable response."""
        adapter = ADAPTERS[binding.adapter]
        body = adapter.body(self.call.body, model=model, upstream_name=binding.upstream_name)
        key = first
        while True:
            self.target = replace(self.target, host=binding.host, host_key=key.name, prices=binding.prices)
            response = self._post_with_redial(_build_request(self.call, binding, key=key, body=body))
            self.admission.signal = breaker_signal(response)
            # An upstream that rejects a key may quote it.
            secrets = (key.secret, *binding.host_call.secrets)
            self.request_id = redact_short_text(response.request_id, secrets)
            failure = self._check_response(response, adapter)
            if failure is None:
                return response.body
            may_go_on = _may_try_next_key(response) and self.requests < MAX_REQUESTS
            next_key = self.admission.next_key() if may_go_on else None
            if next_key is None:
                error_body = redact_secrets(failure.upstream_error, secrets)
                raise CallFailed(replace(failure, upstream_error=error_body))
            key = next_key

    def _post_with_redial(self, request: UpstreamRequest) -> UpstreamResponse:
        """Post the request; redial with the same key when no connection could be made, since nothing was sent."""
        for pause in REDIAL_PAUSES_SECONDS:
            try:
                return self._post(request)
            except NotConnected:
                self.call.abort_handle.wait(min(pause, max(0.0, self.deadline - time.monotonic())))
        return self._post(request)

    def _post(self, request: UpstreamRequest) -> UpstreamResponse:
        attempt = ConnectionAttempt(
            abort_handle=self.call.abort_handle, deadline=self.deadline, owner=self.call.caller.owner
        )
        started = time.monotonic()
        try:
            response = post(
                request,
                attempt=attempt,
                max_bytes=settings.RELAY_MAX_RESPONSE_BYTES,
                trust_env_proxies=settings.RELAY_TRUST_ENV_PROXIES,
            )
        finally:
            self.upstream_seconds += time.monotonic() - started
            self.requests += attempt.is_sent
            if attempt.is_sent:
                # `usage` is still that of an earlier key's failed response.
                self.earlier_may_have_used = self.earlier_may_have_used or self.usage.is_reported
                self.usage = NO_REPORTED_USAGE
                self.request_id = ""
            self.admission.sent = self.admission.sent or attempt.is_sent
        failpoint("after_send")
        self.earlier_may_have_used = self.earlier_may_have_used or (
            response.connection_lost and attempt.is_sent
        )
        self.status = response.status
        return response

    def _check_response(self, response: UpstreamResponse, adapter: Adapter) -> Failure | None:
        """Return None for a usable response. Records the reported usage, which failed calls may have as well."""
        if response.status and not 200 <= response.status < 300:
            self.usage = usage_of_error(response.body, adapter)
            return _status_failure(response)
        if response.read_error:
            return _unreadable_response(response, response.read_error)
        try:
            self.usage = usage_of_response(response.body, adapter)
        except UnusableResponse as unusable:
            self.usage = unusable.usage
            return _unreadable_response(response, unusable.reason)
        return None

    def outcome(
        self, *, body: bytes = b"", failure: Failure | None = None, postponement: Postponement | None = None
    ) -> Outcome:
        return Outcome(
            target=self.target,
            failure=failure,
            body=body,
            status=self.status,
            request_id=self.request_id,
            sent=self.requests > 0,
            keys_tried=self.requests,
            upstream_ms=round(self.upstream_seconds * 1000),
            tokens=self.usage.tokens,
            upstream_cost_nanos=self.usage.upstream_cost_nanos,
            may_have_used=self.usage.is_reported or self.earlier_may_have_used,
            postponement=postponement,
            host_key_rejected=self.host_key_rejected,
        )


def _build_request(call: Call, binding: RouteBinding, *, key: UsableKey, body: bytes) -> UpstreamRequest:
    return UpstreamRequest(
        url=binding.host_call.url,
        headers=_FIXED_HEADERS
        + build_headers(
            ADAPTERS[binding.adapter],
            host_headers=binding.host_call.headers,
            forwarded=call.headers,
            auth=binding.host_call.auth,
            secret=key.secret,
        ),
        body=body,
        idempotency_key=call.idempotency_key,
    )


def _may_try_next_key(response: UpstreamResponse) -> bool:
    return response.connection_lost or response.status in _NEXT_KEY_STATUSES or response.status >= 500


def _status_failure(response: UpstreamResponse) -> Failure:
    retryable = response.status >= 500 or response.status in _RETRYABLE_BELOW_500
    return Failure(
        code=FailureCode.UPSTREAM_STATUS,
        message=f"batch item: upstream status {response.status}",
        retryable=retryable,
        retry_after_seconds=response.retry_after_seconds if retryable else None,
        upstream_status=response.status,
        upstream_error=response.body,
    )


def _unreadable_response(response: UpstreamResponse, reason: str) -> Failure:
    return Failure(
        code=FailureCode.UPSTREAM_UNREADABLE,
        message=f"the upstream response cannot be used: {reason}",
        retryable=True,
        upstream_status=response.status or None,
        upstream_error=response.body[:MAX_ERROR_BYTES],
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
