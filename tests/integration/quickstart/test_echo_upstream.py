"""The demo upstream, over a real socket."""

from __future__ import annotations

import contextlib
import http.client
import math
import threading
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
import requests

from relaybatch.quickstart.demo.echo_upstream import EchoServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = EchoServer(port=0, delay_seconds=0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_openai_s_sdk_reads_a_chat_completion(url: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client:
        answer = client.chat.completions.create(
            model="demo",
            messages=[{"role": "system", "content": "Be brief. " * 20}, {"role": "user", "content": "hello"}],
        )
    assert answer.choices[0].message.content == "You said: hello"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (51, 3)
    assert answer.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens == 48


@pytest.mark.parametrize(
    "given", ["hello", [{"role": "user", "content": [{"type": "input_text", "text": "hello"}]}]]
)
def test_openai_s_sdk_reads_a_response(url: str, given: Any) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client:
        answer = client.responses.create(model="demo", input=given)
    assert answer.output_text == "You said: hello"
    assert answer.usage is not None
    assert answer.usage.output_tokens == 3


def test_anthropic_s_sdk_reads_a_message(url: str) -> None:
    with anthropic.Anthropic(base_url=url, api_key="none") as client:
        answer = client.messages.create(
            model="demo",
            max_tokens=9,
            system="Be brief. " * 20,
            messages=[{"role": "user", "content": "hello"}],
        )
    assert [block.text for block in answer.content if block.type == "text"] == ["You said: hello"]
    assert (answer.usage.input_tokens, answer.usage.cache_read_input_tokens) == (3, 48)


def test_openai_s_sdk_reads_embeddings_as_floats_and_by_default_as_base64(url: str) -> None:
    texts = ["hello", "you", "hello"]
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client:
        by_default = client.embeddings.create(model="demo", input=texts)
        floats = client.embeddings.create(model="demo", input=texts, encoding_format="float")
    vectors = [one.embedding for one in by_default.data]
    assert vectors == [one.embedding for one in floats.data]
    assert [len(vector) for vector in vectors] == [8, 8, 8]
    assert vectors[0] == vectors[2] != vectors[1]
    assert math.hypot(*vectors[0]) == pytest.approx(1)
    assert (by_default.usage.prompt_tokens, by_default.usage.total_tokens) == (3, 3)


@pytest.mark.parametrize(
    ("given", "vectors"), [("hello", 1), ([1, 2, 3], 1), ([[1, 2], [3]], 2), ([], 0), (None, 1), ({}, 1)]
)
def test_there_is_a_vector_for_each_input(url: str, given: Any, vectors: int) -> None:
    body = {"model": "m", "input": given, "dimensions": 3}
    answer = requests.post(f"{url}/v1/embeddings", json=body, timeout=10).json()
    assert [len(one["embedding"]) for one in answer["data"]] == [3] * vectors


@pytest.mark.parametrize("dimensions", [0, -1, 3073, True, "3", None])
def test_odd_dimensions_count_as_left_out(url: str, dimensions: Any) -> None:
    body = {"model": "m", "input": "hello", "dimensions": dimensions}
    (one,) = requests.post(f"{url}/v1/embeddings", json=body, timeout=10).json()["data"]
    assert len(one["embedding"]) == 8


@pytest.mark.parametrize(
    "body", ["", "{", "[]", "null", '{"model": 1}', '{"model": "m", "stream": true}', "[" * 90_000]
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/v1/messages"])
def test_a_bad_body_is_a_json_error(url: str, path: str, body: str) -> None:
    answer = requests.post(url + path, data=body, timeout=10)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "body", [{}, {"messages": "x"}, {"messages": [1, {"role": "user", "content": None}]}]
)
def test_odd_messages_are_answered_all_the_same(url: str, body: dict[str, Any]) -> None:
    answer = requests.post(f"{url}/v1/messages", json={"model": "m", **body}, timeout=10)
    assert answer.status_code == 200
    assert answer.json()["content"][0]["text"] == "You said: "


def test_an_unknown_path_is_a_json_404(url: str) -> None:
    assert requests.post(f"{url}/v1/other", json={}, timeout=10).json()["error"]["message"]
    assert requests.get(f"{url}/", timeout=10).status_code == 404
    assert requests.get(f"{url}/v1/messages", timeout=10).status_code == 405


def test_a_connection_is_kept_for_the_next_request(url: str) -> None:
    with contextlib.closing(
        http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
    ) as connection:
        sockets = set()
        for _ in range(3):
            connection.request("POST", "/v1/chat/completions", body=b'{"model": "m"}')
            assert connection.getresponse().read()
            sockets.add(connection.sock)
    assert len(sockets) == 1
