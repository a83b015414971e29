"""Any version of OpenAI's SDK on files and batches: sync and async, from upload to delete, on its defaults."""

import asyncio
import io
import json
import os
import tempfile
import time
from pathlib import Path

import openai

OPTIONS = {"base_url": f"{os.environ['URL']}/v1", "api_key": os.environ["RELAY_KEY"]}
ODD = os.environ["ODD"]
HOUR = {"anchor": "created_at", "seconds": 3600}
CHAT, RESPONSES, EMBEDDINGS = "/v1/chat/completions", "/v1/responses", "/v1/embeddings"
DEADLINE_SECONDS = 60
FINAL = ("completed", "failed", "expired", "cancelled")


def jsonl(*texts, endpoint=CHAT):
    bodies = {
        CHAT: lambda text: {"model": "echo-1", "messages": [{"role": "user", "content": text}]},
        RESPONSES: lambda text: {"model": "echo-1-responses", "input": text},
        EMBEDDINGS: lambda text: {"model": "echo-1-embeddings", "input": ["first", text]},
    }
    lines = [
        {"custom_id": text, "method": "POST", "url": endpoint, "body": bodies[endpoint](text)}
        for text in texts
    ]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def until(client, batch, is_reached):
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_reached(batch):
        assert time.monotonic() < deadline, batch
        time.sleep(0.2)
        batch = client.batches.retrieve(batch.id)
    return batch


def is_final(batch):
    return batch.status in FINAL


def run(client, content, **fields):
    file = client.files.create(file=content, purpose="batch")
    fields = {"endpoint": CHAT, "completion_window": "24h"} | fields
    return client.batches.create(input_file_id=file.id, **fields)


def by_custom_id(text):
    # Cut as clients do that know no JSON Lines: also at U+2028 and U+0085.
    return {line["custom_id"]: line for line in map(json.loads, text.splitlines())}


def check_models(client):
    assert {"echo-1", "echo-1-responses", "echo-1-embeddings"} <= {model.id for model in client.models.list()}


def check_uploads(client):
    """A path, an open file, a buffer, bytes, and a tuple with a name."""
    content = jsonl("good")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "by path.jsonl"
        path.write_bytes(content)
        files = [client.files.create(file=path, purpose="batch")]
        with path.open("rb") as opened:
            files.append(client.files.create(file=opened, purpose="batch"))
    files.append(client.files.create(file=io.BytesIO(content), purpose="batch"))
    # What other gateways want besides is ignored, here and in a create.
    wanted = {"target_model_names": "echo-1", "custom_llm_provider": "openai"}
    files.append(client.files.create(file=content, purpose="batch", extra_body=wanted))
    named = ("Grüße 😀.jsonl", content)
    files.append(client.files.create(file=named, purpose="batch", expires_after=HOUR))
    names = ["by path.jsonl", "by path.jsonl", "upload", "upload", "Grüße 😀.jsonl"]
    assert [file.filename for file in files] == names, files
    for file in files:
        assert (file.object, file.bytes, file.purpose) == ("file", len(content), "batch"), file
        assert file.id.startswith("file-"), file
        assert client.files.content(file.id).content == content
        assert client.files.wait_for_processing(file.id, poll_interval=0.1) == file
    assert [file.expires_at for file in files[:4]] == [None] * 4, files
    assert files[4].expires_at == files[4].created_at + 3600, files[4]
    check_file_lists(client, [file.id for file in files])


def check_file_lists(client, ids):
    assert [file.id for file in client.files.list()] == ids[::-1]
    assert [file.id for file in client.files.list(limit=2)] == ids[::-1]
    assert [file.id for file in client.files.list(limit=2, order="asc")] == ids
    assert [file.id for file in client.files.list(purpose="batch")] == ids[::-1]
    assert [file.id for file in client.files.list(purpose="batch_output")] == []
    for one in ids:
        deleted = client.files.delete(one)
        assert (deleted.id, deleted.object, deleted.deleted) == (one, "file", True), deleted
    for call in (client.files.retrieve, client.files.content, client.files.delete):
        raises(openai.NotFoundError, lambda call=call: call(ids[0]))


