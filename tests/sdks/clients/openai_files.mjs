// OpenAI's SDK for TypeScript on files and batches, from upload to delete, on its defaults.
import assert from "node:assert";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import OpenAI, { toFile } from "openai";

const client = new OpenAI({ baseURL: process.env.URL + "/v1", apiKey: process.env.RELAY_KEY });
const hour = { anchor: "created_at", seconds: 3600 };
const CHAT = "/v1/chat/completions";
const RESPONSES = "/v1/responses";
const EMBEDDINGS = "/v1/embeddings";
const bodies = {
  [CHAT]: (text) => ({ model: "echo-1", messages: [{ role: "user", content: text }] }),
  [RESPONSES]: (text) => ({ model: "echo-1-responses", input: text }),
  [EMBEDDINGS]: (text) => ({ model: "echo-1-embeddings", input: ["first", text] }),
};
const jsonl = (texts, url = CHAT) =>
  texts.map((text) => JSON.stringify({ custom_id: text, method: "POST", url, body: bodies[url](text) }) + "\n").join("");
const pause = () => new Promise((resolve) => setTimeout(resolve, 200));
const isFinal = (batch) => ["completed", "failed", "expired", "cancelled"].includes(batch.status);
const ids = async (pages) => {
  const found = [];
  for await (const one of pages) found.push(one.id);
  return found;
};

async function until(batch, isReached = isFinal) {
  const deadline = Date.now() + 60_000;
  while (!isReached(batch)) {
    assert.ok(Date.now() < deadline, JSON.stringify(batch));
    await pause();
    batch = await client.batches.retrieve(batch.id);
  }
  return batch;
}

async function run(content, fields = {}) {
  const file = await client.files.create({ file: await toFile(Buffer.from(content), "input.jsonl"), purpose: "batch" });
  return client.batches.create({ input_file_id: file.id, endpoint: CHAT, completion_window: "24h", ...fields });
}

async function linesOf(fileId) {
  // Cut as clients do that know no JSON Lines: also at U+2028.
  const text = await (await client.files.content(fileId)).text();
  const lines = text.split(/\r\n|[\n\r\u2028\u2029\u0085]/).filter(Boolean).map((line) => JSON.parse(line));
  return Object.fromEntries(lines.map((line) => [line.custom_id, line]));
}

const said = (line) => line.response.body.choices[0].message.content;

// Uploads: a stream from a path, a buffer, a File.
const content = jsonl(["good"]);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "openai-files-"));
fs.writeFileSync(path.join(folder, "by path.jsonl"), content);
const files = [
  await client.files.create({ file: fs.createReadStream(path.join(folder, "by path.jsonl")), purpose: "batch" }),
  await client.files.create({ file: await toFile(Buffer.from(content), "Grüße 😀.jsonl"), purpose: "batch", expires_after: hour }),
  await client.files.create({ file: new File([content], "file.jsonl"), purpose: "batch" }),
];
fs.rmSync(folder, { recursive: true });
assert.deepEqual(files.map((file) => file.filename), ["by path.jsonl", "Grüße 😀.jsonl", "file.jsonl"]);
assert.deepEqual(files.map((file) => file.bytes), Array(3).fill(Buffer.byteLength(content)));
assert.equal(files[1].expires_at, files[1].created_at + 3600);
const uploaded = files.map((file) => file.id);
assert.deepEqual(await ids(client.files.list({ limit: 2 })), uploaded.toReversed());
assert.deepEqual(await ids(client.files.list({ limit: 1, order: "asc", purpose: "batch" })), uploaded);
assert.deepEqual(await client.files.retrieve(uploaded[0]), files[0]);
assert.equal(await (await client.files.content(uploaded[0])).text(), content);
assert.equal((await client.files.waitForProcessing(uploaded[0], { pollInterval: 100 })).status, "processed");
for (const id of uploaded) assert.ok((await client.files.delete(id)).deleted);
await assert.rejects(async () => client.files.retrieve(uploaded[0]), OpenAI.NotFoundError);
await assert.rejects(async () => client.files.content(uploaded[0]), OpenAI.NotFoundError);

// A whole life.
let batch = await run(jsonl(["good", "odd", "refuse"]), { metadata: { job: "nightly" }, output_expires_after: hour });
assert.deepEqual([batch.status, batch.metadata, batch.output_file_id], ["validating", { job: "nightly" }, null]);
batch = await until(batch);
assert.equal(batch.status, "completed");
assert.deepEqual({ ...batch.request_counts }, { total: 3, completed: 2, failed: 1 });
const output = await linesOf(batch.output_file_id);
assert.equal(said(output.good), "echo good");
assert.ok(said(output.odd).startsWith(process.env.ODD));
const { refuse } = await linesOf(batch.error_file_id);
assert.deepEqual([refuse.response.status_code, refuse.error], [400, null]);
assert.equal(refuse.response.body.error.message, "max_tokens: too many");
const outputFile = await client.files.retrieve(batch.output_file_id);
assert.deepEqual([outputFile.purpose, outputFile.expires_at], ["batch_output", outputFile.created_at + 3600]);
await assert.rejects(async () => client.batches.cancel(batch.id), OpenAI.ConflictError);
assert.ok((await client.files.delete(batch.output_file_id)).deleted);
await assert.rejects(async () => client.files.content(batch.output_file_id), OpenAI.NotFoundError);

// The other endpoints.
batch = await until(await run(jsonl(["good"], RESPONSES), { endpoint: RESPONSES }));
assert.equal((await linesOf(batch.output_file_id)).good.response.body.output[0].content[0].text, "echo good");
batch = await until(await run(jsonl(["good"], EMBEDDINGS), { endpoint: EMBEDDINGS }));
const { data } = (await linesOf(batch.output_file_id)).good.response.body;
assert.deepEqual(data.map((one) => one.embedding.length), [3, 3]);
assert.deepEqual([batch.usage.input_tokens, batch.usage.output_tokens], [7, 0]);

// Lists, with a chat batch among the others, and cancels.
const item = { custom_id: "a", params: bodies[CHAT]("a") };
const chat = await client.post("/batches", { body: { requests: [item] } });
const running = await until(await run(jsonl(["good", "hang"])), (one) => one.request_counts.completed === 1);
const validating = await run(jsonl(["hang"]));
const cancelledEarly = await client.batches.cancel(validating.id);
assert.deepEqual((await ids(client.batches.list({ limit: 1 }))).slice(0, 3), [validating.id, running.id, chat.id]);
for (const one of [cancelledEarly, await client.batches.cancel(running.id)]) {
  assert.ok(one.cancelling_at);
  assert.equal((await until(one)).status, "cancelled");
}
batch = await client.batches.retrieve(running.id);
assert.equal(said((await linesOf(batch.output_file_id)).good), "echo good");
assert.equal((await linesOf(batch.error_file_id)).hang.error.code, "batch_cancelled");

// What is wrong in the file, and in the parameters.
batch = await until(await run(content + "{\n" + content));
assert.equal(batch.status, "failed");
assert.deepEqual(
  batch.errors.data.map((error) => [error.line, error.code]),
  [[2, "invalid_json_line"], [3, "duplicate_custom_id"]],
);
await assert.rejects(async () => run(content, { endpoint: "/v1/completions" }), OpenAI.BadRequestError);
await assert.rejects(async () => run(content, { input_file_id: "file-none" }), OpenAI.BadRequestError);
