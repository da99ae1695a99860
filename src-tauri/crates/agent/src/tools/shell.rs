//! Commands, as requests to the sandbox.

use super::Failure;
use crate::{
    agent::ActResult,
    consent::{Act, PermittedAct, read_only},
};
use std::path::PathBuf;
use tierbar_sandbox::{CommandResult, End, Limits, Network, NetworkUse, Policy, Request};

/// What holds for every command of a host.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    pub limits: Limits,
    /// Tierbar's data, which no command may see.
    pub protected: Vec<PathBuf>,
}

/// Returns the request to the sandbox. A command that ran without consent gets no rights to write, and no shell.
///
/// # Errors
/// [`Failure`] for an act that is no command.
pub fn request(permitted: &PermittedAct, terms: &Terms) -> Result<Request, Failure> {
    let Act::Command {
        line,
        folder,
        network,
    } = permitted.act()
    else {
        return Err(Failure::new("this is no command"));
    };
    let mut policy = Policy {
        limits: terms.limits,
        protected: terms.protected.clone(),
        ..Policy::default()
    };
    if *network {
        policy.network = Network::Web;
    }
    if !permitted.reads_only() {
        policy.write = vec![folder.clone()];
        return Ok(Request::shell(line, folder.clone(), policy));
    }
    policy.read = vec![folder.clone()];
    let arguments =
        read_only(line).ok_or_else(|| Failure::new("this command does more than read"))?;
    Ok(Request {
        arguments,
        folder: Some(folder.clone()),
        policy,
        ..Request::default()
    })
}

/// What a command that has ended has found. Any end but exit code 0 is a failure.
pub fn render(finished: &CommandResult, limits: &Limits) -> ActResult {
    let output = finished.stdout.text.trim_end_matches('\n');
    let errors = finished.stderr.text.trim_end_matches('\n');
    let mut parts = vec![output.to_owned()];
    if !errors.is_empty() {
        parts.push(format!("[stderr]\n{errors}"));
    }
    let failed = !matches!(finished.end, End::Exited { code: 0 });
    let end = match &finished.end {
        End::Exited { code: 0 } if output.is_empty() && errors.is_empty() => {
            "it ended without output".to_owned()
        }
        End::Exited { code: 0 } => String::new(),
        End::Exited { code } => format!("exit code {code}"),
        End::Killed { signal } => format!("ended by signal {signal}"),
        End::TimeLimit => format!("ended after {} s, its time limit", limits.seconds),
        End::MemoryLimit => format!(
            "ended at its limit of memory, {} MiB",
            limits.memory_bytes / (1024 * 1024)
        ),
        End::MemoryShort => "ended because the machine had almost no memory left".to_owned(),
        End::ProcessLimit => format!("ended at its limit of {} processes", limits.processes),
        End::OutputLimit => format!(
            "ended at its limit of output, {} MiB",
            limits.output_bytes / (1024 * 1024)
        ),
        End::Stopped => "stopped by the user".to_owned(),
    };
    if !end.is_empty() {
        parts.push(format!("[{end}]"));
    }
    let notes = network_notes(finished.network.as_ref(), failed).into_iter();
    parts.extend(notes.map(|note| format!("[{note}]")));
    parts.retain(|part| !part.is_empty());
    ActResult {
        failed,
        ..ActResult::text(parts.join("\n"))
    }
}