def check_whole_life(client):
    batch = run(
        client,
        jsonl("good", "odd", "refuse"),
        metadata={"job": "nightly"},
        output_expires_after=HOUR,
        extra_body={"custom_llm_provider": "openai", "model": "echo-1"},
    )
    assert (batch.object, batch.status, batch.endpoint) == ("batch", "validating", CHAT), batch
    assert (batch.metadata, batch.completion_window) == ({"job": "nightly"}, "24h"), batch
    assert (batch.output_file_id, batch.error_file_id, batch.errors) == (None, None, None), batch
    batch = until(client, batch, is_final)
    counts = batch.request_counts
    assert (batch.status, counts.total, counts.completed, counts.failed) == ("completed", 3, 2, 1), batch
    times = [batch.created_at, batch.in_progress_at, batch.finalizing_at, batch.completed_at]
    assert times == sorted(times), batch
    check_output(client, batch)
    refused = by_custom_id(client.files.content(batch.error_file_id).text)["refuse"]
    assert (refused["response"]["status_code"], refused["error"]) == (400, None), refused
    assert refused["response"]["request_id"], refused
    assert refused["response"]["body"]["error"]["message"] == "max_tokens: too many", refused
    raises(openai.ConflictError, lambda: client.batches.cancel(batch.id))
    check_output_files(client, batch)


def check_output(client, batch):
    """The same text, whichever way the SDK reads it."""
    content = client.files.content(batch.output_file_id)
    with tempfile.TemporaryDirectory() as folder:
        content.write_to_file(Path(folder) / "output.jsonl")
        assert (Path(folder) / "output.jsonl").read_bytes() == content.content
        with client.files.with_streaming_response.content(batch.output_file_id) as streamed:
            streamed.stream_to_file(Path(folder) / "streamed.jsonl")
        assert (Path(folder) / "streamed.jsonl").read_bytes() == content.content
    with client.files.with_streaming_response.content(batch.output_file_id) as streamed:
        assert list(streamed.iter_lines()) == content.text.splitlines()
    lines = by_custom_id(content.text)
    assert set(lines) == {"good", "odd"}, lines
    assert lines["good"]["error"] is None, lines
    assert lines["good"]["response"]["status_code"] == 200, lines
    assert said(lines["good"]) == "echo good", lines
    assert said(lines["odd"]).startswith(ODD), lines


def said(line):
    return line["response"]["body"]["choices"][0]["message"]["content"]


def check_output_files(client, batch):
    for one in (batch.output_file_id, batch.error_file_id):
        file = client.files.retrieve(one)
        assert (file.purpose, file.filename[-6:]) == ("batch_output", ".jsonl"), file
        assert file.bytes == len(client.files.content(one).content), file
        assert file.expires_at == file.created_at + 3600, file
        assert client.files.delete(one).deleted
        raises(openai.NotFoundError, lambda one=one: client.files.content(one))
    assert client.batches.retrieve(batch.id) == batch


def check_other_endpoints(client):
    batch = until(client, run(client, jsonl("good", endpoint=RESPONSES), endpoint=RESPONSES), is_final)
    (line,) = by_custom_id(client.files.content(batch.output_file_id).text).values()
    (output,) = line["response"]["body"]["output"]
    assert output["content"][0]["text"] == "echo good", line
    assert (batch.error_file_id, usage(batch)["total_tokens"]) == (None, 150), batch

    batch = until(client, run(client, jsonl("good", endpoint=EMBEDDINGS), endpoint=EMBEDDINGS), is_final)
    (line,) = by_custom_id(client.files.content(batch.output_file_id).text).values()
    assert [len(one["embedding"]) for one in line["response"]["body"]["data"]] == [3, 3], line
    assert (usage(batch)["input_tokens"], usage(batch)["output_tokens"]) == (7, 0), batch


def usage(batch):
    """Not a field of version 1."""
    return batch.to_dict()["usage"]


def check_lists_and_cancels(client):
    # No create of the SDK makes this one: `requests` in the body. It is listed among the others.
    item = {"custom_id": "a", "params": {"model": "echo-1", "messages": [{"role": "user", "content": "a"}]}}
    chat = client.post("/batches", body={"requests": [item]}, cast_to=openai.types.Batch)
    running = run(client, jsonl("good", "hang"))
    until(client, running, lambda batch: batch.request_counts.completed == 1)
    validating = run(client, jsonl("hang"))
    cancelled_early = client.batches.cancel(validating.id)
    newest = [batch.id for batch in client.batches.list(limit=1)][:3]
    assert newest == [validating.id, running.id, chat.id], newest
    assert client.batches.list(limit=2, after=validating.id).data[0].id == running.id
    for batch in (cancelled_early, client.batches.cancel(running.id)):
        assert (batch.status in ("cancelling", "cancelled"), bool(batch.cancelling_at)) == (True, True), batch
        batch = until(client, batch, is_final)
        assert (batch.status, bool(batch.cancelled_at)) == ("cancelled", True), batch
    batch = client.batches.retrieve(running.id)
    assert said(by_custom_id(client.files.content(batch.output_file_id).text)["good"]) == "echo good"
    stopped = by_custom_id(client.files.content(batch.error_file_id).text)["hang"]
    assert (stopped["response"], stopped["error"]["code"]) == (None, "batch_cancelled"), stopped
    raises(openai.ConflictError, lambda: client.batches.cancel(running.id))


