//! `tierbar`: runs Tierbar without a window, and controls a running one.

mod bench;
mod chat;
mod client;
mod connect;
mod costs;
mod diagnose;
mod doctor;
mod downloads;
mod experts;
mod key;
mod log;
mod measure;
mod models;
mod origins;
mod output;
mod pause;
mod platform;
mod queue;
mod requests;
mod schedule;
mod secret;
mod serve;
mod service;
mod sessions;
mod setup;
mod shell;
mod status;
mod task;
mod tier;
mod tune;

use clap::{Parser, Subcommand};
use std::{path::PathBuf, process::ExitCode};
use tierbar_core::Error;

#[derive(Debug, Parser)]
#[command(
    name = "tierbar",
    version,
    about = "Run private local models in three tiers behind one API"
)]
struct Args {
    /// Data folder [default: $TIERBAR_HOME, or the usual folder for application data]
    #[arg(long, global = true, value_name = "DIR")]
    home: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
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
    Downloads(downloads::Args),
    /// List and manage queued requests
    Queue(queue::Args),
    /// Manage tokens for other services, such as Hugging Face
    #[command(subcommand)]
    Secret(secret::Command),
    /// Show an app's settings for Tierbar, or write them into its configuration
    Connect(connect::Args),
    /// List, allow and refuse web pages that call the API
    Origins(origins::Args),
    /// Manage API keys
    #[command(subcommand)]
    Key(key::Command),
    /// Manage browsers that are signed in
    #[command(subcommand)]
    Sessions(sessions::Command),
    /// Load or unload a tier
    #[command(subcommand)]
    Tier(tier::Command),
    /// Refuse new requests and unload idle models
    Pause(pause::Args),
    /// Accept requests again after a pause
    Resume,
    /// Chat with a tier in the terminal
    Chat(chat::Args),
    /// Classify a message by type, urgency and the model it needs
    Triage(task::Triage),
    /// Shorten a text and list the names, numbers and dates it lost
    Compress(task::Compress),
    /// Summarize a text of any length
    Summarize(task::Summarize),
    /// Write a brief of a day's JSON Lines
    Brief(task::Brief),
    /// Show the tokens that tasks used and saved
    Costs(costs::Args),
    /// List and run scheduled tasks
    #[command(subcommand)]
    Schedule(schedule::Command),
    /// Measure the speed of a tier
    Bench(bench::Args),
    /// Find and save the fastest settings for a tier
    Tune(tune::Args),
    /// Find what keeps Tierbar from working, and what to do about it
    Doctor,
    /// Print figures for a report: no prompts, keys, paths or names of yours
    Diagnose(diagnose::Args),
    /// Print a completion script for a shell
    Completions(shell::Completions),
    /// Print the manual page
    Man,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::error_line(&format!("the async runtime did not start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let outcome = runtime.block_on(run(args));
    // A pending read from the terminal cannot be interrupted and must not delay the exit.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            ExitCode::FAILURE
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
        Command::Secret(command) => secret::run(home, command).await,
        Command::Connect(args) => connect::run(home, args).await,
        Command::Origins(args) => origins::run(home, args).await,
        Command::Key(command) => key::run(home, command).await,
        Command::Sessions(command) => sessions::run(home, command).await,
        Command::Tier(command) => tier::run(home, command).await,
        Command::Pause(args) => pause::pause(home, &args).await,
        Command::Resume => pause::resume(home).await,
        Command::Chat(args) => chat::run(home, args).await,
        Command::Triage(args) => task::triage(home, args).await,
        Command::Compress(args) => task::compress(home, args).await,
        Command::Summarize(args) => task::summarize(home, args).await,
        Command::Brief(args) => task::brief(home, args).await,
        Command::Costs(args) => costs::run(home, args).await,
        Command::Schedule(command) => schedule::run(home, command).await,
        Command::Bench(args) => bench::run(home, args).await,
        Command::Tune(args) => tune::run(home, args).await,
        Command::Doctor => doctor::run(home).await,
        Command::Diagnose(args) => diagnose::run(home, &args).await,
        Command::Completions(args) => {
            shell::completions(&args);
            Ok(())
        }
        Command::Man => shell::man(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn command_definitions_are_valid() {
        super::Args::command().debug_assert();
    }
}
