"""inspect_ai's batches with its OpenAI provider: Chat Completions and Responses."""

import asyncio
import os

from inspect_ai.model import BatchConfig, GenerateConfig, get_model

ODD = os.environ["ODD"]
batch = BatchConfig(size=3, send_delay=0.2, tick=0.2)


async def answers(name, *, responses_api):
    model = get_model(
        f"openai/{name}",
        base_url=f"{os.environ['URL']}/v1",
        api_key=os.environ["RELAY_KEY"],
        config=GenerateConfig(batch=batch),
        responses_api=responses_api,
    )
    prompts = ("good", "odd", "third")
    outputs = await asyncio.gather(*(model.generate(prompt) for prompt in prompts))
    return [output.completion for output in outputs]


async def main():
    for name, responses_api in (("echo-1", False), ("echo-1-responses", True)):
        good, odd, third = await asyncio.wait_for(answers(name, responses_api=responses_api), 60)
        assert (good, third) == ("echo good", "echo third"), (good, third)
        assert odd.startswith(ODD), odd


asyncio.run(main())
