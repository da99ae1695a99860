//! The tightest memory limit of the control groups around this process, versions 1 and 2.

use super::{number, page_size, read_line};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The figures of the group with the limit. `None` if it does not report one, or has no such limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupLimit {
    pub(super) group: PathBuf,
    pub(super) total_bytes: u64,
    /// The limit less the memory in use, without page cache that can be dropped.
    pub(super) available_bytes: u64,
    pub(super) swap_total_bytes: Option<u64>,
    pub(super) swap_used_bytes: Option<u64>,
    /// The group's own counter, on newer kernels.
    pub(super) swapped_out_bytes: Option<u64>,
    /// The group's own stall information, where the kernel keeps one.
    pub(super) pressure: Option<String>,
}

/// Names of the files of one version.
struct CgroupVersion {
    limit: &'static str,
    usage: &'static str,
    swap_limit: &'static str,
    swap_usage: &'static str,
    /// Whether the two swap files count memory and swap together.
    swap_with_memory: bool,
    /// Keys of `memory.stat` for memory that can be dropped, including child groups.
    cache: &'static [&'static str],
    swapped_out: &'static str,
}

const V1: CgroupVersion = CgroupVersion {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    swap_limit: "memory.memsw.limit_in_bytes",
    swap_usage: "memory.memsw.usage_in_bytes",
    swap_with_memory: true,
    cache: &["total_inactive_file", "total_active_file"],
    swapped_out: "total_pswpout",
};
const V2: CgroupVersion = CgroupVersion {
    limit: "memory.max",
    usage: "memory.current",
    swap_limit: "memory.swap.max",
    swap_usage: "memory.swap.current",
    swap_with_memory: false,
    cache: &["inactive_file", "active_file", "slab_reclaimable"],
    swapped_out: "pswpout",
};

/// Returns the tightest limit; `None` without a limit or control groups. `root` is `/` except in tests.
pub(super) fn limit(root: &Path) -> Option<GroupLimit> {
    let membership = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    membership
        .lines()
        .filter_map(|line| limit_of_line(root, line))
        .min_by_key(|limit| limit.total_bytes)
}

/// One line of `/proc/self/cgroup`: `0::/path` for version 2, `4:memory:/path` for version 1's memory controller.
fn limit_of_line(root: &Path, line: &str) -> Option<GroupLimit> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let (mount, version) = match controllers {
        "" => (root.join("sys/fs/cgroup"), V2),
        list if list.split(',').any(|name| name == "memory") => {
            (root.join("sys/fs/cgroup/memory"), V1)
        }
        _ => return None,
    };
    // A limit applies to all groups below it. Inside a container the path may be the host's, with only the mount itself
    // visible.
    let own: PathBuf = mount.join(path.trim_start_matches('/'));
    own.ancestors()
        .take_while(|group| group.starts_with(&mount))
        .filter_map(|group| limit_of_group(group, &version))
        .min_by_key(|limit| limit.total_bytes)
}

fn limit_of_group(group: &Path, version: &CgroupVersion) -> Option<GroupLimit> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    // No limit is `max` in version 2, and a number larger than any machine in version 1.
    let bytes = |name: &str| read_line(group, name)?.parse::<u64>().ok();
    let total_bytes = bytes(version.limit)?;
    let used = bytes(version.usage)?;
    let stat = read("memory.stat").unwrap_or_default();
    let cache = version
        .cache
        .iter()
        .filter_map(|key| number(&stat, key))
        .fold(0, u64::saturating_add);
    let (mut swap_total_bytes, mut swap_used_bytes) =
        (bytes(version.swap_limit), bytes(version.swap_usage));
    if version.swap_with_memory {
        swap_used_bytes = swap_used_bytes.map(|both| both.saturating_sub(used));
        // A group below its memory limit can have more in swap than the difference of the limits.
        swap_total_bytes = swap_total_bytes
            .map(|both| both.saturating_sub(total_bytes))
            .max(swap_used_bytes.filter(|_| swap_total_bytes.is_some()));
    }
    let swapped_out = number(&stat, version.swapped_out);
    Some(GroupLimit {
        group: group.to_owned(),
        total_bytes,
        available_bytes: total_bytes.saturating_sub(used.saturating_sub(cache)),
        swap_total_bytes,
        swap_used_bytes,
        swapped_out_bytes: swapped_out.map(|pages| pages.saturating_mul(page_size())),
        pressure: read("memory.pressure"),
    })
}

#[cfg(test)]
mod tests {
    use super::{super::testing::tree, *};

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_container_has_its_limit_and_its_cache_is_available() {
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
        assert_eq!(
            (limit.swap_total_bytes, limit.swap_used_bytes),
            (None, None)
        );
    }

    #[test]
    fn version_two_counts_swap_separately() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", &GIB.to_string()),
            ("sys/fs/cgroup/memory.current", "5\n"),
            ("sys/fs/cgroup/memory.swap.max", &(2 * GIB).to_string()),
            ("sys/fs/cgroup/memory.swap.current", "4096\n"),
            ("sys/fs/cgroup/memory.stat", "pswpin 3\npswpout 7\n"),
        ]);
        let limit = limit(root.path()).unwrap();
        assert_eq!(
            (limit.swap_total_bytes, limit.swap_used_bytes),
            (Some(2 * GIB), Some(4096))
        );
        let page = super::super::page_size();
        assert_eq!(limit.swapped_out_bytes, Some(7 * page));
    }

    #[test]
    fn version_one_counts_swap_with_memory() {
        let v1 = |memsw_limit: u64, usage: u64, memsw_usage: u64| {
            let root = tree(&[
                ("proc/self/cgroup", "4:memory:/\n"),
                (
                    "sys/fs/cgroup/memory/memory.limit_in_bytes",
                    &GIB.to_string(),
                ),
                (
                    "sys/fs/cgroup/memory/memory.usage_in_bytes",
                    &usage.to_string(),
                ),
                (
                    "sys/fs/cgroup/memory/memory.memsw.limit_in_bytes",
                    &memsw_limit.to_string(),
                ),
                (
                    "sys/fs/cgroup/memory/memory.memsw.usage_in_bytes",
                    &memsw_usage.to_string(),
                ),
            ]);
            let limit = limit(root.path()).unwrap();
            (limit.swap_total_bytes, limit.swap_used_bytes)
        };
        assert_eq!(v1(3 * GIB, GIB, GIB + 5), (Some(2 * GIB), Some(5)));
        // More than the difference of the limits is in swap, since little is in memory.
        assert_eq!(
            v1(3 * GIB, GIB / 2, 3 * GIB),
            (Some(2 * GIB + GIB / 2), Some(2 * GIB + GIB / 2))
        );
    }

    #[test]
    fn the_lowest_limit_of_the_parent_groups_holds() {
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
    fn there_is_no_limit_without_control_groups() {
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
