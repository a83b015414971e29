"""Limits on request bodies, in bytes after decoding, of every route that takes a body.

| body | limit | error |
| --- | --- | --- |
| a submission of Relay's dialect | setting `RELAY_MAX_REQUEST_BYTES` | 400 `body_too_large` |
| a submission with `custom_id` (chat, messages) | setting `RELAY_CUSTOM_ID_MAX_REQUEST_BYTES` | 400, messages: 413 |
| an uploaded file | setting `RELAY_MAX_FILE_BYTES`, and MAX_FORM_PARTS_BYTES for the rest of its form | 413 |
| the item filter of a retry | MAX_ITEM_FILTER_BYTES | as a submission |
| a request of a logged-in person for tokens | MAX_SESSION_BODY_BYTES | 413 |
| a form of the admin, its login too | MAX_FORM_BYTES | Django's 400 |

How a body is read up to its limit: relaybatch.http.body.request_body, and asgi_limits under an ASGI server.
"""

from __future__ import annotations

from django.conf import settings

# A list of 50,000 items by `idx`, or by ids of 150 bytes.
MAX_ITEM_FILTER_BYTES = 8_388_608
MAX_SESSION_BODY_BYTES = 10_000
MAX_FORM_BYTES = 1_048_576
# All that a multipart body holds beside the file: other fields, headers of the parts, boundaries.
MAX_FORM_PARTS_BYTES = 1_048_576


def max_body_bytes() -> int:
    """The largest limit of any route. The packages' own limits are the settings that BODY_LIMIT_SETTINGS and
    FILE_LIMIT_SETTINGS name."""
    bodies = (int(getattr(settings, name)) for name in settings.BODY_LIMIT_SETTINGS)
    files = (int(getattr(settings, name)) + MAX_FORM_PARTS_BYTES for name in settings.FILE_LIMIT_SETTINGS)
    return max(MAX_ITEM_FILTER_BYTES, MAX_SESSION_BODY_BYTES, MAX_FORM_BYTES, *bodies, *files)


def max_sent_bytes() -> int:
    """The largest body that any route can accept, in bytes as sent: gzip may make a body a little larger."""
    return max_compressed_bytes(max_body_bytes())


def max_compressed_bytes(limit_bytes: int) -> int:
    """The most bytes that a gzip body within the limit may take. What cannot be compressed grows a little."""
    return limit_bytes + limit_bytes // 64 + (1 << 16)
