"""Which functions of the product are which stage of an item. To be changed with them."""

STAGES: dict[str, tuple[str, ...]] = {
    "claim": ("batches.execution.claim:claim_item", "batches.execution.claim:claim_held_by"),
    "read the request": ("batches.execution.item_payload:load_request",),
    "re-check of the caller": ("routing.credentials.recheck:recheck",),
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
OF_THE_ITEM, UPSTREAM_CALL = "rest of the item", "HTTP"
OUTSIDE_SLOTS = frozenset({"publish: mark", "publish: send"})
"""Stages of other threads than the item's: nobody waits for them."""
