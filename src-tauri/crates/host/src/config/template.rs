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
        r#"# Tierbar's configuration. Saving it applies it; `listen` takes effect at the next start.

# Where the API answers. Beyond this machine, such as 0.0.0.0:11435, every request needs the token.
listen = "127.0.0.1:11435"

# Folder of models. Empty: models/ beside this file.
models_dir = ""

# Web pages of other origins that may call the API, such as "http://localhost:3000".
allowed_origins = []

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
#             {{ endpoint = "http://127.0.0.1:11434" }}; docs/engines.md has all of it
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
