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
 * The number of files; more than one for a split model.
 */
parts: number, 
/**
 * All tensors of no other class; a token reads all of them.
 */
dense_bytes: number, 
/**
 * The table of input embeddings. A token reads one row, or all of it where it is the output layer too.
 */
embedding_bytes: number, 
/**
 * Gemma's embeddings per layer, of which a token reads one row.
 */
per_layer_embedding_bytes: number, 
/**
 * Tensors of a mixture of experts, of which a token reads a few.
 */
expert_bytes: number, parameters: number, 
/**
 * The input embeddings are the output layer too.
 */
tied_output: boolean, layers: number, 
/**
 * Query heads, and heads that keep keys and values, of the layer that has most.
 */
heads: number, kv_heads: number, 
/**
 * Experts of a layer, and those of them that a token reads; 0 in a dense model.
 */
experts: number, experts_used: number, 
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
chat_template: boolean, 
/**
 * Whether that template supports thinking, and tools.
 */
thinking: boolean, tools: boolean, };

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
 * The memory that all models together may use on this machine.
 */
total_bytes: number, 
/**
 * Sum of the plans of the tiers that hold memory now.
 */
planned_bytes: number, };

export type EngineKind = "embedded" | "command" | "endpoint";

export type Alarm = "none" | "hold" | "unload" | "critical";

export type Stance = "open" | "defers" | "quiet" | "paused";

export type GuardStatus = { alarm: Alarm, stance: Stance, 
/**
 * Why, in one sentence with figures; `null` without a reason.
 */
why: string | null, 
/**
 * When a pause with an end ends, in milliseconds since 1970.
 */
paused_until: number | null, };

export type TierStatus = { id: TierId, state: TierState, 
/**
 * What answers for it.
 */
engine: EngineKind, 
/**
 * The configured model; `null` while the tier has none.
 */
model: ModelId | null, pid: number | null, 
/**
 * Memory that the worker's end would free.
 */
footprint_bytes: number | null, 
/**
 * The plan of its load, while it has a process; otherwise `null`.
 */
plan: LoadPlan | null, context_tokens: number, 
/**
 * While the tier starts, the percentage of its model's weights that is loaded.
 */
loaded_percent: number | null, 
/**
 * One plain sentence: why the tier failed, was stopped, or is waiting.
 */
reason: string | null, 
/**
 * When it is unloaded if no request comes before, in milliseconds since 1970; `null` while it answers, if it stays
 * loaded, and without a process.
 */
unloads_at_ms: number | null, 
/**
 * After memory ran short with this tier loaded, the smaller tier that answers its requests for a while.
 */
steps_down_to: TierId | null, };

export type Status = { version: string, 
/**
 * Base address of the API, such as `http://127.0.0.1:11435`.
 */
url: string, ram: Ram, swap: Swap, speed: Speed, budget: BudgetStatus, guard: GuardStatus, 
/**
 * In reading order: fast, primary, heavy, then the rest by name.
 */
tiers: Array<TierStatus>, 
/**
 * Active downloads first, in their order; then those that need the user, and the last few finished ones.
 */
downloads: Array<DownloadStatus>, 
/**
 * Changes whenever models appear, vanish or change: read the list of models again.
 */
models_revision: number, 
/**
 * Notices for the user, such as an unknown key in the configuration.
 */
notices: Array<string>, };

export type DownloadState = "queued" | "downloading" | "waiting" | "verifying" | "paused" | "failed" | "done";

export type Priority = "low" | "normal" | "high";

export type DownloadStatus = { id: string, 
/**
 * The requested reference, such as `unsloth/gemma-4-E2B-it-GGUF:Q4_K_M` or a URL without its query.
 */
reference: string, 
/**
 * The first file's name in the models folder.
 */
file: string, state: DownloadState, priority: Priority, 
/**
 * Bytes safely on disk.
 */
received_bytes: number, 
/**
 * `null` until a server has reported it.
 */
total_bytes: number | null, 
/**
 * Over the last five seconds; 0 while nothing arrives.
 */
bytes_per_second: number, 
/**
 * `null` while there is no rate.
 */
eta_seconds: number | null, 
/**
 * One sentence: why the download waits or failed, and what to do.
 */
reason: string | null, 
/**
 * Warnings, such as a nearly full disk or a model that hardly fits.
 */
warnings: Array<string>, };

