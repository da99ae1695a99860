import Anthropic from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { ARGUMENTS, ASK_PARCEL, check, collect, DESCRIPTION, KEY, NAME, Parcel, QUESTION, raised, run, SCHEMA, STORY, URL_, user } from "./cells.mjs";

const client = new Anthropic({ baseURL: URL_, apiKey: KEY, maxRetries: 0 });
const TOOL = { name: NAME, description: DESCRIPTION, input_schema: SCHEMA };
const ask = (model, content = QUESTION, fields = {}) =>
  client.messages.create({ model, messages: user(content), max_tokens: 64, ...fields });
const textIn = (message) => message.content.map((block) => block.text ?? "").join("");

run("@anthropic-ai/sdk", {
  text: async (tier) => textIn(await ask(tier)),
  stream: async (model) => {
    const events = client.messages.stream({ model, messages: user(QUESTION), max_tokens: 12 });
    return collect(events, (event) => event.delta?.text);
  },
  tools: async (tier) => {
    await ask(tier, ASK_PARCEL, { tools: [TOOL], max_tokens: 12 });
    const call = { type: "tool_use", id: "toolu_1", name: NAME, input: ARGUMENTS };
    const result = { type: "tool_result", tool_use_id: "toolu_1", content: "Stored." };
    const messages = [...user(ASK_PARCEL), { role: "assistant", content: [call] }, ...user([result])];
    return textIn(await ask(tier, "", { messages, tools: [TOOL], tool_choice: { type: "none" }, max_tokens: 12 }));
  },
  forced: async (tier) => {
    let call;
    for (const tool_choice of [{ type: "any" }, { type: "tool", name: NAME }]) {
      const message = await ask(tier, ASK_PARCEL, { tools: [TOOL], tool_choice });
      call = message.content.find((block) => block.type === "tool_use");
      check(call, `tool_choice ${JSON.stringify(tool_choice)}: ${textIn(message)}`);
    }
    return [call.name, call.input];
  },
  structured: async (model) => {
    const output_config = { format: zodOutputFormat(Parcel) };
    return (await client.messages.parse({ model, messages: user(ASK_PARCEL), max_tokens: 64, output_config })).parsed_output;
  },
  both: async (tier) => {
    const message = await ask(tier, ASK_PARCEL, { tools: [TOOL], output_config: { format: zodOutputFormat(Parcel) } });
    return message.content.find((block) => block.type === "tool_use")?.input ?? textIn(message);
  },
  overflow: (tier) => raised(() => ask(tier, STORY), (error) => error instanceof Anthropic.BadRequestError),
  unknown: (tier) => raised(() => ask(tier), (error) => error instanceof Anthropic.NotFoundError),
});
