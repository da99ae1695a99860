//! The supervisor with real processes that misbehave by a script.

#![expect(clippy::unwrap_used, reason = "a test fails by its panic")]

mod commands;
mod ends;
mod failures;
mod journal;
mod leases;
mod reclaim;
mod residence;
mod safe_mode;
mod switches;

use std::{
    io,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use tierbar_core::{
    Error, TierId, TierState,
    lease::{Address, Endpoint, Lease, Tiers},
    status::TierStatus,
};
use tierbar_supervisor::{Handle, Options, Supervisor, TierSpec};
use tierbar_tests::{
    scripted::{self, Scripted, Sign, options, tier_spec},
    wait::until,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixStream},
    time::timeout,
};

/// Far more than any of these tests takes; without it, a defect would hang the run.
const HANG: Duration = Duration::from_secs(120);

/// A supervisor with a folder of its own, and tiers whose models are scripts.
struct Bench {
    handle: Handle,
    source: Arc<Scripted>,
    dir: TempDir,
}

impl Bench {
    /// One tier per `(name, script, planned bytes)`.
    fn new(tiers: &[(&str, &str, u64)]) -> Self {
        Self::with(tiers, |_| {})
    }

    fn with(tiers: &[(&str, &str, u64)], change: impl FnOnce(&mut Options)) -> Self {
        Self::within(tempfile::tempdir().unwrap(), tiers, change)
    }

    fn within(
        dir: TempDir,
        tiers: &[(&str, &str, u64)],
        change: impl FnOnce(&mut Options),
    ) -> Self {
        Self::made(dir, tiers, |options, _, _| change(options))
    }

    fn with_source(
        tiers: &[(&str, &str, u64)],
        change: impl FnOnce(&mut Options, &Scripted, &Path),
    ) -> Self {
        Self::made(tempfile::tempdir().unwrap(), tiers, change)
    }

    fn made(
        dir: TempDir,
        tiers: &[(&str, &str, u64)],
        change: impl FnOnce(&mut Options, &Scripted, &Path),
    ) -> Self {
        let source = Arc::new(Scripted::new(dir.path()));
        let specs = tiers.iter().map(|&(name, script, bytes)| {
            source.script(name, script, bytes);
            tier_spec(name, script)
        });
        let mut options = options(dir.path(), worker(), source.clone(), specs.collect());
        change(&mut options, &source, dir.path());
        let handle = Supervisor::start(options).unwrap();
        Self {
            handle,
            source,
            dir,
        }
    }

    async fn lease(&self, tier: &str) -> Result<Box<dyn Lease>, Error> {
        soon(self.handle.lease(&id(tier))).await
    }

    async fn stop(&self, tier: &str, force: bool) -> Result<(), Error> {
        soon(self.handle.stop(&id(tier), force)).await
    }

    /// Waits until the tier is as described, and returns it.
    async fn when(&self, tier: &str, is: impl Fn(&TierStatus) -> bool) -> TierStatus {
        let mut tiers = self.handle.watch();
        let find = |tiers: &Vec<TierStatus>| {
            tiers
                .iter()
                .find(|status| status.id.as_str() == tier && is(status))
                .cloned()
        };
        let found = soon(tiers.wait_for(|tiers| find(tiers).is_some()))
            .await
            .unwrap();
        find(&found).unwrap()
    }

    /// Returns the tier as a caller sees it right after a reply.
    fn now(&self, tier: &str) -> TierStatus {
        let mut tiers = self.handle.snapshot().into_iter();
        tiers.find(|status| status.id.as_str() == tier).unwrap()
    }

    async fn in_state(&self, tier: &str, state: TierState) -> TierStatus {
        self.when(tier, |status| status.state == state).await
    }

    fn workers(&self) -> Vec<Sign> {
        scripted::workers(self.dir.path()).unwrap()
    }

    fn sign_of(&self, pid: u32) -> Sign {
        let mut signs = self.workers().into_iter();
        signs.find(|sign| sign.pid() == Some(pid)).unwrap()
    }

    fn alive(&self) -> usize {
        let alive = |sign: &&Sign| sign.alive().unwrap();
        self.workers().iter().filter(alive).count()
    }

    /// Waits until no memory is planned for any tier.
    async fn empty(&self) {
        until("the memory to be back", async || {
            (self.handle.budget().planned_bytes == 0).then_some(())
        })
        .await;
    }

    fn sockets(&self) -> usize {
        let files = std::fs::read_dir(self.dir.path().join("run")).unwrap();
        let names = files.map(|file| file.unwrap().file_name());
        names.filter(|name| name != "commands.lock").count()
    }

    /// Ends everything, and checks that nothing is left.
    async fn close(&self) {
        soon(self.handle.shutdown()).await;
        assert_eq!(
            (self.alive(), self.sockets()),
            (0, 0),
            "workers and sockets left"
        );
    }
}

fn worker() -> PathBuf {
    env!("CARGO_BIN_EXE_bad_worker").into()
}

fn id(tier: &str) -> TierId {
    TierId::new(tier).unwrap()
}

fn without_model(tier: &str) -> TierSpec {
    TierSpec {
        model: None,
        ..tier_spec(tier, "")
    }
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(HANG, future).await.expect("it hangs")
}

/// Requests a path of the lease's worker, and returns the whole answer.
async fn get(lease: &dyn Lease, path: &str) -> io::Result<String> {
    let address = match lease.endpoint() {
        Endpoint::Unix(socket) => Address::Unix(socket.clone()),
        Endpoint::Foreign(foreign) => foreign.at.clone(),
    };
    let ask = async {
        match address {
            Address::Unix(socket) => exchange(UnixStream::connect(socket).await?, path).await,
            Address::Port(port) => {
                exchange(TcpStream::connect(("127.0.0.1", port)).await?, path).await
            }
            Address::Url(url) => panic!("{url}"),
        }
    };
    soon(ask).await
}

async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    path: &str,
) -> io::Result<String> {
    let request = format!("GET {path} HTTP/1.1\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

fn signal(signal: &str, pid: u32) {
    let sent = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}