export type Placement = "resident" | "mmap" | "advise" | "cache" | "stream" | "refused";

export type LoadPlan = { placement: Placement, 
/**
 * The lines, without those of zero bytes.
 */
lines: Array<Line>, context_tokens: number, };

export type LineKind = "dense_weights" | "embeddings" | "paged_weights" | "resident_experts" | "paged_experts" | "kv_cache" | "compute_buffers" | "checkpoints" | "draft_model" | "projector" | "command" | "embedder" | "app";

export type Line = { what: LineKind, bytes: number, };

export type GpuShare = { 
/**
 * Layers on the GPU, of [`GpuShare::layers_all`], with the output as one, which is the last to go there; the others
 * stay on the CPU and read the same mapping.
 */
layers: number, layers_all: number, 
/**
 * What is placed on the GPU.
 */
bytes: number, 
/**
 * Metal's recommended working set less a margin, and at most the budget.
 */
limit_bytes: number, };

export type SpeedEstimate = { low: number, high: number, 
/**
 * Weights and cache that one token reads, from memory and from the disk.
 */
active_bytes: number, paged_bytes: number, 
/**
 * The median of this model's last answers on this machine.
 */
measured: number | null, 
/**
 * How far the measured speed is outside the range: 0 inside it, −0.2 if it is 20 % below `low`.
 */
error: number | null, };

export type Instead = { quant: string, 
/**
 * The reference to download it by, such as `unsloth/Qwen3.5-35B-A3B-GGUF:UD-IQ2_M`.
 */
reference: string, size_bytes: number, placement: Placement, };

export type Verdict = { placement: Placement, 
/**
 * One plain sentence with the figures that decided.
 */
summary: string, 
/**
 * What the user should know although the model runs.
 */
warning: string | null, 
/**
 * Every line of the sum, in reading order.
 */
lines: Array<Line>, total_bytes: number, 
/**
 * The memory that all models together may use on the machine.
 */
budget_bytes: number, ram_bytes: number, context_tokens: number, kv_cache: KvCache, 
/**
 * The largest context whose plan fits; `null` if not even the smallest does.
 */
largest_context_tokens: number | null, 
/**
 * `null` on a machine without a GPU that shares its memory, and where the model does not run.
 */
gpu: GpuShare | null, 
/**
 * `null` where it does not run, and until the machine's bandwidths have been measured.
 */
speed: SpeedEstimate | null, 
/**
 * Another quant of the same repository that suits this machine better.
 */
instead: Instead | null, 
/**
 * The model's header has not been read: the sum stands on published facts of its architecture.
 */
estimated: boolean, };

export type Keeper = "tierbar" | "folder" | "lm_studio" | "ollama" | "hugging_face";

export type LibraryModel = { id: ModelId, path: string, size_bytes: number, keeper: Keeper, 
/**
 * What its header contains.
 */
account: ModelAccount | null, 
/**
 * Why it cannot be loaded.
 */
error: string | null, 
/**
 * The reference that Tierbar downloaded it by, if it did.
 */
reference: string | null, 
/**
 * The sha256 that its bytes had when they were last hashed, in lower-case hex.
 */
sha256: string | null, 
/**
 * Its media projector in the same folder.
 */
projector?: string | null, 
/**
 * The tiers that use it.
 */
tiers: Array<TierId>, 
/**
 * The verdict for this machine, at the context of the first tier that uses it, or else 4096 tokens.
 */
fit: Verdict | null, };

export type ModelKind = "chat" | "embedding";

export type OfferedFile = { quant: string, 
/**
 * The reference to download it by, such as `unsloth/gemma-4-E4B-it-GGUF:Q4_K_M`.
 */
reference: string, 
/**
 * The file in the repository; the first of several parts.
 */
file: string, parts: number, 
/**
 * The size of all parts; `null` if only the hub knows it.
 */
size_bytes: number | null, 
/**
 * Lower-case hex. `null`: not known here, taken from the hub at download.
 */
sha256: string | null, 
/**
 * Whether it is the best choice for this machine.
 */
recommended: boolean, 
/**
 * Whether the models folder has it.
 */
installed: boolean, 
/**
 * `null` for what the engine cannot run by itself, and for an unknown model.
 */
fit: Verdict | null, };

