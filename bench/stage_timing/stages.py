"""Which functions of the product are which stage of an item. To be changed with them."""

STAGES: dict[str, tuple[str, ...]] = {
    "wait before the claim": ("batches.execution.call_slots:CallSlots._wait_until_near",),
    "claim": ("batches.execution.execute:_claim",),
    "read the request": ("batches.execution.item_payload:load_request",),
    "wait for the slot": ("batches.execution.call_slots:CallSlots.acquire",),
    "re-check of the caller": (
        "batches.execution.abort_cancelled:batch_over",
        "routing.credentials.recheck:recheck",
    ),
    "look-up of the model": ("routing.resolution.resolve:resolve_model",),
    "gate": (
        "routing.gate.admission:Admission.acquire",
        "routing.gate.admission:Admission.next_key",
        "routing.gate.admission:Admission.release",
    ),
    "HTTP": ("routing.transport.http_request:post",),
    "usage of the response": (
        "routing.upstream.response_usage:usage_of_response",
        "usage.events:draft_event",
    ),
    "store the response": ("batches.execution.item_payload:store_response",),
    "settle": ("batches.execution.settling.settle_fallbacks:settle_with_fallbacks",),
    "rest of the item": ("batches.execution.execute:execute_item",),
    "publish: mark": ("batches.publishing.owner_window:mark_window_published",),
    "publish: send": ("batches.publishing.broker:send_or_log",),
}
UPSTREAM_CALL = "HTTP"
PUBLISHER_STAGES = frozenset({"publish: mark", "publish: send"})
"""Stages of another thread than the item's: no item waits for them."""
NOTES = {
    "claim": "with the wait for its group",
    "store the response": "large ones only",
    "settle": "with the wait for its group",
    "rest of the item": "retry, log, glue",
}
