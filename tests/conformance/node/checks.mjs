// The checks through OpenAI's SDK for Node: `node checks.mjs BASE_URL API_KEY MODEL [close]`, one JSON
// object on stdout: {NAME: {ok, detail, observed}}. The names are those of checks_node.py. With
// "close" each request has a connection of its own.

import assert from "node:assert/strict";
import OpenAI from "openai";

const [baseURL, apiKey, model, connection] = process.argv.slice(2);
const defaultHeaders = connection ? { connection } : {};
const client = new OpenAI({ baseURL, apiKey, defaultHeaders, maxRetries: 0, timeout: 120_000 });
const messages = [{ role: "user", content: "Count from 1 to 5." }];
const body = { model, messages, max_tokens: 8, temperature: 0, cache_prompt: false };
const schema = {
  type: "object",
  properties: { ok: { type: "boolean" } },
  required: ["ok"],
  additionalProperties: false,
};
const weather = {
  type: "function",
  function: {
    name: "weather",
    description: "The weather.",
    parameters: {
      type: "object",
      properties: { city: { type: "string", enum: ["Paris", "Rome"] } },
      required: ["city"],
    },
  },
};

async function textOf(stream) {
  let text = "";
  for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
  return text;
}

const checks = {
  async node_chat() {
    const answer = await client.chat.completions.create(body);
    assert.equal(answer.usage.completion_tokens, 8);
    return answer.choices[0].message.content;
  },
  async node_stream() {
    return await textOf(await client.chat.completions.create({ ...body, stream: true }));
  },
  async node_stream_usage() {
    const options = { stream: true, stream_options: { include_usage: true } };
    const chunks = [];
    for await (const chunk of await client.chat.completions.create({ ...body, ...options }))
      chunks.push(chunk);
    assert.equal(chunks.at(-1).usage.completion_tokens, 8);
    assert.equal(chunks.filter((chunk) => chunk.usage).length, 1);
    return chunks.at(-1).usage.prompt_tokens;
  },
  async node_stream_helper() {
    const runner = client.chat.completions.stream(body);
    let text = "";
    runner.on("content", (delta) => (text += delta));
    const final = await runner.finalChatCompletion();
    assert.equal(final.choices[0].message.content, text);
    return text;
  },
  async node_stream_left_early() {
    const stream = await client.chat.completions.create({ ...body, max_tokens: 200, stream: true });
    for await (const chunk of stream) if (chunk) break;
    const answer = await client.chat.completions.create({ ...body, max_tokens: 1 });
    return answer.choices[0].message.content;
  },
  async node_schema() {
    const format = { type: "json_schema", json_schema: { name: "v", strict: true, schema } };
    const answer = await client.chat.completions.create({
      ...body,
      max_tokens: 60,
      response_format: format,
    });
    assert.deepEqual(Object.keys(JSON.parse(answer.choices[0].message.content)), ["ok"]);
    return answer.choices[0].message.content;
  },
  async node_tool_streamed() {
    const stream = await client.chat.completions.create({
      ...body,
      messages: [{ role: "user", content: "Weather in Paris?" }],
      tools: [weather],
      tool_choice: "required",
      max_tokens: 90,
      stop: ["</"],
      chat_template_kwargs: { call_tool: true },
      stream: true,
    });
    let name, spelled = "";
    for await (const chunk of stream)
      for (const call of chunk.choices[0]?.delta?.tool_calls ?? []) {
        name ??= call.function.name;
        spelled += call.function.arguments ?? "";
      }
    assert.equal(name, "weather");
    assert.ok(["Paris", "Rome"].includes(JSON.parse(spelled).city));
    return spelled;
  },
  async node_logprobs() {
    const answer = await client.chat.completions.create({ ...body, logprobs: true });
    return answer.choices[0].logprobs.content.map((row) => row.token);
  },
  async node_text_completion() {
    const answer = await client.completions.create({
      model,
      prompt: "Once upon a time",
      max_tokens: 6,
      temperature: 0,
      cache_prompt: false,
    });
    return answer.choices[0].text;
  },
  async node_responses() {
    const answer = await client.responses.create({
      model,
      input: "Count from 1 to 5.",
      max_output_tokens: 8,
      temperature: 0,
    });
    assert.ok(answer.output_text);
    return answer.output_text;
  },
  async node_models() {
    const ids = [];
    for await (const row of client.models.list()) ids.push(row.id);
    assert.ok(ids.includes(model) || ids.includes(model.split("@")[0]));
    return null;
  },
  async node_embeddings() {
    await assert.rejects(
      client.embeddings.create({ model, input: "x" }),
      (error) => error instanceof OpenAI.APIError && error.status === 501,
    );
    return null;
  },
  async node_bad_request() {
    await assert.rejects(
      client.chat.completions.create({ ...body, max_tokens: "many" }),
      (error) => error instanceof OpenAI.BadRequestError && error.message.length > 0,
    );
    return null;
  },
  async node_unknown_model() {
    await assert.rejects(
      client.chat.completions.create({ ...body, model: "nobody" }),
      (error) => error instanceof OpenAI.NotFoundError && error.code === "model_not_found",
    );
    return null;
  },
  async node_headers() {
    const { response } = await client.chat.completions.create({ ...body, max_tokens: 1 }).withResponse();
    assert.ok(response.headers.get("x-specroute-worker"));
    assert.ok(response.headers.get("x-request-id"));
    return null;
  },
};

const results = {};
for (const [name, run] of Object.entries(checks)) {
  const began = performance.now();
  try {
    results[name] = { ok: true, detail: "", observed: (await run()) ?? null };
  } catch (error) {
    results[name] = { ok: false, detail: `${error.name}: ${error.message}`.slice(0, 400) };
  }
  results[name].seconds = (performance.now() - began) / 1000;
}
console.log(JSON.stringify(results));
