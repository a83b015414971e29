"""LiteLLM's own functions for files and batches, with its OpenAI provider."""

import json
import os
import time

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # Else it would fetch the list from a host of its own.

import litellm

where = {
    "custom_llm_provider": "openai",
    "api_base": f"{os.environ['URL']}/v1",
    "api_key": os.environ["RELAY_KEY"],
}


def created(*texts):
    bodies = [{"model": "echo-1", "messages": [{"role": "user", "content": text}]} for text in texts]
    lines = [
        {"custom_id": text, "method": "POST", "url": "/v1/chat/completions", "body": body}
        for text, body in zip(texts, bodies)
    ]
    content = "\n".join(map(json.dumps, lines)).encode()
    file = litellm.create_file(file=("requests.jsonl", content), purpose="batch", **where)
    assert litellm.file_content(file_id=file.id, **where).content == content
    return litellm.create_batch(
        input_file_id=file.id,
        endpoint="/v1/chat/completions",
        completion_window="24h",
        metadata={"job": "nightly"},
        **where,
    )


def until_ended(batch):
    deadline = time.monotonic() + 60
    while batch.status not in ("completed", "failed", "expired", "cancelled"):
        assert time.monotonic() < deadline, batch
        time.sleep(0.2)
        batch = litellm.retrieve_batch(batch_id=batch.id, **where)
    return batch


batch = until_ended(created("good", "refuse"))
counts = batch.request_counts
assert (batch.status, counts.total, counts.completed, counts.failed) == ("completed", 2, 1, 1), batch
good = json.loads(litellm.file_content(file_id=batch.output_file_id, **where).text)
assert good["response"]["body"]["choices"][0]["message"]["content"] == "echo good", good
refused = json.loads(litellm.file_content(file_id=batch.error_file_id, **where).text)
assert (refused["custom_id"], refused["response"]["status_code"]) == ("refuse", 400), refused
running = created("hang")
assert litellm.cancel_batch(batch_id=running.id, **where).cancelling_at
assert until_ended(running).status == "cancelled"
assert [one.id for one in litellm.list_batches(limit=5, **where)] == [running.id, batch.id]
for file_id in (batch.input_file_id, batch.output_file_id):
    assert litellm.file_delete(file_id=file_id, **where).deleted
