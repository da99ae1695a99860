//! `tierbar completions` and `tierbar man`: what a shell and `man` know of the commands.

use crate::output;
use clap::Command;
use clap_complete::Shell;
use tierbar_core::{Code, Error};

#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// Shell to complete commands in
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn completions(args: &Completions) {
    output::write(&script(args.shell, crate::command()));
}

pub(crate) fn man() -> Result<(), Error> {
    output::write(&page(crate::command())?);
    Ok(())
}

fn script(shell: Shell, mut command: Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "tierbar", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Returns the manual page in roff.
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

    #[test]
    fn completions_name_every_command_in_each_shell() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell, crate::command());
            for command in crate::command().get_subcommands() {
                let name = command.get_name();
                assert!(script.contains(name), "{shell}: {name}");
            }
        }
    }

    #[test]
    fn the_manual_page_names_every_command() {
        let page = page(crate::command()).unwrap();
        assert!(page.contains(".TH tierbar 1"), "{page}");
        for command in crate::command().get_subcommands() {
            let name = command.get_name();
            assert!(page.contains(&format!("tierbar\\-{name}")), "{name}");
        }
    }
}
