//! `tierbar completions` and `tierbar man`: what a shell and `man` know of the commands.

use crate::output;
use clap::Command;
use clap_complete::{CompleteEnv, Shell, env::Shells};
use tierbar_core::{Code, Error};

/// With this variable, a shell's script asks for the completions of a line.
const VARIABLE: &str = "TIERBAR_COMPLETE";

#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// Shell to complete commands in
    #[arg(value_enum)]
    shell: Shell,
}

/// Answers a shell that completes a line, and ends the program then. Otherwise returns at once.
pub(crate) fn complete() {
    CompleteEnv::with_factory(crate::command)
        .var(VARIABLE)
        .complete();
}

pub(crate) fn completions(args: &Completions) -> Result<(), Error> {
    output::write(&script(args.shell)?);
    Ok(())
}

pub(crate) fn man() -> Result<(), Error> {
    output::write(&page(crate::command())?);
    Ok(())
}

/// Returns the script that calls `tierbar` for the completions of a line.
fn script(shell: Shell) -> Result<String, Error> {
    let none = |why: String| Error::new(Code::Internal, format!("no completion script: {why}"));
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string());
    let completer = completer.ok_or_else(|| none(format!("{shell} is unknown")))?;
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, "tierbar", "tierbar", "tierbar", &mut script)
        .map_err(|error| none(error.to_string()))?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

fn page(command: Command) -> Result<String, Error> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|error| Error::new(Code::Internal, format!("no manual page: {error}")))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use std::ffi::OsString;

    #[test]
    fn every_shell_has_a_script_that_calls_tierbar() {
        for shell in Shell::value_variants() {
            let script = script(*shell).unwrap();
            assert!(
                script.contains(VARIABLE) && script.contains("tierbar"),
                "{shell}: {script}"
            );
        }
    }

    #[test]
    fn commands_and_options_are_completed() {
        let completed = |words: &[&str]| -> Vec<String> {
            let args: Vec<_> = words.iter().map(OsString::from).collect();
            let last = args.len() - 1;
            let mut command = crate::command();
            let found = clap_complete::engine::complete(&mut command, args, last, None).unwrap();
            let names = found.iter().map(|name| name.get_value().to_string_lossy());
            names.map(|name| name.into_owned()).collect()
        };
        assert_eq!(completed(&["tierbar", "tier", "us"]), ["use"]);
        assert!(completed(&["tierbar", ""]).contains(&"models".to_owned()));
        assert_eq!(
            completed(&["tierbar", "models", "rm", "--per"]),
            ["--permanently"]
        );
    }

    #[test]
    fn the_manual_page_names_every_command() {
        let page = page(crate::command()).unwrap();
        assert!(page.contains(".TH tierbar 1"), "{page}");
        for command in crate::command().get_subcommands() {
            let name = command.get_name().replace('-', "\\-");
            assert!(page.contains(&format!("tierbar\\-{name}")), "{name}");
        }
    }
}
