//! `tierbar-guard` runs a program for as long as its host lives. See `guard`.

use std::process::ExitCode;

fn main() -> ExitCode {
    tierbar_sandbox::guard::main()
}
