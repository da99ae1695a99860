// LangChain's chat models, by the name of the package: openai, anthropic or ollama.
import { ChatAnthropic } from "@langchain/anthropic";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatOllama, OllamaEmbeddings } from "@langchain/ollama";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { ARGUMENTS, ASK_PARCEL, check, collect, DESCRIPTION, KEY, NAME, Parcel, QUESTION, raised, run, STORY, URL_, V1 } from "./cells.mjs";

const kind = process.argv[2];
const configuration = { baseURL: V1 };
const model = (model, maxTokens = 64) =>
  ({
    openai: () => new ChatOpenAI({ model, apiKey: KEY, configuration, maxTokens, temperature: 0, maxRetries: 0 }),
    anthropic: () => new ChatAnthropic({ model, apiKey: KEY, anthropicApiUrl: URL_, maxTokens, maxRetries: 0 }),
    ollama: () => new ChatOllama({ model, baseUrl: URL_, numPredict: maxTokens, temperature: 0, maxRetries: 0 }),
  })[kind]();
const embedder = {
  // It asks for base64 unless told otherwise.
  openai: (model) => new OpenAIEmbeddings({ model, apiKey: KEY, configuration, maxRetries: 0 }),
  ollama: (model) => new OllamaEmbeddings({ model, baseUrl: URL_, maxRetries: 0 }),
}[kind];
const tool = { name: NAME, description: DESCRIPTION, schema: Parcel };

run(`@langchain/${kind}`, {
  text: async (tier) => (await model(tier, 12).invoke(QUESTION)).text,
  stream: async (tier) => collect(await model(tier, 12).stream(QUESTION), (chunk) => chunk.text),
  tools: async (tier) => {
    await model(tier, 12).bindTools([tool]).invoke(ASK_PARCEL);
    const call = { name: NAME, args: ARGUMENTS, id: "call_1", type: "tool_call" };
    const result = new ToolMessage({ content: "Stored.", tool_call_id: "call_1" });
    const messages = [new HumanMessage(ASK_PARCEL), new AIMessage({ content: "", tool_calls: [call] }), result];
    return (await model(tier, 12).invoke(messages)).text;
  },
  // Ollama's dialect has no choice of a tool.
  forced:
    kind === "ollama"
      ? undefined
      : async (tier) => {
          const answer = await model(tier).bindTools([tool], { tool_choice: NAME }).invoke(ASK_PARCEL);
          const [call] = answer.tool_calls;
          check(call, `not called: ${answer.text}`);
          return [call.name, call.args];
        },
  structured: async (tier) => model(tier).withStructuredOutput(Parcel, { method: "jsonSchema" }).invoke(ASK_PARCEL),
  embeddings: embedder && (async (tier) => embedder(tier).embedQuery(QUESTION)),
  overflow: (tier) => raised(() => model(tier).invoke(STORY)),
  unknown: (tier) => raised(() => model(tier).invoke(QUESTION)),
});
