//! A projector is loaded in a process of its own first: llama.cpp asserts what it expects of one, as late as when a graph is built, and a file that breaks
//! that must not take the model along, which answers text without it.

use crate::{
    Args,
    llama::{Backend, Model, Projector, ProjectorParams, Weights},
};
use std::{
    io::Read,
    path::Path,
    process::{Command, ExitCode, Stdio},
    sync::{Arc, mpsc::channel},
    time::Duration,
};
use tierbar_core::{Code, Error};

/// Longer than any disk takes.
const DEADLINE: Duration = Duration::from_secs(300);

/// The trial itself, in the process that [`try_projector`] starts.
pub(crate) fn run_trial(args: &Args, projector: &Path) -> ExitCode {
    let tried = || -> Result<(), Error> {
        let _backend = Backend::init().map_err(|error| Error::new(Code::Internal, error))?;
        let weights = Weights {
            gpu_layers: Some(0),
            mapped: true,
            ..Weights::default()
        };
        let model = Arc::new(Model::load(&args.model, weights, &|_| ())?);
        let params = ProjectorParams {
            threads: 1,
            gpu: false,
            most_rows: None,
            turns: Arc::default(),
            pause: Arc::default(),
            warmup: true,
        };
        Projector::load(projector, model, params).map(drop)
    };
    match tried() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", error.message);
            ExitCode::FAILURE
        }
    }
}

/// # Errors
/// `ModelInvalid` with the trial's last line if the projector cannot be loaded.
pub(crate) fn try_projector(args: &Args, projector: &Path) -> Result<(), Error> {
    let invalid = |why: &str| {
        let path = projector.display();
        let message = format!("the projector {path} could not be loaded: {why}");
        Error::new(Code::ModelInvalid, message)
            .hint("the file may be damaged, or belong to another model: download it again")
    };
    let program = std::env::current_exe().map_err(|error| invalid(&error.to_string()))?;
    let child = Command::new(program)
        .arg("--model")
        .arg(&args.model)
        .arg("--projector")
        .arg(projector)
        .args(["--try-projector", "--socket", "none"])
        // It ends with us: its stdin does.
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| invalid(&error.to_string()))?;
    let stderr = child.stderr.take();
    let (ended, output) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stderr) = stderr {
            let _broken = stderr.read_to_end(&mut bytes);
        }
        let _given_up = ended.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    // Its output ends when it does.
    let Ok(output) = output.recv_timeout(DEADLINE) else {
        let _gone = child.kill().and_then(|()| child.wait());
        return Err(invalid("loading it takes too long"));
    };
    let status = child.wait().map_err(|error| invalid(&error.to_string()))?;
    if status.success() {
        return Ok(());
    }
    let last = output.lines().rfind(|line| !line.trim().is_empty());
    let last = last.unwrap_or("llama.cpp ended without a message");
    Err(invalid(last.trim()))
}
