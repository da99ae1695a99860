import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { ARGUMENTS, ASK_PARCEL, check, collect, FUNCTION, KEY, NAME, Parcel, QUESTION, raised, run, STORY, user, V1 } from "./cells.mjs";

const client = new OpenAI({ baseURL: V1, apiKey: KEY, maxRetries: 0 });
const ask = (model, content = QUESTION, fields = {}) =>
  client.chat.completions.create({ model, messages: user(content), max_tokens: 64, temperature: 0, ...fields });

run("openai", {
  text: async (tier) => (await ask(tier)).choices[0].message.content,
  stream: async (tier) => collect(await ask(tier, QUESTION, { stream: true, max_tokens: 12 }), (chunk) => chunk.choices[0]?.delta.content),
  tools: async (tier) => {
    await ask(tier, ASK_PARCEL, { tools: [FUNCTION], max_tokens: 12 });
    const call = { id: "call_1", type: "function", function: { name: NAME, arguments: JSON.stringify(ARGUMENTS) } };
    const result = { role: "tool", tool_call_id: "call_1", content: "Stored." };
    const messages = [...user(ASK_PARCEL), { role: "assistant", tool_calls: [call] }, result];
    return (await ask(tier, "", { messages, tools: [FUNCTION], tool_choice: "none", max_tokens: 12 })).choices[0].message.content;
  },
  forced: async (tier) => {
    let call;
    for (const tool_choice of ["required", { type: "function", function: { name: NAME } }]) {
      const { message } = (await ask(tier, ASK_PARCEL, { tools: [FUNCTION], tool_choice })).choices[0];
      call = message.tool_calls?.[0]?.function;
      check(call, `tool_choice ${JSON.stringify(tool_choice)}: ${message.content}`);
    }
    return [call.name, call.arguments];
  },
  structured: async (tier) => {
    const format = { model: tier, messages: user(ASK_PARCEL), max_tokens: 64, temperature: 0, response_format: zodResponseFormat(Parcel, "parcel") };
    return (await client.chat.completions.parse(format)).choices[0].message.parsed;
  },
  both: async (tier) => {
    const more = { tools: [FUNCTION], response_format: zodResponseFormat(Parcel, "parcel") };
    const { message } = (await ask(tier, ASK_PARCEL, more)).choices[0];
    return message.tool_calls?.[0]?.function.arguments ?? message.content;
  },
  embeddings: async (model) => (await client.embeddings.create({ model, input: QUESTION })).data[0].embedding,
  overflow: (tier) => raised(() => ask(tier, STORY), (error) => error instanceof OpenAI.BadRequestError),
  unknown: (tier) => raised(() => ask(tier), (error) => error instanceof OpenAI.NotFoundError),
});