export type CatalogModel = { 
/**
 * Its short name, such as `gemma-4-e4b`.
 */
id: string, 
/**
 * The name for people.
 */
name: string, 
/**
 * One sentence: what it is good for.
 */
about: string, 
/**
 * The tier that it suits, if it is a default or an alternative of one.
 */
tier: string | null, 
/**
 * Whether it is the default of that tier.
 */
default: boolean, 
/**
 * `chat` or `embedding`.
 */
kind: ModelKind, 
/**
 * `owner/repository` on the hub.
 */
repository: string, licence: string, 
/**
 * The context that the verdicts are for, in tokens.
 */
context_tokens: number, kv_cache: KvCache, quants: Array<OfferedFile>, };

export type HubModel = { repository: string, downloads: number, likes: number, 
/**
 * When it last changed, RFC 3339.
 */
updated: string | null, 
/**
 * Whether its license must be accepted before the download.
 */
gated: boolean, };

export type HubRepository = { repository: string, 
/**
 * The commit of the files.
 */
revision: string, licence: string | null, gated: boolean, files: Array<OfferedFile>, };

export type Span = string;

export type QuietHours = string;

export type IdleUnload = string;

export type KvCache = "f16" | "q8_0" | "q4_0";

export type MaxLoaded = "auto" | number;

export type PolicyConfig = { 
/**
 * How many generative models may be loaded at once.
 */
max_loaded: MaxLoaded, 
/**
 * How long requests for the loaded model may go first, to avoid constant swapping.
 */
patience: Span, 
/**
 * The tier to load again after another was unloaded because it was idle; empty for none.
 */
home: string, 
/**
 * During these hours, models load only on request and unload after one idle minute.
 */
quiet_hours: QuietHours, 
/**
 * On battery below this percentage, models load only on request; 0 ignores the battery.
 */
battery_below: number, 
/**
 * Load models only on request while another app is full screen.
 */
defer_to_full_screen: boolean, 
/**
 * After memory ran short, requests for the tier that was loaded go to the next smaller tier for a while.
 */
step_down: boolean, 
/**
 * Save conversations to disk when their tier unloads, so that they go on without another prefill.
 */
keep_conversations: boolean, 
/**
 * The most disk space for them, in MiB; the oldest are deleted first.
 */
conversations_mib: number, };

export type LibraryConfig = { 
/**
 * More folders, as absolute paths or from `~`.
 */
folders: Array<string>, 
/**
 * The models of LM Studio, of Ollama and of the Hugging Face cache.
 */
other_apps: boolean, };

export type DownloadsConfig = { 
/**
 * The most bytes per second for all downloads together; 0 sets no limit.
 */
rate_limit: number, 
/**
 * Models downloaded at the same time.
 */
at_once: number, };

export type QueueConfig = { 
/**
 * Queued requests answered at the same time.
 */
at_once: number, 
/**
 * How long an answer is kept.
 */
keep: Span, 
/**
 * The most disk space for requests and their answers.
 */
bytes: Size, 
/**
 * Hosts that clients with an API key may name for webhooks.
 */
webhook_hosts: Array<string>, };

export type Size = string;

export type StopSignal = "SIGTERM" | "SIGINT" | "SIGQUIT" | "SIGHUP";

export type CommandEngine = { 
/**
 * The program and its arguments; the host replaces `{socket}` and `{port}`.
 */
command: Array<string>, 
/**
 * The most memory that the program uses. The plan relies on it.
 */
memory: Size, 
/**
 * A path that returns 2xx once the model is loaded.
 */
health: string, 
/**
 * The port on 127.0.0.1; without it, a free one.
 */
port?: number | null, stop_signal: StopSignal, 
/**
 * How long it may take to end before it is killed.
 */
stop_deadline: Span, 
/**
 * How long it may take to load.
 */
load_deadline: Span, 
/**
 * Environment variables besides the few that every worker gets. Do not put keys here.
 */
env: { [key in string]: string }, };

export type Dollars = number;

export type Dialect = "openai" | "anthropic";

export type EndpointEngine = { 
/**
 * The URL before `/v1/…`.
 */
endpoint: string, 
/**
 * The price of a million prompt tokens, if known.
 */
input_price?: Dollars | null, 
/**
 * The price of a million answer tokens, if known.
 */
output_price?: Dollars | null, 
/**
 * The server's API; OpenAI's by default.
 */
dialect?: Dialect | null, };

export type Engine = "embedded" | CommandEngine | EndpointEngine;

