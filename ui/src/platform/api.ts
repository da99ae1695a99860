// Generated from src-tauri/crates/core by its tests. Do not edit: run
// TIERBAR_WRITE_TYPES=1 cargo test -p tierbar-core typescript

export type TierId = string;

export type TierState = "stopped" | "starting" | "ready" | "busy" | "stopping" | "failed";

export type ModelId = string;

export type KvAccount = { 
/**
 * K and V elements per token over all full-attention layers.
 */
full_elements_per_token: number, 
/**
 * K and V elements per cell over all sliding-window layers.
 */
sliding_elements_per_cell: number, 
/**
 * Sliding window in tokens; 0 if no layer slides.
 */
window: number, 
/**
 * State of recurrent layers, per sequence, whatever the context.
 */
state_bytes: number, };

export type ModelAccount = { 
/**
 * `general.architecture`, such as `llama` or `gemma3`.
 */
architecture: string, 
/**
 * `general.name`, if the file has one.
 */
name: string | null, 
/**
 * The file's quantisation, such as `Q4_K_M`.
 */
quant: string, file_bytes: number, 
/**
 * Every tensor that is not an expert's.
 */
dense_bytes: number, 
/**
 * Tensors of a mixture of experts, of which a token reads a few.
 */
expert_bytes: number, parameters: number, layers: number, 
/**
 * Width of the residual stream.
 */
embedding: number, vocabulary: number, 
/**
 * Context the model was trained for, in tokens.
 */
context_train: number, kv: KvAccount, 
/**
 * Whether the file carries a chat template.
 */
chat_template: boolean, };

export type Pressure = "normal" | "warning" | "critical";

export type Ram = { total_bytes: number, 
/**
 * What can be had without swapping: free and reclaimable.
 */
available_bytes: number, pressure: Pressure, };

export type Swap = { used_bytes: number, 
/**
 * Change over the last minute; negative while swap shrinks. The level is sticky, the growth is the alarm.
 */
growth_bytes_per_minute: number, };

export type Speed = { decode_tokens_per_second: number | null, prefill_tokens_per_second: number | null, };

export type BudgetStatus = { 
/**
 * What models may take on this machine, all together.
 */
total_bytes: number, 
/**
 * Sum of the plans of the tiers that hold memory now.
 */
planned_bytes: number, };

export type TierStatus = { id: TierId, state: TierState, 
/**
 * The configured model; `null` while the tier has none.
 */
model: ModelId | null, pid: number | null, 
/**
 * Memory that the worker's end would give back.
 */
footprint_bytes: number | null, context_tokens: number, 
/**
 * One plain sentence: why the tier failed, was stopped, or is waiting.
 */
reason: string | null, };

export type Status = { version: string, 
/**
 * Base address of the API, such as `http://127.0.0.1:11435`.
 */
url: string, ram: Ram, swap: Swap, speed: Speed, budget: BudgetStatus, 
/**
 * In reading order: fast, primary, heavy, then the rest by name.
 */
tiers: Array<TierStatus>, 
/**
 * Things that the user should know and can act on, such as an unknown key in the configuration.
 */
notices: Array<string>, };

export type KvCache = "f16" | "q8_0" | "q4_0";

export type MaxLoaded = "auto" | number;

export type PolicyConfig = { 
/**
 * How many generative models may be loaded at once.
 */
max_loaded: MaxLoaded, };

export type TierConfig = { 
/**
 * A model's id, a file name in the models folder, or a path. Empty: the tier waits for a model.
 */
model: string, 
/**
 * Context in tokens.
 */
context: number, kv_cache: KvCache, 
/**
 * CPU threads; 0 chooses, and never takes all cores.
 */
threads: number, };

export type Config = { 
/**
 * Address of the API. Beyond loopback, inference needs the token too.
 */
listen: string, 
/**
 * Folder of models; empty means `models/` in the data folder.
 */
models_dir: string, 
/**
 * Origins of web pages, besides our own, that may call the API from a browser.
 */
allowed_origins: Array<string>, policy: PolicyConfig, tiers: { [key in TierId]: TierConfig }, };

export type Role = "system" | "user" | "assistant";

export type Finish = "stop" | "length" | "stopped" | "error";

export type ChatMessage = { role: Role, content: string, 
/**
 * Assistant only: the tier and model that answered.
 */
tier: string | null, model: string | null, 
/**
 * Assistant only: how the answer ended.
 */
finish: Finish | null, decode_tokens_per_second: number | null, time_to_first_token_ms: number | null, };

export type ChatSummary = { id: string, title: string, 
/**
 * What the chat asks: a tier's name, or `auto`.
 */
model: string, created_at: string, updated_at: string, };

export type Chat = { 
/**
 * Oldest first.
 */
messages: Array<ChatMessage>, id: string, title: string, 
/**
 * What the chat asks: a tier's name, or `auto`.
 */
model: string, created_at: string, updated_at: string, };
