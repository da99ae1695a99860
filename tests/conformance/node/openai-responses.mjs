import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { ARGUMENTS, ASK_PARCEL, check, collect, DESCRIPTION, KEY, NAME, Parcel, QUESTION, raised, run, SCHEMA, STORY, user, V1 } from "./cells.mjs";

const client = new OpenAI({ baseURL: V1, apiKey: KEY, maxRetries: 0 });
const TOOL = { type: "function", name: NAME, description: DESCRIPTION, parameters: SCHEMA, strict: true };
const ask = (model, input = QUESTION, fields = {}) =>
  client.responses.create({ model, input, max_output_tokens: 64, temperature: 0, ...fields });

run("openai", {
  text: async (tier) => (await ask(tier)).output_text,
  stream: async (tier) =>
    collect(await ask(tier, QUESTION, { stream: true, max_output_tokens: 12 }), (event) =>
      event.type === "response.output_text.delta" ? event.delta : "",
    ),
  tools: async (tier) => {
    await ask(tier, ASK_PARCEL, { tools: [TOOL], max_output_tokens: 12 });
    const call = { type: "function_call", call_id: "call_1", name: NAME, arguments: JSON.stringify(ARGUMENTS) };
    const input = [...user(ASK_PARCEL), call, { type: "function_call_output", call_id: "call_1", output: "Stored." }];
    return (await ask(tier, input, { tools: [TOOL], tool_choice: "none", max_output_tokens: 12 })).output_text;
  },
  forced: async (tier) => {
    let call;
    for (const tool_choice of ["required", { type: "function", name: NAME }]) {
      const answer = await ask(tier, ASK_PARCEL, { tools: [TOOL], tool_choice });
      call = answer.output.find((item) => item.type === "function_call");
      check(call, `tool_choice ${JSON.stringify(tool_choice)}: ${answer.output_text}`);
    }
    return [call.name, call.arguments];
  },
  structured: async (model) => {
    const text = { format: zodTextFormat(Parcel, "parcel") };
    return (await client.responses.parse({ model, input: ASK_PARCEL, max_output_tokens: 64, text })).output_parsed;
  },
  both: async (tier) => {
    const answer = await ask(tier, ASK_PARCEL, { tools: [TOOL], text: { format: zodTextFormat(Parcel, "parcel") } });
    return answer.output.find((item) => item.type === "function_call")?.arguments ?? answer.output_text;
  },
  overflow: (tier) => raised(() => ask(tier, STORY), (error) => error instanceof OpenAI.BadRequestError),
  unknown: (tier) => raised(() => ask(tier), (error) => error instanceof OpenAI.NotFoundError),
});
