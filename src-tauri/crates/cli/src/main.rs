//! `tierbar`: the host without a screen, and a client of a host that runs.

mod bench;
mod chat;
mod client;
mod costs;
mod downloads;
mod key;
mod log;
mod measure;
mod models;
mod output;
mod pause;
mod queue;
mod schedule;
mod secret;
mod serve;
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
    about = "Private local models in three tiers, behind one API"
)]
struct Args {
    /// Data folder [default: the usual place, or TIERBAR_HOME]
    #[arg(long, global = true, value_name = "DIR")]
    home: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the host without a window, until Ctrl-C
    Serve(serve::Args),
    /// Memory, speed and tiers of the running host
    Status(status::Args),
    /// What happened to the tiers, and why
    Log(log::Args),
    /// Models: which are here, what fits, fetch, check, delete
    Models(models::Args),
    /// Models on their way
    Downloads(downloads::Args),
    /// Requests that wait, and their answers
    Queue(queue::Args),
    /// Tokens of other services, such as the model hub's
    #[command(subcommand)]
    Secret(secret::Command),
    /// Keys that open inference to other machines and people
    #[command(subcommand)]
    Key(key::Command),
    /// Load or unload a tier
    #[command(subcommand)]
    Tier(tier::Command),
    /// Refuse requests and unload what nobody uses, so that the memory is yours
    Pause(pause::Args),
    /// End a pause
    Resume,
    /// Talk to a tier here in the terminal
    Chat(chat::Args),
    /// What a message is, how urgent, and whether a small model can answer it
    Triage(task::Triage),
    /// A text in fewer words; names, numbers and dates that are lost are told
    Compress(task::Compress),
    /// A text of any length in a few words
    Summarize(task::Summarize),
    /// A dense brief of a day's JSON lines
    Brief(task::Brief),
    /// What tasks took here, and saved elsewhere
    Costs(costs::Args),
    /// What runs at a time of day
    #[command(subcommand)]
    Schedule(schedule::Command),
    /// Measure how fast a tier reads and writes
    Bench(bench::Args),
    /// Find the settings that a tier is fastest with, and keep them
    Tune(tune::Args),
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
    // A read of the terminal cannot be interrupted; it must not hold the exit up.
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
        Command::Status(args) => status::run(home, &args).await,
        Command::Log(args) => log::run(home, args).await,
        Command::Models(args) => models::run(home, args).await,
        Command::Downloads(args) => downloads::run(home, args).await,
        Command::Queue(args) => queue::run(home, args).await,
        Command::Secret(command) => secret::run(home, command).await,
        Command::Key(command) => key::run(home, command).await,
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
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_commands_do_not_contradict_each_other() {
        super::Args::command().debug_assert();
    }
}
