//! The tightest memory limit of the control groups around this process, versions 1 and 2.

use std::{
    fs,
    path::{Path, PathBuf},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Limit {
    pub(super) total_bytes: u64,
    /// The limit less what is used, where page cache that can be dropped does not count as used.
    pub(super) available_bytes: u64,
    /// The group's own stall information, where the kernel keeps one.
    pub(super) pressure: Option<String>,
}

/// Names of the files of one version.
struct Version {
    limit: &'static str,
    usage: &'static str,
    /// Keys of `memory.stat` for page cache, with the groups below.
    cache: [&'static str; 2],
}

const V1: Version = Version {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    cache: ["total_inactive_file", "total_active_file"],
};
const V2: Version = Version {
    limit: "memory.max",
    usage: "memory.current",
    cache: ["inactive_file", "active_file"],
};

/// `root` is `/` but in tests. `None`: no limit, or no control groups.
pub(super) fn limit(root: &Path) -> Option<Limit> {
    let membership = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    membership
        .lines()
        .filter_map(|line| of_line(root, line))
        .min_by_key(|limit| limit.total_bytes)
}

/// One line of `/proc/self/cgroup`: `0::/path` for version 2, `4:memory:/path` for version 1's memory controller.
fn of_line(root: &Path, line: &str) -> Option<Limit> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let (mount, version) = match controllers {
        "" => (root.join("sys/fs/cgroup"), V2),
        list if list.split(',').any(|name| name == "memory") => {
            (root.join("sys/fs/cgroup/memory"), V1)
        }
        _ => return None,
    };
    // A limit binds all groups below it. Inside a container the path may be one of the host's, of which only the
    // mount itself is visible.
    let own: PathBuf = mount.join(path.trim_start_matches('/'));
    own.ancestors()
        .take_while(|group| group.starts_with(&mount))
        .filter_map(|group| of_group(group, &version))
        .min_by_key(|limit| limit.total_bytes)
}

fn of_group(group: &Path, version: &Version) -> Option<Limit> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    // `max`, which is no number, means none in version 2; version 1 says a number larger than any machine.
    let total_bytes = read(version.limit)?.trim().parse().ok()?;
    let used: u64 = read(version.usage)?.trim().parse().ok()?;
    let stat = read("memory.stat").unwrap_or_default();
    let cache = version
        .cache
        .iter()
        .filter_map(|key| stat_line(&stat, key))
        .fold(0, u64::saturating_add);
    Some(Limit {
        total_bytes,
        available_bytes: total_bytes.saturating_sub(used.saturating_sub(cache)),
        pressure: read("memory.pressure"),
    })
}

fn stat_line(stat: &str, key: &str) -> Option<u64> {
    stat.lines().find_map(|line| {
        line.strip_prefix(key)?
            .strip_prefix(' ')?
            .trim()
            .parse()
            .ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn a_containers_limit_counts_and_its_page_cache_is_available() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", &format!("{}\n", 8 * GIB)),
            ("sys/fs/cgroup/memory.current", &format!("{}\n", 7 * GIB)),
            (
                "sys/fs/cgroup/memory.stat",
                &format!("anon 1\ninactive_file {}\nactive_file {GIB}\n", 3 * GIB),
            ),
            ("sys/fs/cgroup/memory.pressure", "some avg10=1.00\n"),
        ]);
        let limit = limit(root.path()).unwrap();
        assert_eq!(
            (limit.total_bytes, limit.available_bytes),
            (8 * GIB, 5 * GIB)
        );
        assert_eq!(limit.pressure.as_deref(), Some("some avg10=1.00\n"));
    }

    #[test]
    fn the_tightest_limit_of_the_groups_above_binds() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/user.slice/app.scope\n"),
            (
                "sys/fs/cgroup/user.slice/memory.max",
                &(4 * GIB).to_string(),
            ),
            ("sys/fs/cgroup/user.slice/memory.current", &GIB.to_string()),
            ("sys/fs/cgroup/user.slice/app.scope/memory.max", "max\n"),
            ("sys/fs/cgroup/user.slice/app.scope/memory.current", "5\n"),
        ]);
        let limit = limit(root.path()).unwrap();
        assert_eq!(
            (limit.total_bytes, limit.available_bytes),
            (4 * GIB, 3 * GIB)
        );
    }

    #[test]
    fn version_one_reads_the_memory_controller() {
        let root = tree(&[
            (
                "proc/self/cgroup",
                "11:cpu,cpuacct:/docker/abc\n9:memory:/docker/abc\n0::/docker/abc\n",
            ),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                &(2 * GIB).to_string(),
            ),
            (
                "sys/fs/cgroup/memory/memory.usage_in_bytes",
                &GIB.to_string(),
            ),
            (
                "sys/fs/cgroup/memory/memory.stat",
                &format!("cache 9\ntotal_inactive_file {}\n", GIB / 2),
            ),
        ]);
        let limit = limit(root.path()).unwrap();
        assert_eq!(
            (limit.total_bytes, limit.available_bytes),
            (2 * GIB, GIB + GIB / 2)
        );
    }

    #[test]
    fn without_limits_or_control_groups_there_is_none() {
        assert_eq!(limit(tree(&[]).path()), None);
        let unlimited = tree(&[
            ("proc/self/cgroup", "0::/x\n"),
            ("sys/fs/cgroup/x/memory.max", "max\n"),
            ("sys/fs/cgroup/x/memory.current", "7\n"),
        ]);
        assert_eq!(limit(unlimited.path()), None);
        assert_eq!(
            limit(
                tree(&[(
                    "proc/self/cgroup",
                    "nonsense\n\u{0}:::\n9:memory:/../../..\n"
                )])
                .path()
            ),
            None
        );
    }
}
