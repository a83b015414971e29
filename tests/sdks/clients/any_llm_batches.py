"""any-llm's batches with its Anthropic and its OpenAI provider."""

import json
import os
import tempfile
import time

import any_llm

URL, KEY = os.environ["URL"], os.environ["RELAY_KEY"]
anthropic = {"provider": "anthropic", "api_key": KEY, "api_base": URL}
openai = {"provider": "openai", "api_key": KEY, "api_base": f"{URL}/v1"}


def created(where, model, *texts, **fields):
    """A batch of requests out of a file, which any-llm reads for every provider."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        for text in texts:
            body = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
            line = {"custom_id": text, "method": "POST", "url": "/v1/chat/completions", "body": body}
            file.write(json.dumps(line) + "\n")
        file.flush()
        return any_llm.create_batch(
            input_file_path=file.name, endpoint="/v1/chat/completions", **fields, **where
        )


def until_ended(batch_id, where):
    deadline = time.monotonic() + 60
    batch = any_llm.retrieve_batch(batch_id=batch_id, **where)
    while batch.status not in ("completed", "cancelled", "expired", "failed"):
        assert time.monotonic() < deadline, batch
        time.sleep(0.2)
        batch = any_llm.retrieve_batch(batch_id=batch_id, **where)
    return batch


def check_end(ended):
    counts = ended.request_counts
    assert (ended.status, counts.total, counts.completed, counts.failed) == ("completed", 2, 1, 1), ended


batch = created(anthropic, "echo-1-messages", "good", "refuse")
check_end(until_ended(batch.id, anthropic))
good, refused = any_llm.retrieve_batch_results(batch_id=batch.id, **anthropic).results
assert good.result.choices[0].message.content == "echo good", good
assert (refused.error.code, refused.error.message) == ("invalid_request_error", "max_tokens: too many"), (
    refused
)
assert [one.id for one in any_llm.list_batches(limit=5, **anthropic)] == [batch.id]
assert any_llm.cancel_batch(batch_id=batch.id, **anthropic).id == batch.id

batch = created(openai, "echo-1", "good", "refuse", metadata={"job": "nightly"})
ended = until_ended(batch.id, openai)
check_end(ended)
assert (ended.metadata, bool(ended.error_file_id)) == ({"job": "nightly"}, True), ended
# Of OpenAI's it reads the output file alone.
(good,) = any_llm.retrieve_batch_results(batch_id=batch.id, **openai).results
assert (good.custom_id, good.result.choices[0].message.content) == ("good", "echo good"), good
assert [one.id for one in any_llm.list_batches(limit=5, **openai)] == [batch.id]
running = created(openai, "echo-1", "hang")
assert any_llm.cancel_batch(batch_id=running.id, **openai).cancelling_at
assert until_ended(running.id, openai).status == "cancelled"
