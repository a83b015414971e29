"""Any version of Anthropic's SDK: sync, beta and async, from create to delete, on its defaults."""

import asyncio
import os
import time

import anthropic

OPTIONS = {"base_url": os.environ["URL"], "api_key": os.environ["RELAY_KEY"]}
ODD = os.environ["ODD"]


def requests(*texts):
    messages = [
        {"model": "echo-1-messages", "max_tokens": 9, "messages": [{"role": "user", "content": t}]}
        for t in texts
    ]
    return [{"custom_id": text, "params": params} for text, params in zip(texts, messages)]


def raises(kind, call):
    try:
        call()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


def whole_life(batches):
    hanging = batches.create(requests=requests("hang"))
    raises(anthropic.AnthropicError, lambda: list(batches.results(hanging.id)))
    raises(anthropic.ConflictError, lambda: batches.delete(hanging.id))
    batch = batches.create(requests=requests("good", "odd", "refuse"))
    ids = [batch.id, hanging.id]
    assert [found.id for found in batches.list(limit=1)] == ids, ids
    assert [found.id for found in batches.list(limit=1, before_id=hanging.id)] == [batch.id]
    cancelled = batches.cancel(hanging.id)
    assert cancelled.cancel_initiated_at, cancelled
    for one in ids:
        while batches.retrieve(one).processing_status != "ended":
            time.sleep(0.2)
    assert batches.retrieve(hanging.id).request_counts.canceled == 1
    check(list(batches.results(batch.id)))
    for one in ids:
        assert batches.delete(one).type == "message_batch_deleted"
    assert list(batches.list()) == []


def check(lines):
    good, odd, refused = (line.result for line in lines)
    assert [line.custom_id for line in lines] == ["good", "odd", "refuse"], lines
    assert good.message.content[0].text == "echo good", good
    assert odd.message.content[0].text.startswith(ODD), odd
    assert refused.error.type == "error", refused
    assert refused.error.error.type == "invalid_request_error", refused
    assert refused.error.error.message == "max_tokens: too many", refused


async def async_life():
    async with anthropic.AsyncAnthropic(**OPTIONS) as client:
        batches = client.messages.batches
        batch = await batches.create(requests=requests("good", "odd", "refuse"))
        while batch.processing_status != "ended":
            await asyncio.sleep(0.2)
            batch = await batches.retrieve(batch.id)
        check([line async for line in await batches.results(batch.id)])
        assert [found.id async for found in batches.list(limit=1)] == [batch.id]
        assert (await batches.cancel(batch.id)).processing_status == "ended"
        assert (await batches.delete(batch.id)).id == batch.id


with anthropic.Anthropic(**OPTIONS) as client:
    whole_life(client.messages.batches)
    whole_life(client.beta.messages.batches)
asyncio.run(async_life())
