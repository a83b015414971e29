"""instructor's BatchProcessor with Anthropic: structured answers out of a batch."""

import gc
import os
import time

# instructor lets go of its client before it has read the results to their end: collected in between (the two refer to
# each other, so that happens at some time or other), the client closes the connection that is being read.
gc.disable()
os.environ["ANTHROPIC_BASE_URL"] = os.environ["URL"]
os.environ["ANTHROPIC_API_KEY"] = os.environ["RELAY_KEY"]

from instructor.batch import BatchProcessor
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


processor = BatchProcessor("anthropic/echo-1-messages", Person)
texts = ["Ada is 36", "refuse"]
buffer = processor.create_batch_from_messages([[{"role": "user", "content": text}] for text in texts])
batch_id = processor.submit_batch(buffer)
while processor.get_batch_status(batch_id)["status"] != "ended":
    time.sleep(0.2)
good, refused = processor.get_results(batch_id)
assert good.result == Person(name="Ada", age=36), good
assert refused.custom_id == "request-1", refused
assert not refused.success, refused
assert refused.raw_data["result"]["error"]["error"]["type"] == "invalid_request_error", refused
listed = processor.list_batches(limit=5)
assert [job.id for job in listed] == [batch_id], listed
assert (listed[0].request_counts.total, listed[0].request_counts.succeeded) == (2, 1), listed
assert processor.cancel_batch(batch_id)["processing_status"] == "ended"
