"""One call, from a model's name to an answered HTTP request. Nobody else calls an upstream."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from django.conf import settings

from relaybatch.db.connection import lend_connection
from routing.adapters import ADAPTERS, Adapter
from routing.failpoints import reach
from routing.gate.admission import Passage
from routing.gate.breaker_signals import verdict_of
from routing.gate.denials import Refused
from routing.resolution.model_names import printable
from routing.resolution.resolve import look_up
from routing.secrets.redact import without_secrets
from routing.transport.connection_attempt import Trip
from routing.transport.http_request import Interrupted, NotConnected, Reply, Request, post
from routing.upstream.call import NOTHING_SAID, Outcome, Target
from routing.upstream.failures import UPSTREAM_ERROR_BYTES, CallFailed, Failure
from routing.upstream.headers import call_headers
from routing.upstream.request_model import requested_model
from routing.upstream.response_usage import Unusable, used_by_answer, used_by_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from routing.resolution.route import Choice, Route, UsableKey
    from routing.upstream.call import Call, KeyRefused, Postponement

MAX_REQUESTS = 3
REDIAL_PAUSES_SECONDS = (0.1, 0.2)
CROWDED_SECONDS = 0.1
CROWDED_LOOK_SECONDS = 0.015

_ANOTHER_KEY_MAY_DO = frozenset({401, 402, 403, 429})
_RETRYABLE_BELOW_500 = frozenset({408, 409, 429})
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")


def _nothing_against_it() -> None:
    return None


def send(call: Call, *, refusal: Callable[[], Failure | None] = _nothing_against_it) -> Outcome:
    """Never raises for what a caller wrote, an upstream did or another thread cut.

    `refusal` is asked once it is known where the call would go: what it gives ends the call.
    A database error is raised, and only while nothing has been sent: asking again later is safe.
    """
    attempt = _Attempt(call, refusal)
    try:
        body = attempt.run()
    except Refused as refused:
        return attempt.outcome(failure=refused.failure, postponement=refused.postponement)
    except CallFailed as failed:
        return attempt.outcome(failure=failed.failure)
    except Interrupted as interrupted:
        return attempt.outcome(failure=_interruption(call, interrupted.reason))
    return attempt.outcome(body=body)


class _Attempt:
    """What is known of a call while it runs. `requests`: how many may have reached an upstream.

    `owing`: one of them was lost, or refused with a word of use, before another key was asked.
    """

    def __init__(self, call: Call, refusal: Callable[[], Failure | None]) -> None:
        self.call = call
        self.refusal = refusal
        self.target = Target(adapter=call.adapter)
        self.status = 0
        self.requests = 0
        self.upstream_seconds = 0.0
        self.used = NOTHING_SAID
        self.owing = False
        self.key_refused: KeyRefused | None = None

    def run(self) -> bytes:
        model = requested_model(self.call.body)
        _check_headers(self.call)
        self.target = replace(self.target, requested_model=printable(model))
        found = look_up(policy_id=self.call.caller.policy_id, model_name=model, adapter=self.call.adapter)
        route = found.route
        self.target = replace(self.target, model=route.model, provider=route.provider, policy=route.policy)
        failure = found.failure or self.refusal()
        if failure is not None:
            raise CallFailed(failure)
        lend_connection()
        self.deadline = self.call.line.deadline = time.monotonic() + self.call.timeout_seconds
        self.passage = Passage(rules=route.rules, deadline=self.deadline)
        try:
            return self._over_choices(route, model)
        finally:
            self.passage.leave(self.used.tokens)
            self.key_refused = self.passage.key_refused

    def _over_choices(self, route: Route, model: str) -> bytes:
        """The next binding only where no connection could be made: a key's trouble stays with its host."""
        unreachable = ""
        for choice in route.choices:
            key = self._entered(choice)
            if key is None:
                continue
            try:
                return self._over_keys(choice, key, model)
            except NotConnected as error:
                unreachable = str(error)
        raise CallFailed(
            Failure("upstream_unreachable", f"upstream unreachable: {unreachable}", retryable=True)
        )

    def _entered(self, choice: Choice) -> UsableKey | None:
        """A call that has only to wait for another one's end waits a moment: coming back would take longer."""
        give_up_at = time.monotonic() + CROWDED_SECONDS
        while True:
            try:
                return self.passage.enter(choice)
            except Refused as refused:
                if not refused.postponement.at_once or time.monotonic() >= give_up_at:
                    raise
            self.call.line.pause(CROWDED_LOOK_SECONDS)
            if self.call.line.cut_reason is not None:
                raise Interrupted(self.call.line.cut_reason)

    def _over_keys(self, choice: Choice, first: UsableKey, model: str) -> bytes:
        adapter = ADAPTERS[choice.adapter]
        body = adapter.body(self.call.body, model=model, upstream_name=choice.upstream_name)
        key = first
        while True:
            self.target = replace(self.target, host=choice.host, host_key=key.name, prices=choice.prices)
            reply = self._dialled(_request(self.call, choice, key=key, body=body))
            self.passage.verdict = verdict_of(reply)
            failure = self._judge(reply, adapter)
            if failure is None:
                return reply.body
            goes_on = _another_key_may_do(reply) and self.requests < MAX_REQUESTS
            following = self.passage.another() if goes_on else None
            if following is None:
                said = without_secrets(failure.upstream_error, (key.secret, *choice.call.secrets))
                raise CallFailed(replace(failure, upstream_error=said))
            key = following

    def _dialled(self, request: Request) -> Reply:
        """A connection that cannot be made is no request yet, so it is tried again with the same key."""
        for pause in REDIAL_PAUSES_SECONDS:
            try:
                return self._posted(request)
            except NotConnected:
                self.call.line.pause(min(pause, max(0.0, self.deadline - time.monotonic())))
        return self._posted(request)

    def _posted(self, request: Request) -> Reply:
        trip = Trip(line=self.call.line, deadline=self.deadline, owner=self.call.caller.owner)
        began = time.monotonic()
        try:
            reply = post(
                request,
                trip=trip,
                max_bytes=settings.RELAY_MAX_RESPONSE_BYTES,
                trust_env_proxies=settings.RELAY_TRUST_ENV_PROXIES,
            )
        finally:
            self.upstream_seconds += time.monotonic() - began
            self.requests += trip.sent
            if trip.sent:
                # What an earlier key's refusal said is no word of this request's.
                self.owing, self.used = self.owing or self.used.is_told, NOTHING_SAID
            self.passage.sent = self.passage.sent or trip.sent
        reach("after_send")
        self.owing = self.owing or (reply.lost and trip.sent)
        self.status = reply.status
        return reply

    def _judge(self, reply: Reply, adapter: Adapter) -> Failure | None:
        """None for a usable answer. Notes what was used, which failed calls may have as well."""
        if reply.status and not 200 <= reply.status < 300:
            self.used = used_by_error(reply.body, adapter)
            return _status_failure(reply)
        if reply.flaw:
            return _unreadable(reply, reply.flaw)
        try:
            self.used = used_by_answer(reply.body, adapter)
        except Unusable as unusable:
            self.used = unusable.used
            return _unreadable(reply, unusable.reason)
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
            tokens=self.used.tokens,
            upstream_cost_nanos=self.used.upstream_cost_nanos,
            may_have_used=self.used.is_told or self.owing,
            postponement=postponement,
            key_refused=self.key_refused,
        )