def check_failures(client):
    """An error of the file's content is the batch's; one of a parameter is the request's."""
    whole = json.loads(jsonl("good"))
    lines = [
        json.dumps(whole),
        "{",
        json.dumps(whole),
        json.dumps(whole | {"custom_id": "b", "url": RESPONSES}),
        "",
        json.dumps(whole | {"custom_id": "c", "method": "GET"}),
        json.dumps({"custom_id": "d", "method": "POST", "url": CHAT}),
    ]
    failed = until(client, run(client, "\r\n".join(lines).encode()), is_final)
    assert (failed.status, bool(failed.failed_at)) == ("failed", True), failed
    expected = [
        (2, "invalid_json_line"),
        (3, "duplicate_custom_id"),
        (4, "invalid_url"),
        (6, "invalid_method"),
        (7, "missing_required_parameter"),
    ]
    assert [(error.line, error.code) for error in failed.errors.data] == expected, failed
    assert (failed.output_file_id, failed.error_file_id) == (None, None), failed
    empty = until(client, run(client, b"\n"), is_final)
    assert [error.code for error in empty.errors.data] == ["empty_file"], empty
    all_failed = until(client, run(client, jsonl("refuse")), is_final)
    assert (all_failed.status, all_failed.output_file_id) == ("completed", None), all_failed
    assert all_failed.error_file_id, all_failed

    create = client.batches.create
    known = {"input_file_id": failed.input_file_id, "endpoint": CHAT, "completion_window": "24h"}
    for wrong in (
        {"input_file_id": "file-none"},
        {"input_file_id": all_failed.error_file_id},
        {"endpoint": "/v1/completions"},
        {"completion_window": "1h"},
        {"metadata": {"key": "v" * 513}},
    ):
        error = raises(openai.BadRequestError, lambda wrong=wrong: create(**(known | wrong)))
        assert error.param.partition(".")[0] in wrong, (wrong, error.param)
    error = raises(openai.BadRequestError, lambda: client.files.create(file=b"{}", purpose="fine-tune"))
    assert error.param == "purpose", error.body
    raises(openai.NotFoundError, lambda: client.batches.retrieve("batch_none"))


async def newest(pages):
    """The first of a list that is read to its end, page by page."""
    found = [one async for one in pages]
    return found[0]


async def async_life():
    async with openai.AsyncOpenAI(**OPTIONS) as client:
        content = jsonl("good", "refuse")
        file = await client.files.create(file=("async.jsonl", content), purpose="batch", expires_after=HOUR)
        assert (await newest(client.files.list(limit=1, purpose="batch"))).id == file.id
        assert (await client.files.retrieve(file.id)) == file
        assert (await client.files.content(file.id)).content == content
        batch = await client.batches.create(
            input_file_id=file.id, endpoint=CHAT, completion_window="24h", metadata={"job": "async"}
        )
        assert (await newest(client.batches.list(limit=1))).id == batch.id
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not is_final(batch):
            assert time.monotonic() < deadline, batch
            await asyncio.sleep(0.2)
            batch = await client.batches.retrieve(batch.id)
        output = await client.files.content(batch.output_file_id)
        assert said(by_custom_id(output.text)["good"]) == "echo good", output.text
        async with client.files.with_streaming_response.content(batch.error_file_id) as errors:
            (line,) = [json.loads(line) async for line in errors.iter_lines()]
        assert (line["custom_id"], line["response"]["status_code"]) == ("refuse", 400), line
        for one in (file.id, batch.output_file_id, batch.error_file_id):
            assert (await client.files.delete(one)).deleted
        try:
            await client.batches.cancel(batch.id)
        except openai.ConflictError:
            return
        raise AssertionError(batch)


with openai.OpenAI(**OPTIONS) as client:
    check_models(client)
    check_uploads(client)
    check_whole_life(client)
    check_other_endpoints(client)
    check_lists_and_cancels(client)
    check_failures(client)
asyncio.run(async_life())
