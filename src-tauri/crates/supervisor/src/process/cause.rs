//! The cause of a crash, as far as the exit status and the last output show.

use super::{
    LAST_READ,
    exit::ended_itself,
    log::{self, RecentOutput},
};
use crate::{platform::Processor, reclaim::MemoryProbe};
use rustix::process::Signal;
use serde::Serialize;
use serde_json::json;
use std::{
    borrow::Cow, os::unix::process::ExitStatusExt, path::PathBuf, process::ExitStatus, sync::Arc,
};
use tierbar_core::Error;
use tokio::{
    io::{AsyncRead, copy, sink},
    process::ChildStderr,
    task::JoinSet,
    time::timeout,
};

/// What shows why a process ends, besides its exit status: its output, and whether the kernel runs out of memory.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) words: Arc<RecentOutput>,
    /// Tasks that read its output.
    drains: JoinSet<()>,
    pub(super) memory: Arc<dyn MemoryProbe>,
    /// The kernel's count of processes that it had killed for want of memory when this one was started.
    oom_kills: Option<u64>,
}

impl Evidence {
    /// Begins with the start of a process.
    pub(super) fn collect_from(
        stderr: ChildStderr,
        log: PathBuf,
        memory: &Arc<dyn MemoryProbe>,
    ) -> Self {
        let words = Arc::<RecentOutput>::default();
        let mut drains = JoinSet::new();
        let read = Arc::clone(&words);
        drains.spawn(async move { log::drain(stderr, &log, &read).await });
        Self {
            words,
            drains,
            memory: Arc::clone(memory),
            oom_kills: memory.oom_kills(),
        }
    }

    /// Keeps reading an output of which only a full pipe matters.
    pub(super) fn discard(&mut self, mut output: impl AsyncRead + Unpin + Send + 'static) {
        self.drains.spawn(async move {
            let _ = copy(&mut output, &mut sink()).await;
        });
    }

    /// Reads the rest of the output of a process that has ended.
    pub(super) async fn complete(&mut self) {
        let all = async { while self.drains.join_next().await.is_some() {} };
        let _ = timeout(LAST_READ, all).await;
    }

    /// Returns the error of a sentence, which gets the last output if that says why the process ended. The error gets the cause, a hint
    /// and the last lines.
    pub(super) fn explain(
        &self,
        status: ExitStatus,
        sentence: String,
        error: impl FnOnce(String) -> Error,
    ) -> Error {
        let sentence = match ended_itself(status) {
            true => self.words.quoted_by(sentence),
            false => sentence,
        };
        let lines = self.words.lines();
        let oom_kills = self.oom_kills.zip(self.memory.oom_kills());
        let oom_killed = oom_kills.map(|(before, now)| now > before);
        let cause = CrashCause::from_exit(status, &lines, oom_killed);
        error(sentence)
            .hint(cause.hint())
            .detail("cause", json!(cause))
            .detail("last_lines", lines)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CrashCause {
    OutOfMemory,
    /// The GPU or its driver.
    DeviceFault,
    Unsupported,
    /// The model's file is damaged, or vanished while it was mapped.
    BadFile,
    /// The worker met an instruction that this processor refuses.
    WrongProcessor,
    /// Something else has killed it, for a reason that is not known.
    Killed,
    Unknown,
}

/// Messages of llama.cpp and of drivers, in lower case; the first match counts.
const SAYINGS: &[(CrashCause, &[&str])] = &[
    (
        CrashCause::OutOfMemory,
        &[
            "out of memory",
            "outofmemory",
            "bad_alloc",
            "failed to allocate",
            "unable to allocate",
            "cannot allocate memory",
            "insufficient memory",
        ],
    ),
    (
        CrashCause::DeviceFault,
        &[
            "command buffer",
            "kiogpucommandbuffercallbackerror",
            "device lost",
            "cuda error",
            "metal_graph_compute",
        ],
    ),
    (
        CrashCause::Unsupported,
        &["unknown model architecture", "unsupported model"],
    ),
    (
        CrashCause::BadFile,
        &[
            "is not within the file bounds",
            "invalid magic",
            "corrupted or incomplete",
            "missing tensor",
            "wrong shape",
            "failed to read",
        ],
    ),
];

/// Earlier lines are about something else.
const LAST: usize = 8;

impl CrashCause {
    /// Classifies a crash; `words` are the last lines in order.
    pub(crate) fn from_exit(
        status: ExitStatus,
        words: &[String],
        oom_killed: Option<bool>,
    ) -> Self {
        let ended = |signal: Signal| status.signal() == Some(signal.as_raw());
        if ended(Signal::KILL) {
            return match oom_killed {
                Some(true) => Self::OutOfMemory,
                Some(false) | None => Self::Killed,
            };
        }
        if ended(Signal::ILL) {
            return Self::WrongProcessor;
        }
        // A page of the mapped file that cannot be read.
        if ended(Signal::BUS) {
            return Self::BadFile;
        }
        if !ended_itself(status) {
            return Self::Unknown;
        }
        let mut lines = words.iter().rev().take(LAST);
        let cause = lines.find_map(|line| {
            let line = line.to_ascii_lowercase();
            let mut known = SAYINGS.iter();
            known.find(|(_, sayings)| sayings.iter().any(|saying| line.contains(saying)))
        });
        cause.map_or(Self::Unknown, |(cause, _)| *cause)
    }

    pub(crate) fn hint(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::OutOfMemory => {
                "memory ran out while it ran: choose a smaller model or a smaller context"
            }
            Self::DeviceFault => {
                "the GPU or its driver failed: try again, and set `gpu_layers = 0` for this tier if it fails again"
            }
            Self::Unsupported => {
                "this engine cannot run the model: update Tierbar, or choose another model"
            }
            Self::BadFile => {
                "the model's file may be damaged, shortened or replaced, or its disk disconnected: check the disk, or download the model again"
            }
            Self::Killed => {
                "another program or the system ended it; the system does so when memory runs out, and then a smaller model or a smaller context helps"
            }
            Self::WrongProcessor => {
                let here = Processor::of_this_machine();
                return explain_illegal_instruction(Processor::of_the_build(), here).into();
            }
            Self::Unknown => "see the worker's log; the next request starts it again",
        })
    }
}

