//! The command of a worker: its arguments, and the variables that it gets.

use super::LaunchParams;
use std::{ffi::OsString, process::Stdio};
use tierbar_core::{
    budget::{LineKind, MICRO_BATCH, Placement},
    config::{Approximation, Paging},
    sampling::ModelSampling,
};
use tokio::process::Command;

impl LaunchParams {
    pub(super) fn command(&self) -> Command {
        let (options, spec) = (&self.options, &self.spec);
        let (settings, plan) = (&spec.settings, &spec.plan);
        let mut command = Command::new(&options.worker);
        command
            .arg("--model")
            .arg(&spec.path)
            .arg("--socket")
            .arg(&self.socket)
            // A file's name, which may begin with a dash. Paths do not: they are whole.
            .arg(format!("--id={}", spec.model.as_str()))
            .args(["--context", &settings.context.to_string()])
            .args(["--kv-cache", settings.kv_cache.as_str()]);
        if let Some(contexts) = &options.contexts_dir {
            command.arg("--contexts").arg(contexts);
        }
        if let (Some(swapped), Some(mib)) = (&options.swapped_dir, options.rules.conversations_mib)
        {
            command.arg("--swapped").arg(swapped);
            command.args(["--swapped-mib", &mib.to_string()]);
        }
        if let Some(projector) = &spec.projector {
            command.arg("--projector").arg(projector);
        }
        let threads = (settings.threads > 0).then_some(settings.threads);
        let batch = (settings.batch != MICRO_BATCH).then_some(settings.batch);
        command.args(option("--threads", threads));
        command.args(option("--batch", batch));
        if let Some(path) = &spec.draft_model {
            command.arg("--draft-model").arg(path);
        } else if settings.lookup {
            command.arg("--lookup");
        }
        let on_cpu = plan.bytes(LineKind::PagedExperts) > 0;
        command
            .args(option("--gpu-layers", settings.gpu_layers))
            .args(plan.placement.is_paged().then_some("--mapped"))
            .args(on_cpu.then_some("--experts-on-cpu"))
            .args(option("--experts-used", settings.experts_used))
            .args(settings.thinking.then_some("--thinking"));
        if settings.sampling != ModelSampling::default()
            && let Ok(sampling) = serde_json::to_string(&settings.sampling)
        {
            command.args(["--sampling", &sampling]);
        }
        match plan.placement {
            Placement::Cache => {
                let mib = plan.bytes(LineKind::ExpertCache) >> 20;
                command.args(["--expert-cache-mib", &mib.to_string()]);
                let how = settings.approximate;
                if how != Approximation::Off {
                    command.args(["--approximate", how.as_str()]);
                }
            }
            Placement::Advise => {
                command.arg("--announce-experts");
                if settings.paging == Paging::AdviseGpu {
                    command.arg("--gpu-prompts");
                }
            }
            Placement::Stream => {
                let mib = plan.bytes(LineKind::LayerCache) >> 20;
                command.args(["--layer-cache-mib", &mib.to_string()]);
            }
            _ => {}
        }
        command
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| passes(name)))
            .env("NO_COLOR", "1")
            // Where a debugger is installed, a failed assertion of ggml's would let it write into the handshake.
            .env("GGML_NO_BACKTRACE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C in the host's terminal is the host's to handle, and a stop reaches whatever the worker started.
            .process_group(0)
            .kill_on_drop(true);
        command
    }
}

/// Returns an option and its value, if it has one.
fn option(name: &str, value: Option<impl ToString>) -> impl Iterator<Item = String> {
    let pair = value.map(|value| [name.to_owned(), value.to_string()]);
    pair.into_iter().flatten()
}

