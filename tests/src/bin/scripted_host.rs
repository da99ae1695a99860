//! The smallest host: it loads one tier with `bad_worker`, prints that, and then waits to be killed.
//!
//! `scripted_host DIR WORKER [SCRIPT]`: everything it needs lies in DIR.

use std::{
    future,
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
};
use tierbar_core::lease::Tiers;
use tierbar_supervisor::Supervisor;
use tierbar_tests::scripted::{Scripted, options, tier_spec};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(dir), Some(worker)) = (arguments.next(), arguments.next()) else {
        return Err("scripted_host DIR WORKER [SCRIPT]".into());
    };
    let script = arguments.next().unwrap_or_else(|| "good".into());
    let script = script.to_string_lossy();
    let source = Arc::new(Scripted::new(&dir));
    source.script("fast", &script, 1);
    let handle = Supervisor::start(options(
        &dir,
        worker,
        source,
        vec![tier_spec("fast", &script)],
    ))?;
    let lease = handle.lease(&tierbar_core::TierId::new("fast")?).await?;
    writeln!(io::stdout(), "ready")?;
    io::stdout().flush()?;
    future::pending::<()>().await;
    drop(lease);
    Ok(())
}
