use super::{super::testing::tree, *};
use tierbar_core::status::Pressure;

const GIB: u64 = 1 << 30;

const MEMINFO: &str = "MemTotal:       16777216 kB\nMemFree:          100 kB\nMemAvailable:    8388608 kB\n\
                       SwapTotal:       2097152 kB\nSwapFree:        1048576 kB\n";

#[test]
fn a_reading_of_this_machine_has_the_common_figures() {
    let figures = read();
    let total = figures.ram_total_bytes.unwrap();
    assert!(total > 100 << 20, "{figures:?}");
    assert!((1..=total).contains(&figures.ram_available_bytes.unwrap()));
    assert!(figures.swap_used_bytes.is_some(), "{figures:?}");
    assert!(figures.swapped_out_bytes.is_some(), "{figures:?}");
    assert!(figures.cpu.unwrap().total > 0, "{figures:?}");
    assert!(figures.disk_read_bytes.is_some(), "{figures:?}");
    assert!(figures.disk_written_bytes.is_some(), "{figures:?}");
}

#[test]
fn held_memory_is_anonymous_shared_and_swapped() {
    let meminfo =
        format!("{MEMINFO}Cached: 9000000 kB\nAnonPages: 3145728 kB\nShmem: 1048576 kB\n");
    let machine = tree(&[("proc/meminfo", &meminfo)]);
    assert_eq!(held_in(machine.path()), Some(5 * GIB));
    assert_eq!(held_in(tree(&[("proc/meminfo", MEMINFO)]).path()), None);
    let group = tree(&[
        ("proc/meminfo", &meminfo),
        ("proc/self/cgroup", "0::/\n"),
        ("sys/fs/cgroup/memory.max", &format!("{}\n", 8 * GIB)),
        ("sys/fs/cgroup/memory.current", &format!("{}\n", 7 * GIB)),
        ("sys/fs/cgroup/memory.swap.max", &format!("{}\n", 2 * GIB)),
        ("sys/fs/cgroup/memory.swap.current", &format!("{GIB}\n")),
        (
            "sys/fs/cgroup/memory.stat",
            &format!("anon 1\ninactive_file {}\nactive_file {GIB}\n", 3 * GIB),
        ),
    ]);
    assert_eq!(held_in(group.path()), Some(4 * GIB));
}

/// Returns how far the machine's figure falls when a program with 128 MiB ends.
fn fall() -> u64 {
    use std::{
        io::{BufRead, BufReader},
        process::{Command, Stdio},
    };
    let mut child = Command::new("sh")
        .args([
            "-c",
            "x=$(head -c 134217728 /dev/zero | tr '\\0' x); echo; read _; echo $x",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = child.stdout.take().unwrap();
    BufReader::new(stdout)
        .read_line(&mut String::new())
        .unwrap();
    let before = held_by_all().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    before.saturating_sub(held_by_all().unwrap())
}

#[test]
fn memory_is_back_once_its_process_is_reaped() {
    // Other programs may take some memory meanwhile.
    assert!((0..20).any(|_| fall() > 100 << 20));
}

#[test]
fn only_figures_that_cannot_be_read_are_missing() {
    let root = tree(&[("proc/meminfo", MEMINFO)]);
    let figures = figures_of_tree(root.path());
    assert_eq!(figures.ram_total_bytes, Some(16 * GIB));
    assert_eq!(figures.ram_available_bytes, Some(8 * GIB));
    assert_eq!(
        (figures.swap_total_bytes, figures.swap_used_bytes),
        (Some(2 * GIB), Some(GIB))
    );
    assert_eq!((figures.cpu, figures.disk_read_bytes), (None, None));
    assert_eq!(figures.swapped_out_bytes, None);
    assert_eq!(figures.pressure, None);
    assert_eq!(figures_of_tree(tree(&[]).path()), Figures::default());
}

#[test]
fn a_container_has_its_own_limits_use_and_stalls() {
    let root = tree(&[
        ("proc/meminfo", MEMINFO),
        ("proc/vmstat", "pswpin 1\npswpout 2\n"),
        ("proc/pressure/memory", "some avg10=99.00\n"),
        ("proc/self/cgroup", "0::/\n"),
        ("sys/fs/cgroup/memory.max", &(4 * GIB).to_string()),
        ("sys/fs/cgroup/memory.current", &GIB.to_string()),
        ("sys/fs/cgroup/memory.swap.max", &GIB.to_string()),
        ("sys/fs/cgroup/memory.swap.current", "4096"),
        ("sys/fs/cgroup/memory.stat", "pswpin 5\npswpout 6\n"),
        ("sys/fs/cgroup/memory.pressure", "some avg10=15.00\n"),
    ]);
    let figures = figures_of_tree(root.path());
    assert_eq!(
        (figures.ram_total_bytes, figures.ram_available_bytes),
        (Some(4 * GIB), Some(3 * GIB))
    );
    assert_eq!(
        (figures.swap_total_bytes, figures.swap_used_bytes),
        (Some(GIB), Some(4096))
    );
    assert_eq!(figures.swapped_out_bytes, Some(6 * page_size()));
    assert_eq!(figures.pressure, Some(Pressure::Warning));
}

#[test]
fn a_limit_beyond_the_machines_memory_is_ignored() {
    let root = tree(&[
        ("proc/meminfo", MEMINFO),
        ("proc/pressure/memory", "some avg10=99.00\n"),
        ("proc/self/cgroup", "4:memory:/\n"),
        (
            "sys/fs/cgroup/memory/memory.limit_in_bytes",
            "9223372036854771712",
        ),
        ("sys/fs/cgroup/memory/memory.usage_in_bytes", "7"),
        (
            "sys/fs/cgroup/memory/memory.memsw.limit_in_bytes",
            "9223372036854771712",
        ),
        ("sys/fs/cgroup/memory/memory.memsw.usage_in_bytes", "7"),
    ]);
    let figures = figures_of_tree(root.path());
    assert_eq!(figures.ram_total_bytes, Some(16 * GIB));
    assert_eq!(figures.swap_total_bytes, Some(2 * GIB));
    assert_eq!(figures.pressure, Some(Pressure::Critical));
}

#[test]
fn busy_ticks_exclude_guest_and_idle_time() {
    let text = "cpu  100 10 50 800 40 1 2 3 90 9\ncpu0 1 1 1 1\n";
    assert_eq!(
        parse_ticks(text),
        Some(Ticks {
            busy: 166,
            total: 1006
        })
    );
    assert_eq!(parse_ticks("cpu  0 0 0 0 0 0 0 0 0 0\n"), None);
    assert_eq!(parse_ticks("cpu  1 2\n"), None);
    assert_eq!(parse_ticks(""), None);
}

#[test]
fn partitions_and_stacked_disks_count_once() {
    let line = |name: &str, sectors: u64| {
        let written = 16 * sectors;
        format!("   8       0 {name} 11 22 {sectors} 44 55 66 {written} 88 0 99 111\n")
    };
    let text = [
        line("loop0", 1000),
        line("sda", 1),
        line("sda1", 1000),
        line("sda12", 1000),
        line("sdaa", 2),
        line("nvme0n1", 4),
        line("nvme0n1p1", 1000),
        line("nvme0n10", 8),
        line("dm-0", 1000),
        line("zram0", 1000),
        "nonsense\n".to_owned(),
        "   8      64 sdb 11 22 1000 44\n".to_owned(),
    ]
    .concat();
    assert_eq!(disk_bytes(&text), (15 * 512, 16 * 15 * 512));
    assert_eq!(disk_bytes(""), (0, 0));
}