def _request(call: Call, choice: Choice, *, key: UsableKey, body: bytes) -> Request:
    return Request(
        url=choice.call.url,
        headers=call_headers(
            ADAPTERS[choice.adapter],
            of_host=choice.call.headers,
            passed_on=call.headers,
            auth=choice.call.auth,
            secret=key.secret,
        ),
        body=body,
        idempotency_key=call.idempotency_key,
    )


def _another_key_may_do(reply: Reply) -> bool:
    return reply.lost or reply.status in _ANOTHER_KEY_MAY_DO or reply.status >= 500


def _status_failure(reply: Reply) -> Failure:
    retryable = reply.status >= 500 or reply.status in _RETRYABLE_BELOW_500
    return Failure(
        code="upstream_status",
        message=f"batch item: upstream status {reply.status}",
        retryable=retryable,
        retry_after_seconds=reply.retry_after_seconds if retryable else None,
        upstream_status=reply.status,
        upstream_error=reply.body,
    )


def _unreadable(reply: Reply, reason: str) -> Failure:
    return Failure(
        code="upstream_unreadable",
        message=f"the upstream response cannot be used: {reason}",
        retryable=True,
        upstream_status=reply.status or None,
        upstream_error=reply.body[:UPSTREAM_ERROR_BYTES],
    )


def _interruption(call: Call, reason: str) -> Failure:
    if reason == "cancelled":
        return Failure("cancelled", "cancelled while running")
    if reason == "timeout":
        return Failure("timeout", f"timed out after {call.timeout_seconds:g} s", retryable=True)
    return Failure("worker_lost", "worker lost: it stopped before the answer came", retryable=True)


def _check_headers(call: Call) -> None:
    for name, value in call.headers.items():
        if not _HEADER_VALUE.fullmatch(value):
            raise CallFailed(
                Failure("invalid_item", f"the header {name} has characters that no header may have")
            )