/// Returns whether a worker gets this variable of the host's. It gets no keys or tokens.
pub(super) fn passes(name: &OsString) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    matches!(
        name,
        "HOME"
            | "PATH"
            | "TMPDIR"
            | "LANG"
            | "LC_ALL"
            | "LD_LIBRARY_PATH"
            | "RUST_BACKTRACE"
            | "RUST_LOG"
    ) || name.starts_with("GGML_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        LoadSettings, LoadSpec, ModelSource, Options, predecessors::PredecessorLock,
        safe_mode::LoadRecord,
    };
    use std::sync::Arc;
    use tierbar_core::{
        Error, ModelId, TierId,
        budget::{Budget, Line, LoadPlan},
        config::{KvCache, MaxLoaded, TierConfig},
        lease::{Address, BoxFuture},
    };

    #[derive(Debug)]
    struct NoModels;

    impl ModelSource for NoModels {
        fn prepare(&self, _: &TierId) -> BoxFuture<'_, Result<LoadSpec, Error>> {
            Box::pin(std::future::pending())
        }
    }

    fn options() -> Options {
        let budget = Budget::of_machine(16 << 30, MaxLoaded::Auto);
        let (run, logs) = ("/run".into(), "/logs".into());
        let mut options = Options::new(
            budget,
            Arc::new(NoModels),
            "/tierbar-worker".into(),
            run,
            logs,
        );
        options.contexts_dir = Some("/contexts".into());
        options.swapped_dir = Some("/swapped".into());
        options.rules.conversations_mib = Some(64);
        options
    }

    fn arguments(change: impl FnOnce(&mut LoadSpec)) -> Vec<String> {
        let mut spec = LoadSpec {
            model: ModelId("m".to_owned()),
            path: "/models/m.gguf".into(),
            projector: None,
            settings: LoadSettings {
                kv_cache: KvCache::Q4_0,
                ..LoadSettings::from(&TierConfig::default())
            },
            draft_model: None,
            command: None,
            plan: LoadPlan {
                placement: Placement::Resident,
                lines: Vec::new(),
                context_tokens: 4096,
                kind: tierbar_core::TierKind::Generative,
            },
        };
        change(&mut spec);
        let launch = LaunchParams {
            tier: TierId::new("fast").unwrap(),
            options: options(),
            spec,
            socket: "/run/1".into(),
            address: Address::Unix("/run/1".into()),
            reserved: None,
            loads: LoadRecord::open(None),
            predecessors: Arc::new(PredecessorLock::new("/run".as_ref())),
        };
        let command = launch.command();
        let arguments = command.as_std().get_args();
        arguments
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn a_workers_arguments_are_those_of_the_plan() {
        let plain = arguments(|_| {});
        assert_eq!(
            plain.join(" "),
            "--model /models/m.gguf --socket /run/1 --id=m --context 16384 --kv-cache q4_0 --contexts /contexts --swapped /swapped --swapped-mib 64"
        );
        let behind = |change: fn(&mut LoadSpec)| arguments(change).split_off(plain.len()).join(" ");
        assert_eq!(behind(|spec| spec.settings.threads = 3), "--threads 3");
        assert_eq!(behind(|spec| spec.settings.batch = 64), "--batch 64");
        assert_eq!(behind(|spec| spec.settings.lookup = true), "--lookup");
        let guesses = |spec: &mut LoadSpec| {
            spec.settings.lookup = true;
            spec.draft_model = Some("/models/small.gguf".into());
        };
        assert_eq!(behind(guesses), "--draft-model /models/small.gguf");
        let projector = |spec: &mut LoadSpec| spec.projector = Some("/models/mmproj.gguf".into());
        assert_eq!(behind(projector), "--projector /models/mmproj.gguf");
        assert_eq!(
            behind(|spec| spec.settings.gpu_layers = Some(0)),
            "--gpu-layers 0"
        );
        assert_eq!(
            behind(|spec| spec.settings.gpu_layers = Some(37)),
            "--gpu-layers 37"
        );
        assert_eq!(
            behind(|spec| spec.plan.placement = Placement::Mmap),
            "--mapped"
        );
        let cached = |spec: &mut LoadSpec| {
            spec.plan.placement = Placement::Cache;
            spec.plan.lines.push(Line {
                what: LineKind::ExpertCache,
                bytes: (700 << 20) + 5,
            });
        };
        assert_eq!(behind(cached), "--mapped --expert-cache-mib 700");
        let approximate = |spec: &mut LoadSpec| {
            spec.settings.approximate = Approximation::Substitute;
            spec.settings.experts_used = Some(2);
            spec.plan.placement = Placement::Cache;
        };
        assert_eq!(
            behind(approximate),
            "--mapped --experts-used 2 --expert-cache-mib 0 --approximate substitute"
        );
        let streamed = |spec: &mut LoadSpec| {
            spec.plan.placement = Placement::Stream;
            spec.plan.lines.push(Line {
                what: LineKind::LayerCache,
                bytes: 90 << 20,
            });
        };
        assert_eq!(behind(streamed), "--mapped --layer-cache-mib 90");
        fn advised(spec: &mut LoadSpec) {
            spec.plan.placement = Placement::Advise;
            spec.plan.lines.push(Line {
                what: LineKind::PagedExperts,
                bytes: 1,
            });
        }
        assert_eq!(
            behind(advised),
            "--mapped --experts-on-cpu --announce-experts"
        );
        let with_the_gpu = |spec: &mut LoadSpec| {
            advised(spec);
            spec.settings.paging = Paging::AdviseGpu;
        };
        assert_eq!(
            behind(with_the_gpu),
            "--mapped --experts-on-cpu --announce-experts --gpu-prompts"
        );
    }
}
