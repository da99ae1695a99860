//! `tierbar origins`: which pages in a browser may call the API.

use crate::{
    client::{Client, admin_path, with_host},
    output,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use tierbar_core::{Error, status::RefusedOrigin};

const PATH: &str = "/tierbar/v1/origins";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print the list as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Allow the pages of an origin to call the API
    Allow {
        /// Scheme, host and port, such as http://localhost:3000
        origin: String,
    },
    /// Stop allowing an origin
    Revoke {
        /// Scheme, host and port, such as http://localhost:3000
        origin: String,
    },
}

#[derive(Debug, Deserialize)]
struct OriginList {
    allowed: Vec<String>,
    refused: Vec<RefusedOrigin>,
    program_schemes: Vec<String>,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let command = args.command.as_ref();
    let answer = with_host(home, async |client| call(client, command).await).await?;
    output::write_answer(args.json, answer, |list| render_origins(&list))
}

async fn call(client: &Client, command: Option<&Command>) -> Result<Value, Error> {
    match command {
        None => client.get(PATH).await,
        Some(Command::Allow { origin }) => client.post(PATH, &json!({"origin": origin})).await,
        Some(Command::Revoke { origin }) => {
            let path = admin_path(&["origins"], &[("origin", origin)]);
            client.delete(&path).await
        }
    }
}

fn render_origins(list: &OriginList) -> String {
    let mut text = String::new();
    for origin in &list.allowed {
        text += &format!("allowed  {origin}\n");
    }
    for RefusedOrigin { origin, .. } in &list.refused {
        text += &format!("refused  {origin}\n");
    }
    if text.is_empty() {
        text +=
            "No page of another origin is allowed, and none was refused since Tierbar started.\n";
    }
    if !list.refused.is_empty() {
        text += "\nTo let a refused page in: tierbar origins allow ORIGIN\n";
    }
    let schemes = list.program_schemes.iter();
    let schemes: Vec<_> = schemes.map(|scheme| format!("{scheme}://")).collect();
    text + &format!(
        "\nPages of installed apps ({}) may use the models without being allowed.\n",
        schemes.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_listed_with_what_to_do() {
        let mut list = OriginList {
            allowed: Vec::new(),
            refused: Vec::new(),
            program_schemes: vec!["app".to_owned()],
        };
        assert!(render_origins(&list).starts_with("No page of another origin is allowed"));
        list.allowed.push("https://a.example".to_owned());
        list.refused.push(RefusedOrigin {
            origin: "http://localhost:3000".to_owned(),
            since_ms: 0,
        });
        let text = render_origins(&list);
        assert!(text.starts_with("allowed  https://a.example\nrefused  http://localhost:3000\n"));
        assert!(text.contains("tierbar origins allow ORIGIN"));
        assert!(text.contains("(app://)"));
    }
}
