"""Curator's batch mode with its OpenAI backend: structured answers, in the order of the rows, out of two batches."""

import os
import tempfile

folder = tempfile.TemporaryDirectory()
os.environ |= {
    "OPENAI_API_KEY": os.environ["RELAY_KEY"],
    "CURATOR_CACHE_DIR": folder.name,
    "HF_HOME": folder.name,
    # Without these it would call hosts of its own.
    "TELEMETRY_ENABLED": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "HF_HUB_OFFLINE": "1",
}

import openai
from bespokelabs import curator
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


class Extractor(curator.LLM):
    response_format = Person

    def prompt(self, row):
        return row["text"]

    def parse(self, row, answer):
        return {"text": row["text"], "name": answer.name, "age": answer.age}


base_url = f"{os.environ['URL']}/v1"
extractor = Extractor(
    model_name="echo-1",
    backend="openai",
    batch=True,
    backend_params={"base_url": base_url, "batch_size": 2, "batch_check_interval": 1},
)
texts = ["Ada is 36", "Ada was 36", "Ada: 36"]
rows = extractor([{"text": text} for text in texts]).dataset
assert [(row["text"], row["name"], row["age"]) for row in rows] == [(text, "Ada", 36) for text in texts], rows
client = openai.OpenAI(base_url=base_url)
assert sorted(batch.request_counts.total for batch in client.batches.list()) == [1, 2]
assert [file.purpose for file in client.files.list()].count("batch") == 2
