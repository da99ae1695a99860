// Vercel's AI SDK, by its provider: openai (Responses), openai-chat, openai-compatible, anthropic or ollama.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, embed, generateText, Output, streamText, tool } from "ai";
import { createOllama } from "ollama-ai-provider-v2";
import { ARGUMENTS, ASK_PARCEL, check, collect, DESCRIPTION, KEY, NAME, Parcel, QUESTION, raised, run, STORY, URL_, V1 } from "./cells.mjs";

const kind = process.argv[2];
const openai = createOpenAI({ baseURL: V1, apiKey: KEY });
const compatible = createOpenAICompatible({ name: "tierbar", baseURL: V1, apiKey: KEY, supportsStructuredOutputs: true });
const anthropic = createAnthropic({ baseURL: V1, apiKey: KEY });
const ollama = createOllama({ baseURL: `${URL_}/api` });
const [model, embedding] = {
  openai: [openai, openai.embedding],
  "openai-chat": [openai.chat, openai.embedding],
  "openai-compatible": [compatible, compatible.embeddingModel],
  anthropic: [anthropic],
  ollama: [ollama, ollama.embedding],
}[kind];
const PACKAGES = { openai: "@ai-sdk/openai", "openai-chat": "@ai-sdk/openai", ollama: "ollama-ai-provider-v2" };
const tools = { [NAME]: tool({ description: DESCRIPTION, inputSchema: Parcel }) };
const settings = (tier, prompt, more = {}) => ({
  model: model(tier),
  prompt,
  maxOutputTokens: 64,
  maxRetries: 0,
  ...(kind === "anthropic" ? {} : { temperature: 0 }),
  ...more,
});
const refusal = (status) => (error) => APICallError.isInstance(error) && error.statusCode === status;

run(PACKAGES[kind] ?? `@ai-sdk/${kind}`, {
  text: async (tier) => (await generateText(settings(tier, QUESTION, { maxOutputTokens: 12 }))).text,
  stream: async (tier) => collect(streamText(settings(tier, QUESTION, { maxOutputTokens: 12 })).textStream),
  tools: async (tier) => {
    await generateText(settings(tier, ASK_PARCEL, { tools, maxOutputTokens: 12 }));
    const call = { type: "tool-call", toolCallId: "call_1", toolName: NAME, input: ARGUMENTS };
    const result = { type: "tool-result", toolCallId: "call_1", toolName: NAME, output: { type: "text", value: "Stored." } };
    const messages = [
      { role: "user", content: ASK_PARCEL },
      { role: "assistant", content: [call] },
      { role: "tool", content: [result] },
    ];
    const more = { prompt: undefined, messages, tools, toolChoice: "none", maxOutputTokens: 12 };
    return (await generateText(settings(tier, undefined, more))).text;
  },
  // Ollama's dialect has no choice of a tool.
  forced:
    kind === "ollama"
      ? undefined
      : async (tier) => {
          let call;
          for (const toolChoice of ["required", { type: "tool", toolName: NAME }]) {
            const answer = await generateText(settings(tier, ASK_PARCEL, { tools, toolChoice }));
            [call] = answer.toolCalls;
            check(call, `toolChoice ${JSON.stringify(toolChoice)}: ${answer.text}`);
          }
          return [call.toolName, call.input];
        },
  structured: async (tier) => (await generateText(settings(tier, ASK_PARCEL, { output: Output.object({ schema: Parcel }) }))).output,
  both: async (tier) => {
    const answer = await generateText(settings(tier, ASK_PARCEL, { tools, output: Output.object({ schema: Parcel }) }));
    return answer.toolCalls[0]?.input ?? answer.output;
  },
  embeddings: embedding && (async (tier) => (await embed({ model: embedding(tier), value: QUESTION, maxRetries: 0 })).embedding),
  overflow: (tier) => raised(() => generateText(settings(tier, STORY)), refusal(400)),
  unknown: (tier) => raised(() => generateText(settings(tier, QUESTION)), refusal(404)),
});
