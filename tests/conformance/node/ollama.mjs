import { Ollama } from "ollama";
import { ARGUMENTS, ASK_PARCEL, collect, FUNCTION, NAME, QUESTION, raised, run, SCHEMA, STORY, URL_, user } from "./cells.mjs";

const client = new Ollama({ host: URL_ });
const ask = (model, content = QUESTION, fields = {}) =>
  client.chat({ model, messages: user(content), options: { num_predict: 64, temperature: 0 }, ...fields });

run("ollama", {
  text: async (tier) => (await ask(tier)).message.content,
  stream: async (tier) => collect(await ask(tier, QUESTION, { stream: true }), (part) => part.message.content),
  tools: async (tier) => {
    await ask(tier, ASK_PARCEL, { tools: [FUNCTION] });
    const call = { function: { name: NAME, arguments: ARGUMENTS } };
    const result = { role: "tool", tool_name: NAME, content: "Stored." };
    const messages = [...user(ASK_PARCEL), { role: "assistant", content: "", tool_calls: [call] }, result];
    return (await client.chat({ model: tier, messages, options: { num_predict: 12 } })).message.content;
  },
  structured: async (tier) => (await ask(tier, ASK_PARCEL, { format: SCHEMA })).message.content,
  both: async (tier) => {
    const { message } = await ask(tier, ASK_PARCEL, { format: SCHEMA, tools: [FUNCTION] });
    return message.tool_calls?.[0]?.function.arguments ?? message.content;
  },
  embeddings: async (model) => (await client.embed({ model, input: QUESTION })).embeddings[0],
  overflow: (tier) => raised(() => ask(tier, STORY), (error) => error.status_code === 400),
  unknown: (tier) => raised(() => ask(tier), (error) => error.status_code === 404),
});