export type TierConfig = { 
/**
 * A model's id, a file name in the models folder, or a path; empty for none yet. For a command or an endpoint, the name that
 * it uses for its model.
 */
model: string, 
/**
 * What answers. The keys from `kv_cache` to `draft_model` apply to `"embedded"` alone.
 */
engine: Engine, 
/**
 * Context in tokens.
 */
context: number, kv_cache: KvCache, 
/**
 * CPU threads; 0 lets Tierbar choose, which never takes all cores.
 */
threads: number, 
/**
 * Tokens evaluated in one batch. A larger batch speeds up prefill to a point and needs larger compute buffers. On a GPU, a
 * cancelled request runs on to the end of its batch.
 */
batch: number, 
/**
 * The most layers on the GPU, counted from the last; without it, as many as fit.
 */
gpu_layers?: number | null, 
/**
 * Predict tokens from earlier text. Uses no memory and turns off when it doesn't help.
 */
lookup: boolean, 
/**
 * A smaller model of the same vocabulary that predicts tokens, named like `model`; empty for none.
 */
draft_model: string, 
/**
 * How long the tier stays loaded without a request.
 */
idle_unload: IdleUnload, 
/**
 * Load the tier at Tierbar's start and keep it loaded: no other tier takes its memory.
 */
pinned: boolean, };

export type Step = string;

export type ChainConfig = { 
/**
 * Tiers of any engine, in the order in which they are tried. The last step may be `"queue"`, which keeps the request
 * for later.
 */
steps: Array<Step>, 
/**
 * How often a failing endpoint is retried before the next step.
 */
retries: number, 
/**
 * Timeout until an endpoint's first token.
 */
wait: Span, 
/**
 * Timeout until the chain's first token.
 */
time: Span, 
/**
 * The most that one request may cost, by the endpoints' prices; endpoints without a price are then skipped. 0 sets no
 * limit.
 */
cost: Dollars, 
/**
 * Start the next step as well after this much silence; the first to produce a token answers. `"0s"` turns this off.
 */
hedge: Span, 
/**
 * Start an answer of this machine with `[Local Fallback]` if it replaces the first step's.
 */
mark: boolean, };

export type ServerConfig = { 
/**
 * Allow `listen` to be an address that other machines can reach.
 */
network: boolean, 
/**
 * Require TLS of other machines; connections from this one need not use it.
 */
tls: boolean, 
/**
 * A PEM file, as an absolute path or from `~`; empty for a certificate that Tierbar creates in the data folder.
 */
certificate: string, 
/**
 * The certificate's private key, likewise.
 */
key: string, 
/**
 * More names of this machine that clients use.
 */
names: Array<string>, 
/**
 * Require a key for inference on loopback too.
 */
require_keys: boolean, 
/**
 * Answer on 127.0.0.1:11434 as well, where clients look for Ollama, unless Ollama itself runs there.
 */
act_as_ollama: boolean, 
/**
 * The most inference requests that wait or are answered at the same time.
 */
requests_at_once: number, };

export type LogConfig = { 
/**
 * Log requests with their prompts. Otherwise none of their text is written.
 */
prompts: boolean, };

export type TimeOfDay = string;

export type Weekday = "mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun";

export type ScheduledTask = "brief" | "summarize";

export type ScheduleConfig = { 
/**
 * By local time.
 */
at: TimeOfDay, 
/**
 * The days of the week; empty for every day.
 */
days?: Array<Weekday>, task: ScheduledTask, 
/**
 * A file, a folder (what has changed in it since the last run), or an `http` or `https` URL.
 */
source: string, 
/**
 * A file, with `{date}` in its name for the day, or an `http` or `https` URL that gets the result by POST.
 */
to: string, 
/**
 * A tier, a model's id or `auto`; empty for the task's default.
 */
model?: string, 
/**
 * The most words of the result; without it, the task's default.
 */
words?: number | null, };

export type Config = { 
/**
 * The address of the API. One that other machines can reach needs `server.network`, and inference there needs a key.
 */
listen: string, server: ServerConfig, log: LogConfig, 
/**
 * Folder of models; empty means `models/` in the data folder.
 */
models_dir: string, library: LibraryConfig, downloads: DownloadsConfig, 
/**
 * Origins of web pages, besides our own, that may call the API from a browser.
 */
allowed_origins: Array<string>, policy: PolicyConfig, queue: QueueConfig, tiers: { [key in TierId]: TierConfig }, 
/**
 * Lists of tiers to try in order, by the name that requests use.
 */
chains: { [key in TierId]: ChainConfig }, schedules?: { [key in string]: ScheduleConfig }, };