impl Processor {
    /// Returns the processor of the machine that built this program.
    fn of_the_build() -> Option<Self> {
        Some(Self {
            name: option_env!("TIERBAR_BUILT_ON")?.to_owned(),
            instructions: option_env!("TIERBAR_BUILT_FOR")?.to_owned(),
        })
    }
}

/// Says what helps: a build on this machine, unless it was built here.
fn explain_illegal_instruction(built: Option<Processor>, here: Option<Processor>) -> String {
    match (built, here) {
        (Some(built), Some(here)) if built == here => format!(
            "this machine built the worker, so its C++ compiler may have made code that this processor ({}) refuses: run `cargo clean --release -p llama-cpp-sys-2`, then build again with another compiler, such as `CC=clang CXX=clang++ make build`",
            here.name
        ),
        (Some(built), Some(here)) => format!(
            "Tierbar was built on another machine ({}), and this processor ({}) may lack an instruction that the worker uses: run `make clean` and `make build` here",
            built.name, here.name
        ),
        _ => "this processor may lack an instruction that the worker uses: run `make clean` and `make build` on this machine".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(status: i32, words: &[&str]) -> CrashCause {
        let words: Vec<_> = words.iter().map(|&line| line.to_owned()).collect();
        CrashCause::from_exit(ExitStatus::from_raw(status), &words, None)
    }

    #[test]
    fn a_kill_is_for_want_of_memory_only_if_the_kernel_says_so() {
        let of = |oom_killed| CrashCause::from_exit(ExitStatus::from_raw(9), &[], oom_killed);
        assert_eq!(of(Some(true)), CrashCause::OutOfMemory);
        assert_eq!(of(Some(false)), CrashCause::Killed);
        assert_eq!(of(None), CrashCause::Killed);
    }

    #[test]
    fn a_process_cut_short_has_not_said_why() {
        let allocation = "failed to allocate buffer";
        assert_eq!(cause(7, &[allocation]), CrashCause::BadFile);
        assert_eq!(cause(11, &[allocation]), CrashCause::Unknown);
        assert_eq!(cause(15, &[allocation]), CrashCause::Unknown);
    }

    #[test]
    fn an_illegal_instruction_says_where_it_was_built() {
        let processor = |name: &str, instructions: &str| Processor {
            name: name.to_owned(),
            instructions: instructions.to_owned(),
        };
        let xeon = || Some(processor("Xeon", "avx512f amx_tile"));
        let here = explain_illegal_instruction(xeon(), xeon());
        assert!(here.starts_with("this machine built the worker"), "{here}");
        // One model may have fewer instructions in a virtual machine.
        let masked = Some(processor("Xeon", "avx512f"));
        let elsewhere = explain_illegal_instruction(xeon(), masked);
        assert!(
            elsewhere.contains("built on another machine"),
            "{elsewhere}"
        );
        let unknown = explain_illegal_instruction(None, xeon());
        assert!(unknown.contains("on this machine"), "{unknown}");
    }

    #[test]
    fn the_build_recorded_this_machines_processor() {
        assert_eq!(Processor::of_the_build(), Processor::of_this_machine());
    }

    #[test]
    fn a_crash_is_classed_by_signal_and_last_output() {
        assert_eq!(cause(4, &[]), CrashCause::WrongProcessor);
        assert_eq!(cause(7, &[]), CrashCause::BadFile);
        assert_eq!(cause(11, &["loading"]), CrashCause::Unknown);
        let ggml =
            "ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 99";
        assert_eq!(cause(6, &["missing tensor", ggml]), CrashCause::OutOfMemory);
        let metal = "ggml_metal_synchronize: error: command buffer 0 failed with status 5";
        assert_eq!(cause(6, &[metal, "0: backtrace"]), CrashCause::DeviceFault);
        let thrown = "terminate called after throwing an instance of 'std::bad_alloc'";
        assert_eq!(cause(6, &[thrown]), CrashCause::OutOfMemory);
        let old = "unknown model architecture: 'x'";
        assert_eq!(cause(256, &[old]), CrashCause::Unsupported);
    }

    #[test]
    fn a_gpu_out_of_memory_is_no_gpu_failure() {
        let line =
            "error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)";
        assert_eq!(cause(6, &[line]), CrashCause::OutOfMemory);
    }
}
