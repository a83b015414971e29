"""Frameworks do not read bodies of any size by themselves."""

from __future__ import annotations

import pytest
from django.test import RequestFactory
from django.test.client import BOUNDARY, MULTIPART_CONTENT
from rest_framework.views import APIView


def test_a_large_file_in_a_form_is_kept_neither_in_memory_nor_on_the_disk() -> None:
    part = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'.encode()
    body = part + b"x" * 3_000_000 + f"\r\n--{BOUNDARY}--\r\n".encode()
    request = RequestFactory().generic("POST", "/admin/login/", body, content_type=MULTIPART_CONTENT)
    assert not request.FILES


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", MULTIPART_CONTENT])
def test_no_view_can_have_a_body_parsed_behind_the_limits(content_type: str) -> None:
    request = RequestFactory().generic("POST", "/v1/batches", b"{}", content_type=content_type)
    with pytest.raises(NotImplementedError, match="within a limit"):
        _ = APIView().initialize_request(request).data
