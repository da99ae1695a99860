// What is tried with each client, and how a script of this folder reports it: as python/cells.py, which see.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";

export const URL_ = process.env.TIERBAR_URL;
export const V1 = `${URL_}/v1`;
export const KEY = "unused";
export const CONTEXT = 2048;
const [TOOLS, PLAIN, EMBEDDER, UNKNOWN] = ["fast", "primary", "embedder", "gpt-99"];
const CELLS = {
  text: [TOOLS],
  stream: [TOOLS],
  tools: [TOOLS],
  forced: [TOOLS, PLAIN],
  structured: [TOOLS, PLAIN],
  both: [TOOLS, PLAIN],
  embeddings: [EMBEDDER],
  overflow: [TOOLS],
  unknown: [UNKNOWN],
};
export const QUESTION = "What is the capital of France?";
export const STORY = "Once upon a time there was a fox. ".repeat(600);

export const Parcel = z
  .object({
    // What no model would write by itself. Without bounds of numbers, which Anthropic's packages leave out.
    shelf: z.enum(["K-7", "Q-2"]),
    fragile: z.boolean(),
    floor: z.literal([1, 2, 3]),
  })
  .describe("A parcel on a shelf.");
export const ASK_PARCEL = "The glass bowl is on shelf Q-2 of floor 3. Describe the parcel.";
export const NAME = "store_parcel";
export const DESCRIPTION = "Stores a parcel.";
export const SCHEMA = z.toJSONSchema(Parcel);
export const ARGUMENTS = { shelf: "Q-2", fragile: true, floor: 3 };
export const FUNCTION = { type: "function", function: { name: NAME, description: DESCRIPTION, parameters: SCHEMA } };

export const user = (content) => [{ role: "user", content }];

export function check(holds, why) {
  if (!holds) throw new Error(why);
}

/** The error of a call that must fail, if it is one that `is` accepts. */
export async function raised(call, is = () => true) {
  let answer;
  try {
    answer = await call();
  } catch (error) {
    check(is(error), `another error: ${error?.name}: ${error?.message}`);
    return error;
  }
  throw new Error(`no error, but ${JSON.stringify(answer)?.slice(0, 200)}`);
}

export async function collect(pieces, each = (piece) => piece) {
  const found = [];
  for await (const piece of pieces) found.push(each(piece));
  return found;
}

/** All that a client has of an error, with those beneath it. */
function textOf(error) {
  const parts = [];
  for (let each = error; each; each = each.cause ?? each.lastError) {
    parts.push(String(each.message), JSON.stringify(each.error ?? ""), String(each.responseBody ?? ""));
  }
  return parts.join(" ");
}

const asText = (answer) => check(typeof answer === "string" && answer.trim(), `no text: ${JSON.stringify(answer)}`);
const asParcel = (answer) => Parcel.parse(typeof answer === "string" ? JSON.parse(answer) : answer);

const CHECKS = {
  text: asText,
  stream: (pieces) => check(pieces.filter(Boolean).length > 1, `not streamed: ${JSON.stringify(pieces)}`),
  tools: asText,
  forced: ([name, parameters] = []) => {
    check(name === NAME, `not called: ${name}`);
    asParcel(parameters);
  },
  structured: asParcel,
  // A call's arguments, or the answer: both are parcels.
  both: asParcel,
  embeddings: (numbers) => check(numbers?.length === 384, `${numbers?.length} numbers`),
  overflow: (error) => {
    const words = textOf(error);
    const patterns = ["context_length_exceeded", "maximum context length is", "prompt is too long", "exceeds the context window"];
    check(patterns.some((pattern) => words.includes(pattern)), `no program would notice: ${words.slice(0, 300)}`);
    check(words.includes(String(CONTEXT)), `the context is not in ${words.slice(0, 300)}`);
  },
  unknown: (error) => check(textOf(error).includes(UNKNOWN), `the model is not named: ${textOf(error).slice(0, 300)}`),
};

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

async function attempt(cell, call) {
  for (const tier of CELLS[cell]) {
    try {
      await CHECKS[cell](await call(tier));
    } catch (error) {
      process.stderr.write(`${error?.stack ?? error}\n`);
      const why = `${error?.name}: ${error?.message}`.replace(/\s+/g, " ").slice(0, 400);
      return { passed: false, tier, why };
    }
  }
  return { passed: true };
}

/** A package's version, from its own folder: not all of them export their package.json. */
function version(name) {
  let folder = dirname(createRequire(import.meta.url).resolve(name));
  for (;;) {
    try {
      const found = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
      if (found.name === name && found.version) return found.version;
    } catch {
      // Not in this folder, but above.
    }
    folder = dirname(folder);
  }
}

/** Runs the cells that the client has, by name. */
export async function run(name, cells) {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  say({ version: version(name) });
  for (const cell of Object.keys(CELLS)) {
    if (!cells[cell]) {
      say({ cell, absent: true });
      continue;
    }
    say({ begin: cell });
    if ((await lines.next()).done) break;
    say({ cell, ...(await attempt(cell, cells[cell])) });
  }
  // Once what was written is out: a client may keep connections open.
  process.stdout.write("", () => process.exit(0));
}
