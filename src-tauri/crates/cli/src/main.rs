//! `tierbar`: runs Tierbar without a window, and controls a running one.

mod agent;
mod bench;
mod candidates;
mod chat;
mod chats;
mod client;
mod config;
mod confirm;
mod connect;
mod contexts;
mod costs;
mod diagnose;
mod doctor;
mod documents;
mod downloads;
mod examples;
mod exit;
mod experts;
mod grades;
mod key;
mod link;
mod log;
mod mcp;
mod mcp_servers;
mod measure;
mod models;
mod origins;
mod output;
mod pause;
mod platform;
mod queue;
mod reading;
mod requests;
mod route;
mod schedule;
mod secret;
mod serve;
mod service;
mod sessions;
mod setup;
mod shell;
mod status;
mod task;
#[cfg(test)]
mod testing;
mod tier;
mod tune;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use exit::Exit;
use std::{path::PathBuf, process::ExitCode};
use tierbar_core::Error;

#[derive(Debug, Parser)]
#[command(
    name = "tierbar",
    version,
    about = "Run private local models in three tiers behind one API",
    after_help = Exit::list()
)]
struct Args {
    /// Data folder [default: $TIERBAR_HOME, or the usual folder for application data]
    #[arg(long, global = true, value_name = "DIR")]
    home: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

/// A group of commands.
#[derive(Debug, clap::Args)]
pub(crate) struct Group<C: Subcommand> {
    #[command(subcommand)]
    pub(crate) command: Option<C>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run Tierbar without a window
    Serve(serve::Args),
    /// Run Tierbar in the background, from login on
    #[command(subcommand)]
    Service(service::Command),
    /// Choose and download a model for each tier of this machine
    Setup(setup::Args),
    /// Show memory, speed and tiers
    Status(status::Args),
    /// Show the event log
    Log(log::Args),
    /// Show the last requests, with their times and tokens
    Requests(requests::Args),
    /// List, download, check and delete models
    Models(models::Args),
    /// List and manage downloads
    Downloads(Group<downloads::Command>),
    /// List and manage queued requests
    Queue(Group<queue::Command>),
    /// List and manage tokens for other services, such as Hugging Face
    Secret(Group<secret::Command>),
    /// Show an app's settings for Tierbar, or write them into its configuration
    Connect(connect::Args),
    /// Serve documents, summaries, triage and models to an MCP client over stdin and stdout
    Mcp,
    /// List, allow and refuse web pages that call the API
    Origins(origins::Args),
    /// List, create and revoke API keys
    Key(Group<key::Command>),
    /// Print a link that signs a browser in, once and within 10 minutes
    Link(link::Args),
    /// List and sign out browsers that are signed in
    Sessions(Group<sessions::Command>),
    /// List tiers, choose a tier's model, load or unload it
    Tier(Group<tier::Command>),
    /// Refuse new requests and unload idle models
    Pause(pause::Args),
    /// Accept requests again after a pause
    Resume(pause::Resume),
    /// Chat with a tier in the terminal
    Chat(chat::Args),
    /// List, search, export, import and delete saved chats
    Chats(Group<chats::Command>),
    /// Measure models as agents; list and revoke agents' permissions
    Agent(Group<agent::Command>),
    /// Add, search and ask your documents
    Documents(Group<documents::Command>),
    /// Show how answers were graded, or export them
    Grades(Group<grades::Command>),
    /// Classify a message by type, urgency and the model it needs
    Triage(task::Input),
    /// Shorten a text and list the names, numbers and dates it lost
    Compress(task::Compress),
    /// Summarize a text of any length
    Summarize(task::Summarize),
    /// Write a brief of a day's log lines
    Brief(task::Brief),
    /// Show which tier would answer a question, and why
    Route(route::Args),
    /// List, save, load, upload and download saved contexts
    #[command(alias = "context")]
    Contexts(Group<contexts::Command>),
    /// Show the tokens, energy and cost of requests, and when a machine pays for itself
    Costs(costs::Args),
    /// List, add, remove and run scheduled tasks
    Schedule(Group<schedule::Command>),
    /// List, add, remove and test MCP servers for agents
    McpServers(Group<mcp_servers::Command>),
    /// Measure the speed of a tier
    Bench(bench::Args),
    /// Find and save the fastest settings for a tier
    Tune(tune::Args),
    /// Read and change settings
    Config(config::Args),
    /// Find problems and how to fix them
    Doctor(doctor::Args),
    /// Print figures for a problem report, without prompts, keys, paths or names
    Diagnose(diagnose::Args),
    /// Print a completion script for a shell
    Completions(shell::Completions),
    /// Print the manual page
    Man,
}

fn command() -> clap::Command {
    complete_below(Args::command(), "")
}

/// Completes the definition of a command of this name, such as `key add`, and those below it.
fn complete_below(command: clap::Command, name: &str) -> clap::Command {
    let command = candidates::add(examples::add(command, name), name);
    command.mut_subcommands(|below| {
        let name = format!("{name} {}", below.get_name());
        complete_below(below, name.trim())
    })
}

fn main() -> ExitCode {
    shell::complete();
    let matches = command().get_matches();
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::error_line(&format!("the async runtime did not start: {error}"));
            return Exit::Failed.into();
        }
    };
    let outcome = runtime.block_on(run(args));
    // A pending read from the terminal cannot be interrupted and must not delay the exit.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => Exit::Done.into(),
        Err(error) => {
            output::write_error(&error);
            Exit::for_code(error.code).into()
        }
    }
}

