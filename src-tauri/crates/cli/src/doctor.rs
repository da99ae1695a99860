//! `tierbar doctor`: finds what keeps Tierbar from working, and says what to do. It changes nothing.

use crate::{client::Client, output};
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::{Code, Error, TierState, documents::DocumentSource};
use tierbar_host::{Finding, examine};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let folder = home.clone();
    let examined = tokio::task::spawn_blocking(move || examine(folder.as_deref()));
    let mut findings = examined.await.map_err(|ended| {
        let message = format!("the examination ended early: {ended}");
        Error::new(Code::Internal, message)
    })?;
    if let Ok(client) = Client::running(home.as_ref()) {
        findings.extend(of_the_host(&client).await);
    }
    if args.json {
        output::write_json(&json!({"findings": findings}));
    } else {
        output::write(&render_findings(&findings));
    }
    let bad = findings.iter().filter(|finding| finding.remedy.is_some());
    let message = match bad.count() {
        0 => return Ok(()),
        1 => "one thing needs your attention".to_owned(),
        several => format!("{several} things need your attention"),
    };
    // Only a script sees the code, as exit code 1.
    Err(Error::new(Code::TierFailed, message))
}

/// What the running host says of itself.
async fn of_the_host(client: &Client) -> Vec<Finding> {
    let tiers = match client.tiers().await {
        Ok(tiers) => tiers,
        Err(error) => {
            let remedy = error
                .hint
                .unwrap_or_else(|| "quit Tierbar and start it again".to_owned());
            return vec![Finding {
                what: error.message,
                remedy: Some(remedy),
            }];
        }
    };
    let failed = tiers
        .into_iter()
        .filter(|tier| tier.state == TierState::Failed);
    let sources = client.list("/tierbar/v1/documents", "sources").await;
    let documents = sources.unwrap_or_default().into_iter().map(of_source);
    let failed = failed.map(|tier| Finding {
        what: format!(
            "the tier {} failed: {}",
            tier.id,
            tier.reason.unwrap_or_default()
        ),
        remedy: Some(format!("run: tierbar log --tier {}", tier.id)),
    });
    failed.chain(documents).collect()
}

/// What the host has seen of a folder or file: macOS may let this program read what it denies the app.
fn of_source(source: DocumentSource) -> Finding {
    let path = source.path;
    let (what, remedy) = match source.problem {
        Some(problem) => (
            problem,
            "let Tierbar read it, or remove it from the documents",
        ),
        None if source.is_missing => (
            format!("{path} is not there, so its documents are searched as they were"),
            "connect its disk, or remove it from the documents",
        ),
        None => {
            let what = format!("the documents in {path} can be read");
            return Finding { what, remedy: None };
        }
    };
    let remedy = Some(remedy.to_owned());
    Finding { what, remedy }
}

fn render_findings(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        match &finding.remedy {
            None => text += &format!("✓ {}\n", finding.what),
            Some(remedy) => text += &format!("✗ {}\n  {remedy}\n", finding.what),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_of_documents_is_a_finding() {
        let source = |is_missing: bool, problem: Option<&str>| {
            let source = json!({
                "id": 1, "path": "/d", "collection": "Papers", "is_folder": true, "is_missing": is_missing, "problem": problem,
                "indexed": 0, "waiting": 0, "failed": 0, "noticed": 0, "read_pictures": false, "passages": 0,
                "without_vectors": 0, "left_out": null,
            });
            of_source(serde_json::from_value(source).unwrap())
        };
        let good = source(false, None);
        assert_eq!(good.what, "the documents in /d can be read");
        assert_eq!(good.remedy, None);
        assert!(source(true, None).what.starts_with("/d is not there"));
        let denied = source(false, Some("/d cannot be read: permission denied"));
        assert_eq!(denied.what, "/d cannot be read: permission denied");
        assert!(denied.remedy.is_some());
    }

    #[test]
    fn a_remedy_is_below_its_finding() {
        let finding = |what: &str, remedy: Option<&str>| Finding {
            what: what.to_owned(),
            remedy: remedy.map(str::to_owned),
        };
        let found = [
            finding("all is well", None),
            finding("a port is taken", Some("quit it")),
        ];
        assert_eq!(
            render_findings(&found),
            "✓ all is well\n✗ a port is taken\n  quit it\n"
        );
    }
}
