import pytest
from django.conf import LazySettings

from bench.figures import BenchError
from bench.finished_items import answer_of, finish_items


def test_an_answer_that_the_product_would_keep_in_the_payload_store_is_rejected(
    settings: LazySettings,
) -> None:
    settings.RELAY_BATCH_INLINE_RESPONSE_BYTES = 999
    with pytest.raises(BenchError, match="more than 999 bytes"):
        finish_items("01900000-0000-7000-8000-000000000000", count=1, answer=answer_of(1000))