export type Settings = { 
/**
 * CPU threads; 0 lets the worker choose.
 */
threads: number, batch: number, 
/**
 * The most layers on the GPU; `null` for as many as fit.
 */
gpu_layers: number | null, kv_cache: KvCache, };

export type Figure = { median: number, low: number, high: number, };

export type BenchRow = { 
/**
 * Tokens in the cache before the prompt.
 */
depth: number, 
/**
 * Prefill in tokens per second.
 */
prefill: Figure | null, 
/**
 * Decode in tokens per second, without the first token: its time belongs to the prompt.
 */
decode: Figure | null, 
/**
 * Time to first token, in milliseconds.
 */
first_token_ms: Figure | null, 
/**
 * Why there are no figures.
 */
skipped: string | null, };

export type BenchMemory = { weights_mapped_bytes: number, weights_bytes: number, kv_bytes: number, compute_bytes: number, footprint_bytes: number | null, };

export type BenchReport = { 
/**
 * Tierbar's.
 */
version: string, 
/**
 * RFC 3339, in UTC.
 */
taken_at: string, tier: TierId, model: ModelId, context_tokens: number, settings: Settings, 
/**
 * The threads that computed, whether configured or chosen by the worker.
 */
threads_used: number, prompt_tokens: number, answer_tokens: number, runs: number, rows: Array<BenchRow>, 
/**
 * From the worker's start until it could answer; `null` if it was loaded already.
 */
load_ms: number | null, memory: BenchMemory, 
/**
 * Runs that were repeated because the tier did other work at the same time.
 */
disturbed: number, };

export type Progress = { done: number, 
/**
 * May grow while a measurement finds more to try.
 */
of: number, 
/**
 * What is being done, such as `reading 512 tokens at depth 4096`.
 */
doing: string, };

export type Knob = "start" | "gpu_layers" | "threads" | "batch" | "kv_cache" | "check";

export type Outcome = "base" | "faster" | "not_faster" | "told" | "failed";

export type TuneRow = { knob: Knob, settings: Settings, outcome: Outcome, 
/**
 * Why, as a sentence.
 */
reason: string, 
/**
 * The time of the request, in milliseconds.
 */
request_ms: Figure | null, 
/**
 * Prefill in tokens per second.
 */
prefill: number | null, decode: number | null, load_ms: number | null, memory: BenchMemory | null, };

export type TuneReport = { 
/**
 * Tierbar's.
 */
version: string, 
/**
 * RFC 3339, in UTC.
 */
taken_at: string, tier: TierId, model: ModelId, context_tokens: number, 
/**
 * The request that was measured.
 */
depth: number, prompt_tokens: number, answer_tokens: number, runs: number, rows: Array<TuneRow>, 
/**
 * The settings before.
 */
before: Settings, after: Settings, 
/**
 * The fraction of the time that is saved, such as 0.12; 0 if nothing is faster.
 */
gain: number, 
/**
 * Whether the configuration was changed.
 */
written: boolean, 
/**
 * The outcome in a sentence.
 */
summary: string, 
/**
 * Runs that were repeated because the tier did other work at the same time.
 */
disturbed: number, };

export type Kind = "load" | "ready" | "unload" | "refusal" | "failure" | "crash" | "alarm" | "calm" | "step_down" | "pause" | "resume" | "note";

export type LogEvent = { kind: Kind, 
/**
 * `null` where it concerns the machine.
 */
tier: TierId | null, model: ModelId | null, 
/**
 * One sentence without a full stop, which names the tier and has the figures.
 */
sentence: string, };

export type Entry = { 
/**
 * Grows with each entry of a data folder; there may be gaps.
 */
id: number, 
/**
 * Milliseconds since 1970.
 */
at_ms: number, kind: Kind, 
/**
 * `null` where it concerns the machine.
 */
tier: TierId | null, model: ModelId | null, 
/**
 * One sentence without a full stop, which names the tier and has the figures.
 */
sentence: string, };

export type Gate = { "gate": "open" } | { "gate": "cooling", for_ms: number, } | { "gate": "broken", for_ms: number, } | { "gate": "trying" } | { "gate": "refused", for_ms: number, };

