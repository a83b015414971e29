// OpenAI's SDK for TypeScript on chat batches; only the create is a plain request.
import assert from "node:assert";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.env.URL + "/v1", apiKey: process.env.RELAY_KEY });
const created = (...texts) =>
  client.post("/batches", {
    body: {
      requests: texts.map((content) => ({
        custom_id: content,
        params: { model: "echo-1", messages: [{ role: "user", content }] },
      })),
    },
  });
const pause = () => new Promise((resolve) => setTimeout(resolve, 200));

const hanging = await created("hang");
await assert.rejects(async () => client.get(`/batches/${hanging.id}/results`), OpenAI.ConflictError);
let batch = await created("good", "odd");
const ids = [];
for await (const one of client.batches.list({ limit: 1 })) ids.push(one.id);
assert.deepEqual(ids, [batch.id, hanging.id]);
assert.ok((await client.batches.cancel(hanging.id)).cancelling_at);
while ((await client.batches.retrieve(hanging.id)).status !== "cancelled") await pause();
while ((batch = await client.batches.retrieve(batch.id)).status !== "completed") await pause();
assert.equal(batch.request_counts.completed, 2);
assert.equal(batch.usage.total_tokens, 300);
const results = await client.get(`/batches/${batch.id}/results`, { __binaryResponse: true });
const lines = (await results.text()).split("\n").slice(0, -1).map((line) => JSON.parse(line));
assert.deepEqual(lines.map((line) => line.custom_id), ["good", "odd"]);
assert.ok(lines[1].result.message.choices[0].message.content.startsWith(process.env.ODD));
assert.equal((await client.batches.cancel(batch.id)).status, "completed");
