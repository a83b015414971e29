"""any-llm's batches with its Anthropic provider, and OpenAI's of its reading calls on chat batches."""

import json
import os
import tempfile
import time
import urllib.request

import any_llm

URL, KEY = os.environ["URL"], os.environ["RELAY_KEY"]
anthropic = {"provider": "anthropic", "api_key": KEY, "api_base": URL}
openai = {"provider": "openai", "api_key": KEY, "api_base": f"{URL}/v1"}


def until_ended(batch_id, where):
    batch = any_llm.retrieve_batch(batch_id=batch_id, **where)
    while batch.status not in ("completed", "cancelled", "expired", "failed"):
        time.sleep(0.2)
        batch = any_llm.retrieve_batch(batch_id=batch_id, **where)
    return batch


with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
    for text in ("good", "refuse"):
        body = {"model": "echo-1-messages", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
        file.write(json.dumps({"custom_id": text, "body": body}) + "\n")
    file.flush()
    batch = any_llm.create_batch(input_file_path=file.name, endpoint="/v1/chat/completions", **anthropic)
ended = until_ended(batch.id, anthropic)
assert ended.status == "completed", ended
assert (ended.request_counts.total, ended.request_counts.completed, ended.request_counts.failed) == (
    2,
    1,
    1,
), ended
good, refused = any_llm.retrieve_batch_results(batch_id=batch.id, **anthropic).results
assert good.result.choices[0].message.content == "echo good", good
assert (refused.error.code, refused.error.message) == ("invalid_request_error", "max_tokens: too many"), (
    refused
)
assert [one.id for one in any_llm.list_batches(limit=5, **anthropic)] == [batch.id]
assert any_llm.cancel_batch(batch_id=batch.id, **anthropic).id == batch.id

# any-llm sends OpenAI's requests as a file; the batch is made by a plain request, and read by any-llm.
item = {"custom_id": "a", "params": {"model": "echo-1", "messages": [{"role": "user", "content": "good"}]}}
request = urllib.request.Request(
    f"{URL}/v1/batches",
    json.dumps({"requests": [item]}).encode(),
    {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
)
chat_id = json.load(urllib.request.urlopen(request))["id"]
chat = until_ended(chat_id, openai)
assert (chat.status, chat.request_counts.completed) == ("completed", 1), chat
assert [one.id for one in any_llm.list_batches(**openai)] == [chat_id]
assert any_llm.cancel_batch(batch_id=chat_id, **openai).status == "completed"
