//! A name that leads elsewhere at times, because another program changes what has it while a test uses it.

use crate::skip;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::{
    env, fs,
    io::{self, ErrorKind},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// What an attempt to use a name found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Own,
    /// Nothing: it was refused, or not there.
    Refused,
    /// What the name leads to at times.
    Foreign,
}

/// How a name comes to lead elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Its folder is moved away, and a link takes the name.
    Link,
    /// Its folder and a link exchange their names, so that it always leads somewhere.
    Exchange,
    /// Its folder is moved away, and the other folder takes the name.
    Rename,
    /// The other folder is mounted on it. Where a process may not do so, that is skipped.
    Mount,
}

/// By these, any other folder is refused.
pub const LINKS: [Way; 2] = [Way::Link, Way::Exchange];
/// By some of these, a real folder has the name: only Tierbar's own data is refused.
pub const ALL: [Way; 4] = [Way::Link, Way::Exchange, Way::Rename, Way::Mount];

/// Set for a test that runs again where it may mount.
const MOUNTS: &str = "TIERBAR_TEST_MOUNTS";

/// Makes the name of a folder lead to another one at times, while each attempt uses it: together for a second, with `RUN_SLOW_TESTS` for
/// half a minute, and each until it was both used and refused. A test has at most one race, since it runs again to mount.
pub fn race(ways: &[Way], own: &Path, foreign: &Path, attempts: &mut [&mut dyn FnMut() -> Found]) {
    let is_slow = env::var_os("RUN_SLOW_TESTS").is_some_and(|value| value == "1");
    let time = Duration::from_secs(if is_slow { 30 } else { 1 });
    let time = time / u32::try_from(ways.len() * attempts.len()).unwrap();
    let may_mount = env::var_os(MOUNTS).is_some();
    let places = Places {
        own,
        foreign,
        link: own.with_extension("link"),
        aside: own.with_extension("aside"),
    };
    symlink(foreign, &places.link).unwrap();
    for way in ways {
        if may_mount == (*way == Way::Mount) {
            for attempt in &mut *attempts {
                places.race(*way, time, attempt);
            }
        } else if *way == Way::Mount {
            run_again(own);
        }
    }
}

struct Places<'a> {
    own: &'a Path,
    foreign: &'a Path,
    link: PathBuf,
    aside: PathBuf,
}

impl Places<'_> {
    fn race(&self, way: Way, time: Duration, attempt: &mut impl FnMut() -> Found) {
        // Where the disk cannot do this, nothing is tested.
        self.lead_elsewhere_and_back(way).unwrap();
        let is_over = AtomicBool::new(false);
        let leaked = thread::scope(|scope| {
            let changing = scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    self.lead_elsewhere_and_back(way).unwrap();
                }
            });
            let _over = SetAtEnd(&is_over);
            let begun = Instant::now();
            let (mut used, mut refused, mut leaked) = (false, false, false);
            while !leaked
                && !changing.is_finished()
                && (begun.elapsed() < time || !used || !refused)
            {
                match attempt() {
                    Found::Own => used = true,
                    Found::Refused => refused = true,
                    Found::Foreign => leaked = true,
                }
            }
            leaked
        });
        assert!(!leaked, "{way:?}: {} led elsewhere", self.own.display());
    }

    fn lead_elsewhere_and_back(&self, way: Way) -> io::Result<()> {
        let Self { own, foreign, .. } = *self;
        let (link, aside) = (&self.link, &self.aside);
        match way {
            Way::Exchange => {
                let exchange = || renameat_with(CWD, own, CWD, link, RenameFlags::EXCHANGE);
                exchange().and_then(|()| exchange())?;
            }
            Way::Link => {
                fs::rename(own, aside)?;
                self.take_name(|| symlink(foreign, own))?;
                self.take_name(|| {
                    let _may_be_a_folder = fs::remove_file(own);
                    fs::rename(aside, own)
                })?;
            }
            Way::Rename => {
                fs::rename(own, aside)?;
                self.take_name(|| fs::rename(foreign, own))?;
                fs::rename(own, foreign)?;
                self.take_name(|| fs::rename(aside, own))?;
            }
            Way::Mount => {
                run(Command::new("mount").arg("--bind").args([foreign, own]))?;
                run(Command::new("umount").arg("-l").arg(own))?;
            }
        }
        Ok(())
    }

    /// Gives the name to something else. A folder that an attempt has created meanwhile is removed.
    fn take_name(&self, take: impl Fn() -> io::Result<()>) -> io::Result<()> {
        loop {
            let taken = take();
            let kind = taken.as_ref().err().map(io::Error::kind);
            if !matches!(
                kind,
                Some(ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty)
            ) {
                return taken;
            }
            let _may_be_used = fs::remove_dir_all(self.own);
        }
    }
}

/// Also if the attempt panics: the thread that changes the name is waited for.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs this test again in a namespace of its own, in which it may mount.
fn run_again(own: &Path) {
    let in_namespace = || {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount"]);
        command
    };
    let mut trial = in_namespace();
    trial
        .args(["sh", "-c", "mount --bind \"$0\" \"$0\""])
        .arg(own);
    if let Err(why) = run(&mut trial) {
        return skip(&format!("nothing can be mounted here: {why}"));
    }
    let test = thread::current().name().unwrap().to_owned();
    let mut again = in_namespace();
    again.arg(env::current_exe().unwrap()).arg(test);
    again.args(["--exact", "--include-ignored"]);
    let output = again.env(MOUNTS, "1").output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(out.contains(" 1 passed"), "{out}{err}");
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(why.trim().to_owned()))
}
