//! A control group that limits the memory of a worker.

use std::{
    fs,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};
use tokio::process::Command;

/// Removed at its end, once its processes are gone.
pub(crate) struct Group {
    folder: PathBuf,
    is_second: bool,
}

impl Group {
    /// A group with so many bytes, of swap too.
    ///
    /// # Errors
    /// Why there can be none: it takes root, and a memory controller.
    pub(crate) fn new(bytes: u64) -> Result<Self, String> {
        let (mount, is_second) =
            controller().ok_or("the kernel offers no memory controller here")?;
        let folder = mount.join(format!("tierbar-test-{}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let group = Self { folder, is_second };
        let limits = if is_second {
            [("memory.max", bytes), ("memory.swap.max", 0)]
        } else {
            [
                ("memory.limit_in_bytes", bytes),
                ("memory.memsw.limit_in_bytes", bytes),
            ]
        };
        for (name, bytes) in limits {
            let file = group.folder.join(name);
            // A kernel may keep no account of swap.
            if file.exists() {
                fs::write(&file, bytes.to_string()).map_err(|error| format!("{name}: {error}"))?;
            }
        }
        Ok(group)
    }

    /// Starts a program in the group.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"echo 0 > "$0" && exec "$@""#])
            .arg(self.folder.join("cgroup.procs"))
            .arg(program);
        command
    }

    /// How many processes the kernel has killed for memory.
    pub(crate) fn oom_kills(&self) -> u64 {
        let name = if self.is_second {
            "memory.events"
        } else {
            "memory.oom_control"
        };
        let text = fs::read_to_string(self.folder.join(name)).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        line.unwrap().parse().unwrap()
    }
}

impl Drop for Group {
    #[expect(
        clippy::disallowed_methods,
        reason = "the kernel says nothing when a group is empty"
    )]
    fn drop(&mut self) {
        let began = Instant::now();
        while fs::remove_dir(&self.folder).is_err() && began.elapsed() < Duration::from_secs(10) {
            sleep(Duration::from_millis(20));
        }
    }
}

/// The folder in which groups with a memory limit are made, and whether it is of the second version.
fn controller() -> Option<(PathBuf, bool)> {
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (mount, kind, options) = (fields.nth(1)?, fields.next()?, fields.next()?);
        let folder = Path::new(mount);
        let controls = || fs::read_to_string(folder.join("cgroup.subtree_control"));
        let is_first = kind == "cgroup" && options.split(',').any(|option| option == "memory");
        let is_second = kind == "cgroup2"
            && controls().is_ok_and(|all| all.split_whitespace().any(|one| one == "memory"));
        (is_first || is_second).then(|| (folder.to_owned(), is_second))
    })
}