export type StepStatus = { step: TierId, 
/**
 * The server that its key is stored for, such as `api.example.com`.
 */
server: string, } & ({ "gate": "open" } | { "gate": "cooling", for_ms: number, } | { "gate": "broken", for_ms: number, } | { "gate": "trying" } | { "gate": "refused", for_ms: number, }) | { step: Step, };

export type ChainStatus = { name: TierId, 
/**
 * The steps in the order in which they are tried.
 */
steps: Array<StepStatus>, };

export type JobState = "waiting" | "running" | "done" | "failed" | "cancelled" | "expired";

export type WebhookState = "pending" | "delivered" | "given_up";

export type JobStatus = { id: string, state: JobState, priority: Priority, 
/**
 * The path that it is sent to, such as `/v1/chat/completions`.
 */
path: string, created_ms: number, 
/**
 * It is not tried before this time.
 */
not_before_ms: number, deadline_ms: number, ended_ms: number | null, attempts: number, max_attempts: number, 
/**
 * The answer's status, once there is one.
 */
status: number | null, 
/**
 * Why it waits or failed, in one sentence.
 */
reason: string | null, 
/**
 * `null` without a webhook.
 */
webhook: WebhookState | null, };

export type Role = "system" | "user" | "assistant";

export type Finish = "stop" | "length" | "stopped" | "error";

export type AnswerFacts = { 
/**
 * The tier and model that answered.
 */
tier: string | null, model: string | null, 
/**
 * Why the router chose the tier, or why the steps of a chain before it did not answer.
 */
why: string | null, 
/**
 * The chain's first step, if another one answered.
 */
instead_of: string | null, 
/**
 * How the answer ended; none while it is being written.
 */
finish: Finish | null, decode_tokens_per_second: number | null, time_to_first_token_ms: number | null, };

export type Attachment = { 
/**
 * In hexadecimal.
 */
sha256: string, media_type: string, name: string, bytes: number, };

export type WebSource = { title: string, url: string, };

export type Part = { "type": "text", text: string, } | { "type": "reasoning", text: string, } | { "type": "image", file: Attachment, } | { "type": "audio", file: Attachment, } | { "type": "file", file: Attachment, } | { "type": "tool_call", id: string, name: string, 
/**
 * JSON as text.
 */
arguments: string, } | { "type": "tool_result", 
/**
 * The call that it answers.
 */
id: string, text: string, } | { "type": "sources", sources: Array<WebSource>, };

export type ChatMessage = { id: number, 
/**
 * The message before it; none for the first.
 */
parent: number | null, role: Role, parts: Array<Part>, 
/**
 * The tier and model that answered.
 */
tier: string | null, model: string | null, 
/**
 * Why the router chose the tier, or why the steps of a chain before it did not answer.
 */
why: string | null, 
/**
 * The chain's first step, if another one answered.
 */
instead_of: string | null, 
/**
 * How the answer ended; none while it is being written.
 */
finish: Finish | null, decode_tokens_per_second: number | null, time_to_first_token_ms: number | null, };

export type ChatSummary = { id: string, title: string, 
/**
 * What answers: a tier's name, a model's id, or `auto`.
 */
model: string, created_at: string, updated_at: string, 
/**
 * The id of the turn that is running, if one is.
 */
turn: string | null, };

export type Chat = { 
/**
 * The last message of the branch that is shown; none in an empty chat.
 */
leaf: number | null, 
/**
 * All branches, oldest message first.
 */
messages: Array<ChatMessage>, id: string, title: string, 
/**
 * What answers: a tier's name, a model's id, or `auto`.
 */
model: string, created_at: string, updated_at: string, 
/**
 * The id of the turn that is running, if one is.
 */
turn: string | null, };

export type TurnStage = "load" | "prefill";

export type TurnEvent = { "type": "progress", stage: TurnStage, } | { "type": "started", tier: string | null, model: string | null, why: string | null, instead_of: string | null, } | { "type": "reasoning", text: string, } | { "type": "text", text: string, } | { "type": "finished", message: ChatMessage, } | { "type": "failed", code: string, message: string, hint: string | null, answer: ChatMessage | null, };

export type TurnBegun = { id: string, 
/**
 * The chat as it is now.
 */
chat: ChatSummary, 
/**
 * The question that it answers.
 */
question: ChatMessage, 
/**
 * The id of the message that the answer becomes.
 */
answer: number, };
