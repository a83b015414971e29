"""The table of hostile inputs for every decoder of untrusted bytes, by the group of decoders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.hostile.request_rows import create_rows, retry_rows
from tests.support.hostile.upstream_rows import answer_rows, exchange_rows, item_rows, result_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.hostile.hostile_json import Row

ROWS: dict[str, Callable[[], list[Row]]] = {
    "create": create_rows,
    "retry": retry_rows,
    "item": item_rows,
    "answer": answer_rows,
    "exchange": exchange_rows,
    "result": result_rows,
}