/// What kept a command from the network, if it had any.
fn network_notes(network: Option<&NetworkUse>, failed: bool) -> Vec<String> {
    let Some(network) = network else {
        return Vec::new();
    };
    if failed && network.connections == 0 && network.refusals.is_empty() {
        return vec![
            "nothing used the network: programs have it only by the proxy that HTTPS_PROXY names"
                .to_owned(),
        ];
    }
    let notes = network.refusals.iter();
    notes.map(|why| format!("network: {why}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consent::{Answer, Decision, General, Grants, Scope, decide};
    use tierbar_sandbox::Output;

    fn act(line: &str, network: bool) -> Act {
        Act::Command {
            line: line.into(),
            folder: "/work".into(),
            network,
        }
    }

    /// Permits an act, by a person's answer if it asks.
    fn permitted(act: Act) -> PermittedAct {
        let general = General {
            reading: true,
            ..General::default()
        };
        let mut grants = Grants::default();
        match decide(act, general, &grants, 0, "id".into()) {
            Decision::Allowed(permitted) => permitted,
            Decision::Ask(pending) => {
                let answer = Answer {
                    id: "id".into(),
                    allow: Some(Scope::Once),
                };
                let permitted = pending.answer(&answer, "chat", &mut grants, 0);
                permitted.unwrap().unwrap()
            }
            Decision::Refused(why) => panic!("{why}"),
        }
    }

    #[test]
    fn a_command_without_consent_cannot_write() {
        let terms = Terms {
            protected: vec!["/data".into()],
            ..Terms::default()
        };
        let request = |act| super::request(&permitted(act), &terms).unwrap();
        let reads = request(act("grep -rn 'a b' src", false));
        assert_eq!(reads.arguments, ["grep", "-rn", "a b", "src"]);
        assert_eq!(reads.policy.read, [PathBuf::from("/work")]);
        assert!(reads.policy.write.is_empty());
        assert_eq!(reads.policy.network, Network::None);
        assert_eq!(reads.policy.protected, terms.protected);
        let writes = request(act("make && ls", false));
        assert_eq!(writes.arguments, ["/bin/sh", "-c", "make && ls"]);
        assert_eq!(writes.policy.write, [PathBuf::from("/work")]);
        assert_eq!(writes.policy.network, Network::None);
        let reaches = request(act("ls", true));
        assert_eq!(reaches.policy.network, Network::Web);
        assert_eq!(reaches.arguments[0], "/bin/sh");
    }

    #[test]
    fn only_a_command_becomes_a_sandbox_request() {
        let search = Act::Search {
            words: "x".into(),
            provider: "p".into(),
        };
        assert!(request(&permitted(search), &Terms::default()).is_err());
    }

    #[test]
    fn the_model_reads_output_errors_and_end() {
        let with_network = |end, stdout: &str, stderr: &str, network| {
            let output = |text: &str| Output {
                text: text.into(),
                bytes: text.len() as u64,
            };
            let finished = CommandResult {
                end,
                stdout: output(stdout),
                stderr: output(stderr),
                network,
            };
            let found = render(&finished, &Limits::default());
            (found.text, found.failed)
        };
        let finished = |end, stdout: &str, stderr: &str| with_network(end, stdout, stderr, None);
        let succeeded = |text: &str| (text.to_owned(), false);
        let failed = |text: &str| (text.to_owned(), true);
        let exited = |code| End::Exited { code };
        assert_eq!(finished(exited(0), "a\nb\n", ""), succeeded("a\nb"));
        let silent = succeeded("[it ended without output]");
        assert_eq!(finished(exited(0), "", ""), silent);
        // A warning is no failure.
        let warned = succeeded("[stderr]\nno");
        assert_eq!(finished(exited(0), "", "no\n"), warned);
        assert_eq!(
            finished(exited(2), "a\n", "no\n"),
            failed("a\n[stderr]\nno\n[exit code 2]")
        );
        assert_eq!(
            finished(End::TimeLimit, "", ""),
            failed("[ended after 120 s, its time limit]")
        );
        let killed = End::Killed { signal: 9 };
        assert_eq!(finished(killed, "", ""), failed("[ended by signal 9]"));
        // A program that has not found the proxy, and one that the proxy has refused.
        let unused = with_network(exited(6), "", "", Some(NetworkUse::default()));
        assert_eq!(
            unused,
            failed(
                "[exit code 6]\n[nothing used the network: programs have it only by the proxy that HTTPS_PROXY names]"
            )
        );
        let refused = NetworkUse {
            refusals: vec!["router is inside".into()],
            ..NetworkUse::default()
        };
        let refused = with_network(exited(0), "a\n", "", Some(refused));
        assert_eq!(refused, succeeded("a\n[network: router is inside]"));
        let quiet = with_network(exited(0), "a\n", "", Some(NetworkUse::default()));
        assert_eq!(quiet, succeeded("a"));
    }
}
