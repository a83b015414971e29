// Anthropic's SDK for TypeScript: from create to delete, on its defaults.
import assert from "node:assert";
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.env.URL, apiKey: process.env.RELAY_KEY });
const requests = (...texts) =>
  texts.map((content) => ({
    custom_id: content,
    params: { model: "echo-1-messages", max_tokens: 9, messages: [{ role: "user", content }] },
  }));
const pause = () => new Promise((resolve) => setTimeout(resolve, 200));
const collected = async (items) => {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
};

for (const batches of [client.messages.batches, client.beta.messages.batches]) {
  const hanging = await batches.create({ requests: requests("hang") });
  await assert.rejects(async () => batches.results(hanging.id), Anthropic.AnthropicError);
  await assert.rejects(async () => batches.delete(hanging.id), Anthropic.ConflictError);
  let batch = await batches.create({ requests: requests("good", "odd", "refuse") });
  const ids = [batch.id, hanging.id];
  assert.deepEqual((await collected(batches.list({ limit: 1 }))).map((one) => one.id), ids);
  await batches.cancel(hanging.id);
  for (const id of ids) {
    while ((batch = await batches.retrieve(id)).processing_status !== "ended") await pause();
  }
  assert.equal(batch.request_counts.canceled, 1);
  const lines = await collected(await batches.results(ids[0]));
  assert.deepEqual(lines.map((line) => line.custom_id), ["good", "odd", "refuse"]);
  assert.equal(lines[0].result.message.content[0].text, "echo good");
  assert.ok(lines[1].result.message.content[0].text.startsWith(process.env.ODD));
  assert.equal(lines[2].result.error.type, "error");
  assert.deepEqual(lines[2].result.error.error, { type: "invalid_request_error", message: "max_tokens: too many" });
  for (const id of ids) assert.equal((await batches.delete(id)).type, "message_batch_deleted");
  assert.deepEqual(await collected(batches.list()), []);
}
