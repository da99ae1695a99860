//! The file that a first start writes.

use std::path::Path;

/// The model that `make run` brings along.
const STARTER: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

/// Three tiers; the first has the starter model if it is there.
pub(crate) fn first(models: &Path) -> String {
    let starter = if models.join(STARTER).is_file() {
        STARTER
    } else {
        ""
    };
    format!(
        r#"# Tierbar's configuration. Saving it applies it; `listen` and, in [server], what is said of TLS take effect at the next start.

# Where the API answers. An address that other machines reach, such as 0.0.0.0:11435, needs `network` in [server].
listen = "127.0.0.1:11435"

# Folder of models. Empty: models/ beside this file.
models_dir = ""

# Web pages of other origins that may call the API, such as "http://localhost:3000".
allowed_origins = []

[server]
# Answer on 127.0.0.1:11434 too, where clients look for Ollama, unless Ollama itself runs there.
act_as_ollama = false
# true: other machines may reach the API. Each of their requests then needs a key (`tierbar key add NAME`) or the token.
network = false
# Other machines speak TLS to it. Programs of this machine need not.
tls = false
# PEM files of your own certificate and its key; both empty: one is made and kept beside this file.
certificate = ""
key = ""
# Names that clients call this machine by, such as "mac-mini.local".
names = []
# true: inference needs a key on this machine too.
require_keys = false
# Most requests for inference that wait or are answered at the same time; more are refused.
requests_at_once = 256

[log]
# true: prompts are written into logs/, for finding faults. Otherwise none of their text is.
prompts = false

[library]
# Further folders of models, such as "/Volumes/Models". They are used in place and never changed.
folders = []
# Also use the models of LM Studio, of Ollama and of the Hugging Face cache.
other_apps = true

[downloads]
# Most bytes per second; 0: no limit.
rate_limit = 0
# Models fetched at the same time, 1 to 4.
at_once = 1

[policy]
# How many models may be in memory at once: "auto" (one up to 16 GB of RAM, else what fits) or a number.
max_loaded = "auto"
# So long requests for the loaded tier may pass an older one for another, so that models are not swapped at every turn.
patience = "10s"
# The tier that is loaded again when another has been unloaded for want of use. Empty: none.
home = ""
# Hours, such as "22:00-07:30", in which nothing is loaded that no request waits for, and nothing stays that nobody uses.
quiet_hours = ""
# On a battery below so many percent, nothing is loaded that no request waits for. 0: it may be.
battery_below = 20
# The same while another program fills the screen.
defer_to_full_screen = true
# After memory was short: requests for a tier that was loaded then go to the next smaller one for a while.
step_down = true
# Conversations are kept on the disk, in conversations/ beside this file, when their tier is unloaded, and go on later without
# being read again: for a week, and so many MiB of them. false: nothing is kept, and what is there is removed.
keep_conversations = true
conversations_mib = 2048

# A chain is asked for by its name, as a model is, and asks its steps one after another, such as
#   [chains.nightly]
#   steps = ["sonnet", "heavy", "primary", "queue"]
# docs/chains.md has all of it.
[queue]
# Requests that may wait (docs/queue.md): so many are answered at the same time, 1 to 8.
at_once = 1
# How long their answers are kept, at most "168h".
keep = "168h"
# Most that they and their answers may take on the disk.
bytes = "256MiB"
# Hosts that clients with an API key may name for webhooks, such as ["hooks.example.com"]. Those of this machine may name any.
webhook_hosts = []

# A tier has:
#   model     a model's id, a file name in the models folder, or a path; empty: none yet
#   context   tokens of prompt and answer together
#   kv_cache  f16, q8_0 or q4_0: smaller ones hold more context in the same memory
#   threads   CPU threads; 0 chooses
#   batch     tokens that are evaluated at once, 512 if not given; `tierbar tune` finds what is fastest
#   gpu_layers  most layers that the GPU may hold; as many as fit if not given
#   lookup    true: guess tokens by what followed the same words before; it rests where that does not pay
#   draft_model  a smaller model of the same family that guesses tokens, named as `model` is
#   idle_unload  unload it after so long without a request: "10m" if not given; "never"
#   engine    what answers: "embedded" if not given; or a server of your own, such as
#             {{ command = ["llama-server", "-m", "/models/x.gguf", "--host", "{{socket}}"], memory = "6GiB" }} or
#             {{ endpoint = "http://127.0.0.1:11434" }}, and for Anthropic's API
#             {{ endpoint = "https://api.anthropic.com", dialect = "anthropic" }}; docs/engines.md has all of it
#   pinned    true: loaded when Tierbar starts, and kept; no other tier takes its memory

# Triage, classification, routing.
[tiers.fast]
model = "{starter}"
context = 4096
kv_cache = "f16"
threads = 0

# Summaries, compression, chat.
[tiers.primary]
model = ""
context = 8192
kv_cache = "f16"
threads = 0

# Hard questions.
[tiers.heavy]
model = ""
context = 12288
kv_cache = "f16"
threads = 0

# A schedule has a task run at a time of day, "brief" (of JSON lines) or "summarize", over a file, what has changed in a folder, or
# a URL; into a file, or to a webhook. docs/tasks.md has all of it. Without the marks in front:
# [schedules.nightly]
# at = "02:00"
# days = ["mon", "tue", "wed", "thu", "fri"]
# task = "brief"
# source = "~/logs"
# to = "~/briefs/{{date}}.md"
"#
    )
}