async fn run(args: Args) -> Result<(), Error> {
    let home = args.home;
    match args.command {
        Command::Serve(args) => serve::run(home, args).await,
        Command::Service(command) => service::run(home, command).await,
        Command::Setup(args) => setup::run(home, args).await,
        Command::Status(args) => status::run(home, &args).await,
        Command::Log(args) => log::run(home, args).await,
        Command::Requests(args) => requests::run(home, args).await,
        Command::Models(args) => models::run(home, args).await,
        Command::Downloads(args) => downloads::run(home, args).await,
        Command::Queue(args) => queue::run(home, args).await,
        Command::Secret(args) => secret::run(home, args).await,
        Command::Connect(args) => connect::run(home, args).await,
        Command::Mcp => mcp::run(home).await,
        Command::Origins(args) => origins::run(home, args).await,
        Command::Key(args) => key::run(home, args).await,
        Command::Link(args) => link::run(home, &args).await,
        Command::Sessions(args) => sessions::run(home, args).await,
        Command::Tier(args) => tier::run(home, args).await,
        Command::Pause(args) => pause::pause(home, &args).await,
        Command::Resume(args) => pause::resume(home, &args).await,
        Command::Chat(args) => chat::run(home, args).await,
        Command::Chats(args) => chats::run(home, args).await,
        Command::Agent(args) => agent::run(home, args).await,
        Command::Documents(args) => documents::run(home, args).await,
        Command::Grades(args) => grades::run(home, args).await,
        Command::Triage(args) => task::triage(home, args).await,
        Command::Compress(args) => task::compress(home, args).await,
        Command::Summarize(args) => task::summarize(home, args).await,
        Command::Brief(args) => task::brief(home, args).await,
        Command::Route(args) => route::run(home, args).await,
        Command::Contexts(args) => contexts::run(home, args).await,
        Command::Costs(args) => costs::run(home, args).await,
        Command::Schedule(args) => schedule::run(home, args).await,
        Command::McpServers(args) => mcp_servers::run(home, args).await,
        Command::Bench(args) => bench::run(home, args).await,
        Command::Tune(args) => tune::run(home, args).await,
        Command::Config(args) => config::run(home, args).await,
        Command::Doctor(args) => doctor::run(home, args).await,
        Command::Diagnose(args) => diagnose::run(home, &args).await,
        Command::Completions(args) => shell::completions(&args),
        Command::Man => shell::man(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Command;

    /// Calls `check` with each command that can be run, and its name, such as `models pull`.
    pub(crate) fn each_command(check: &mut dyn FnMut(&str, &Command)) {
        fn visit(name: &str, command: &Command, check: &mut dyn FnMut(&str, &Command)) {
            if !name.is_empty() && !command.is_subcommand_required_set() {
                check(name, command);
            }
            for below in command.get_subcommands() {
                if below.get_name() != "help" {
                    let name = format!("{name} {}", below.get_name());
                    visit(name.trim(), below, check);
                }
            }
        }
        let mut command = super::command();
        // Options of a group of commands become those of each.
        command.build();
        visit("", &command, check);
    }

    #[test]
    fn command_definitions_are_valid() {
        super::command().debug_assert();
    }

    #[test]
    fn every_command_prints_json() {
        // They write for a person, a shell, `man` or an MCP client.
        let others = ["completions", "config edit", "man", "mcp"];
        each_command(&mut |name, command| {
            let has_json = command.get_arguments().any(|arg| arg.get_id() == "json");
            assert_ne!(has_json, others.contains(&name), "{name}");
        });
    }
}
