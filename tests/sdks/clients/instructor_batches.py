"""instructor's BatchProcessor with Anthropic and with OpenAI: structured answers out of a batch."""

import gc
import os
import time

# instructor lets go of its client before it has read the results to their end: collected in between (the two refer to
# each other, so that happens at some time or other), the client closes the connection that is being read.
gc.disable()
os.environ["ANTHROPIC_BASE_URL"] = os.environ["URL"]
os.environ["ANTHROPIC_API_KEY"] = os.environ["RELAY_KEY"]
os.environ["OPENAI_BASE_URL"] = os.environ["URL"] + "/v1"
os.environ["OPENAI_API_KEY"] = os.environ["RELAY_KEY"]

from instructor.batch import BatchProcessor
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


def submitted(processor, *texts):
    buffer = processor.create_batch_from_messages([[{"role": "user", "content": text}] for text in texts])
    return processor.submit_batch(buffer)


def wait(processor, batch_id, *finals):
    deadline = time.monotonic() + 60
    while (status := processor.get_batch_status(batch_id))["status"] not in finals:
        assert time.monotonic() < deadline, status
        time.sleep(0.2)
    return status


processor = BatchProcessor("anthropic/echo-1-messages", Person)
batch_id = submitted(processor, "Ada is 36", "refuse")
wait(processor, batch_id, "ended")
good, refused = processor.get_results(batch_id)
assert good.result == Person(name="Ada", age=36), good
assert refused.custom_id == "request-1", refused
assert not refused.success, refused
assert refused.raw_data["result"]["error"]["error"]["type"] == "invalid_request_error", refused
listed = processor.list_batches(limit=5)
assert [job.id for job in listed] == [batch_id], listed
assert (listed[0].request_counts.total, listed[0].request_counts.succeeded) == (2, 1), listed
assert processor.cancel_batch(batch_id)["processing_status"] == "ended"

processor = BatchProcessor("openai/echo-1", Person)
batch_id = submitted(processor, "Ada is 36", "refuse")
status = wait(processor, batch_id, "completed", "failed")
assert status["request_counts"] == {"total": 2, "completed": 1, "failed": 1}, status
(good,) = processor.get_results(batch_id)  # It reads the output file alone.
assert (good.custom_id, good.result) == ("request-0", Person(name="Ada", age=36)), good
(listed,) = processor.list_batches(limit=5)
assert (listed.id, listed.status.value, listed.request_counts.total) == (batch_id, "completed", 2), listed
assert listed.metadata == {"description": "Instructor batch job"}, listed
running = submitted(processor, "hang")
assert processor.cancel_batch(running)["cancelling_at"]
assert wait(processor, running, "cancelled")["id"] == running
