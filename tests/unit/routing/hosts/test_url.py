"""The URL of a call: the base URL, the adapter's path, the upstream's name and the query."""

from __future__ import annotations

import pytest

from routing.adapters import ADAPTERS
from routing.hosts.url import call_url, check_upstream_name


def url_of(base_url: str, *, adapter: str = "openai", name: str = "m", **query: str) -> str:
    return call_url(ADAPTERS[adapter], base_url=base_url, upstream_name=name, query=query)


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://api.openai.com", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com//", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
        ("https://openrouter.ai/api/v1/", "https://openrouter.ai/api/v1/chat/completions"),
        ("http://h:1/v10", "http://h:1/v10/chat/completions"),
        ("http://h/gateway", "http://h/gateway/chat/completions"),
        ("http://h/v1beta/openai", "http://h/v1beta/openai/chat/completions"),
        ("http://h/v1/x%2fy/", "http://h/v1/x%2fy/chat/completions"),
    ],
)
def test_a_base_url_with_a_path_is_given_only_what_follows_v1(base_url: str, url: str) -> None:
    assert url_of(base_url) == url


@pytest.mark.parametrize(
    ("adapter", "url"),
    [
        ("openai", "https://api.perplexity.ai/chat/completions"),
        ("openai", "http://h/v1/chat/completions"),
        ("openai_responses", "http://h/v1/responses"),
        ("openai_embeddings", "http://h/v1/embeddings"),
        ("anthropic", "http://h/v1/messages"),
    ],
)
def test_a_base_url_that_is_the_whole_url_of_a_call_is_not_given_its_end_twice(
    adapter: str, url: str
) -> None:
    assert url_of(url, adapter=adapter) == url
    assert url_of(f"{url}/", adapter=adapter) == url


@pytest.mark.parametrize(
    ("base_url", "adapter", "url"),
    [
        ("http://chat/completions", "openai", "http://chat/completions/chat/completions"),
        ("http://h/xchat/completions", "openai", "http://h/xchat/completions/chat/completions"),
        ("http://h/messages", "anthropic", "http://h/messages/v1/messages"),
        ("http://v1", "anthropic", "http://v1/v1/messages"),
    ],
)
def test_the_name_of_a_host_and_half_a_segment_are_no_end_of_a_path(
    base_url: str, adapter: str, url: str
) -> None:
    assert url_of(base_url, adapter=adapter) == url


@pytest.mark.parametrize(
    ("adapter", "bare", "with_path"),
    [
        ("openai", "http://h/v1/chat/completions", "http://h/a/chat/completions"),
        ("openai_responses", "http://h/v1/responses", "http://h/a/responses"),
        ("openai_embeddings", "http://h/v1/embeddings", "http://h/a/embeddings"),
        ("anthropic", "http://h/v1/messages", "http://h/a/v1/messages"),
    ],
)
def test_each_shape_has_its_path(adapter: str, bare: str, with_path: str) -> None:
    assert url_of("http://h", adapter=adapter) == bare
    assert url_of("http://h/a", adapter=adapter) == with_path


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("http://h/v1", "http://h/v1/messages"),
        ("http://h/anthropic/v1/", "http://h/anthropic/v1/messages"),
        ("http://h/anthropic", "http://h/anthropic/v1/messages"),
        ("http://h/xv1", "http://h/xv1/v1/messages"),
        ("http://h/{model}", "http://h/v1/v1/messages"),
    ],
)
def test_messages_stand_below_v1_and_one_v1_only(base_url: str, url: str) -> None:
    assert url_of(base_url, adapter="anthropic", name="v1") == url


@pytest.mark.parametrize(
    ("name", "encoded"),
    [
        ("gpt-4.1", "gpt-4.1"),
        ("vendor/m", "vendor%2Fm"),
        ("a b?c#d%e", "a%20b%3Fc%23d%25e"),
        ("%2e%2e", "%252e%252e"),
        ("{model}", "%7Bmodel%7D"),
        ("é\n", "%C3%A9%0A"),
        ("...", "..."),
    ],
)
def test_a_name_in_the_path_is_percent_encoded_whole(name: str, encoded: str) -> None:
    base_url = "http://h/openai/deployments/{model}"
    assert url_of(base_url, name=name) == f"http://h/openai/deployments/{encoded}/chat/completions"


@pytest.mark.parametrize("name", [".", ".."])
@pytest.mark.parametrize("base_url", ["http://h/{model}", "http://h/x{model}y/z", "http://h/a/{model}/b"])
def test_a_name_that_is_a_step_along_the_path_is_refused(base_url: str, name: str) -> None:
    with pytest.raises(ValueError, match="cannot stand for"):
        check_upstream_name(base_url, upstream_name=name)
    with pytest.raises(ValueError, match="cannot stand for"):
        url_of(base_url, name=name)
    assert url_of("http://h/a", name=name) == "http://h/a/chat/completions"


@pytest.mark.parametrize(
    ("base_url", "message"),
    [
        ("http://h/..", "without the segments"),
        ("http://h/a/./b", "without the segments"),
        ("http://h/a/../b", "without the segments"),
        ("http://h/a/%2e%2E/b", "without the segments"),
        ("http://h/a/.%2e", "without the segments"),
        ("http://{model}.h/a", "in the path alone"),
        ("http://h:{model}/a", "a port from 0 to 65535"),
        ("http://{model}@h/a", "without credentials"),
        ("http://h/a/{deployment}", "no braces"),
        ("http://h/a/{model", "no braces"),
        ("http://h/100%/a", "two hexadecimal digits"),
        ("http://h/a?b={model}", "without ? and #"),
        ("http://h/a b", "without blanks"),
    ],
)
def test_what_must_not_be_sent_makes_no_url(base_url: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        url_of(base_url)


def test_a_query_is_percent_encoded() -> None:
    query = {"api-version": "2024-10-21", "a&b": "c=d /é"}
    url = call_url(ADAPTERS["openai"], base_url="http://h/v1", upstream_name="m", query=query)
    assert url == "http://h/v1/chat/completions?api-version=2024-10-21&a%26b=c%3Dd%20%2F%C3%A9"
