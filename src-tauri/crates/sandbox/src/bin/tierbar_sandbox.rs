//! `tierbar-sandbox` runs one command in a sandbox, and ends it with all that it has started. See `sandbox::launcher`.

use std::process::ExitCode;

fn main() -> ExitCode {
    tierbar_sandbox::launcher::main()
}
