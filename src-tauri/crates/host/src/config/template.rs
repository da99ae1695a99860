//! The configuration file that a first start writes.

use std::path::Path;
use tierbar_core::setup::STARTER;

/// Returns a file with three tiers; the first has the starter model if it is installed.
pub(crate) fn first(models: &Path) -> String {
    let starter = if models.join(STARTER).is_file() {
        STARTER
    } else {
        ""
    };
    format!(
        r#"# Tierbar's configuration. Changes apply when you save this file; `listen` and the TLS keys of [server] apply at the next start.

# The address of the API. An address that other machines can reach, such as 0.0.0.0:11435, needs `network` in [server].
listen = "127.0.0.1:11435"

# The folder of models. Empty: models/ beside this file.
models_dir = ""

# Origins of web pages that may call the API, such as "http://localhost:3000".
allowed_origins = []

[server]
# true: also answer on 127.0.0.1:11434, where clients look for Ollama, unless Ollama is running there.
act_as_ollama = false
# true: other machines may reach the API, with a key (`tierbar key add NAME`) or the token in each request.
network = false
# true: other machines must use TLS. Programs on this machine need not.
tls = false
# PEM files of your certificate and its key. Both empty: Tierbar generates a certificate and keeps it beside this file.
certificate = ""
key = ""
# Names that clients use for this machine, such as "mac-mini.local".
names = []
# true: inference needs a key on this machine too.
require_keys = false
# The most inference requests in progress, waiting ones included. Tierbar refuses more.
requests_at_once = 256

[log]
# true: write prompts to logs/, for debugging. false: write no text of prompts.
prompts = false

[library]
# More folders of models, such as "/Volumes/Models". Tierbar uses models in place and never changes them.
folders = []
# true: also use the models of LM Studio, of Ollama and of the Hugging Face cache.
other_apps = true

[downloads]
# The most bytes per second. 0: no limit.
rate_limit = 0
# Models downloaded at the same time, 1 to 4.
at_once = 1

[policy]
# Models in memory at the same time: "auto" (one up to 16 GB of RAM, otherwise as many as fit) or a number.
max_loaded = "auto"
# How long requests for the loaded model may go first, to avoid constant swapping.
patience = "10s"
# The tier to load again after another tier was unloaded because it was idle. Empty: none.
home = ""
# During these hours, such as "22:00-07:30", models load only on request and unload after one idle minute. Empty: none.
quiet_hours = ""
# On battery below this percentage, models load only on request. 0: ignore the battery.
battery_below = 20
# true: on a Mac, models load only on request while another app is full screen. No effect on Linux.
defer_to_full_screen = true
# true: after memory runs low, requests for the loaded tier go to the next smaller tier for a while.
step_down = true
# true: save conversations to conversations/ beside this file when their tier unloads, for a week and up to this many MiB, so
# that they continue without another prefill. false: save none, and delete those saved.
keep_conversations = true
conversations_mib = 2048

# A chain is a list of tiers to try in order. Requests name it as they name a model. See docs/chains.md. An example:
#   [chains.nightly]
#   steps = ["sonnet", "heavy", "primary", "queue"]
#   triage = true     # greetings and messages that need no reply go to this machine's tiers first
[queue]
# Queued requests answered at the same time, 1 to 8. See docs/queue.md.
at_once = 1
# How long answers are kept, at most "168h".
keep = "168h"
# The most disk space for queued requests and their answers.
bytes = "256MiB"
# Hosts that clients with an API key may name for webhooks, such as ["hooks.example.com"]. Clients on this machine may name any.
webhook_hosts = []

[contexts]
# How contexts are saved: "exact", or "compact" with about a third of the size, after which answers may differ slightly.
form = "exact"
# Where saved contexts are uploaded to: a folder, such as "~/Dropbox/Tierbar", or a bucket of an S3 server, such as
# "s3://bucket/folder". Empty: nowhere. They are encrypted with `tierbar secret set context-passphrase`. See docs/contexts.md.
store = ""
# The server of a bucket, such as "https://s3.example.com". Empty: Amazon's.
endpoint = ""
# The region of a bucket, such as "eu-central-1" or "auto". Empty: "us-east-1".
region = ""
# The ID of a bucket's access key. Its secret: `tierbar secret set context-store`.
access_key = ""

# The app's icon in the menu bar, or in the system tray.
[menu_bar]
# The text beside it: "none", "speed" (the last answer's tokens per second) or "memory" (RAM in use).
text = "none"
# What a click on it opens on a Mac: "menu" or "popover", a small window with memory, speed and tiers.
click = "menu"
# Keys that open and close that window from any app, such as "Alt+Space": Ctrl, Alt, Shift, Cmd and a key. Empty: none. Not on
# Wayland, where the desktop's settings give keys to the command `tierbar-app --open popover`.
shortcut = ""

[notifications]
# What the app and open pages notify you of. true: when a model is downloaded; when the last queued request has ended; when the
# memory guard acts; when a model is unloaded.
downloads = false
queue = false
memory = false
unloads = false

# Prices and watts for `tierbar costs`, which otherwise shows only tokens. Dollars are US dollars. See docs/costs.md.
#   [costs]
#   cloud_input_price = 2.5    # per million prompt tokens, at the cloud to compare with
#   cloud_output_price = 10.0  # per million answer tokens there
#   kwh_price = 0.3            # per kilowatt-hour
#   busy_watts = 30            # power draw while answering, if the machine does not measure it
#   idle_watts = 5             # power draw while idle
#   machine_price = 600        # price of the machine, for `tierbar costs break-even`

# The keys of a tier:
#   model     a model's id, a file name in the models folder, or a path; empty: none yet
#   profile   what the tier is for, which decides the context: "balanced" (default): the longest for an eighth of the memory for
#             models; "long_context": the longest that fits; "agent": up to 32768 tokens, for programs that send tools and files;
#             "paged": 16384 tokens, which leaves the most memory for a mixture of experts
#   context   tokens of prompt and answer together; "auto" (default) follows from the model, the machine and the profile
#   kv_cache  f16, q8_0 or q4_0; a smaller type fits more context in the same memory; "auto" (default): as the context needs
#   thinking  true: think before answering unless a request says otherwise
#   sampling  how tokens are chosen unless a request says otherwise, such as {{ temperature = 0.7, top_p = 0.8 }}; default: the
#             model's own values
#   paging    for a model larger than the memory budget: "auto" (default): the best for this machine; "cache": read a mixture's
#             experts into a cache when they are needed; "advise": have the system read them; "mmap": leave it to the system;
#             "stream": like "cache", and read the layers of a dense model for every token, which is slow; "off": refuse it
#   approximate  for a mixture with an expert cache, faster answers that differ from the model's own: "off" (default);
#             "substitute": experts in memory take the place of others that weigh less; "drop": those are left out
#   experts_used  experts that a token uses, fewer than the model's; default: the model's
#   threads   CPU threads; 0: chosen by Tierbar
#   batch     tokens evaluated in one batch; default 512; `tierbar tune` finds the fastest
#   gpu_layers  the most layers on the GPU; default: as many as fit
#   lookup    true: predict tokens from earlier text; uses no memory and turns off when it doesn't help
#   draft_model  a smaller model of the same family that predicts tokens, named like `model`
#   idle_unload  how long the tier stays loaded without a request; default "10m"; "never": until another tier needs its memory
#   engine    "embedded" (default), or a server of your own, such as
#             {{ command = ["/opt/homebrew/bin/llama-server", "-m", "/models/x.gguf", "--host", "{{socket}}"], memory = "6GiB" }} or
#             {{ endpoint = "http://127.0.0.1:11434" }}, and for Anthropic's API
#             {{ endpoint = "https://api.anthropic.com", dialect = "anthropic" }}; see docs/engines.md
#   pinned    true: load the tier at Tierbar's start and keep it loaded

# Triage, classification, routing.
[tiers.fast]
model = "{starter}"

# Summaries, compression, chat.
[tiers.primary]
model = ""

# Hard questions.
[tiers.heavy]
model = ""

# A small model for embeddings, up to 512 MiB, loads beside the chat model; so does one that ranks documents, in
# [tiers.reranker]. An example, to use without the leading #:
# [tiers.embedder]
# model = "nomic-embed-text-v1.5.Q8_0.gguf"

# A schedule runs a task at a time of day: "brief" (of JSON lines) or "summarize", over a file, the changed files of a folder, or a
# URL; the result goes to a file or a webhook. See docs/tasks.md. An example, to use without the leading #:
# [schedules.nightly]
# at = "02:00"
# days = ["mon", "tue", "wed", "thu", "fri"]
# task = "brief"
# source = "~/logs"
# to = "~/briefs/{{date}}.md"

# MCP servers give agents more tools; Tierbar asks before each use. A program runs in the sandbox of commands, without the network
# unless it is granted. See docs/agent.md. Examples, to use without the leading #:
# [mcp.notes]
# command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "."]
# folder = "~/Notes"
# network = true             # npx downloads the program
# [mcp.issues]
# url = "https://mcp.example.com/mcp"   # its key: `tierbar secret set mcp.example.com`
"#
    )
}
