//! Ways out of the sandbox on Linux, each tried from inside. Perl, which every Linux here has, makes any system call.

mod mounts;
mod network;

use crate::{
    launcher,
    network::skip_without_network,
    place::{Place, skip_unsandboxed},
};
use std::{
    fs,
    net::{TcpListener, UdpSocket},
    os::{
        fd::AsRawFd,
        linux::net::SocketAddrExt,
        unix::{
            fs::{MetadataExt, PermissionsExt, chown},
            net::{SocketAddr, UnixDatagram, UnixListener},
        },
    },
    path::Path,
    process::{Child, Command, Stdio},
};
use tierbar_sandbox::{End, Policy, Request, Stop, run};
use tierbar_skip::skip;

const PYTHON: &str = "/usr/bin/python3";

/// A process outside, to be attacked.
struct Victim(Child);

impl Victim {
    fn new() -> Self {
        let child = Command::new("sleep").arg("1000").spawn().unwrap();
        Self(child)
    }

    fn is_alive(&mut self) -> bool {
        let stopped = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        self.0.try_wait().unwrap().is_none() && !stopped.contains(") T ")
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A line of Perl that makes a system call and prints its name and the number of its error, 0 without one.
fn call(name: &str, number: i64, arguments: &str) -> String {
    format!(
        r#"perl -e '$! = 0; my @a = ({arguments}); my $r = syscall({number}, @a); printf "%s %d\n", "{name}", $r == -1 ? $!+0 : 0'
"#
    )
}

/// Whether the hidden folder is as it was.
fn is_untouched(place: &Place) -> bool {
    let files = fs::read_dir(&place.hidden).unwrap().count();
    let token = fs::read(place.hidden.join("token"));
    files == 1 && token.is_ok_and(|token| token == b"the token")
}

/// Processes that were started in a folder.
fn processes_in(folder: &Path) -> usize {
    let entries = fs::read_dir("/proc").unwrap();
    let folders = entries.filter_map(|entry| fs::read_link(entry.unwrap().path().join("cwd")).ok());
    folders.filter(|path| path.starts_with(folder)).count()
}

#[test]
fn nothing_outside_is_read() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let hidden = place.hidden.display().to_string();
    std::os::unix::fs::symlink(&place.hidden, place.work.join("folder")).unwrap();
    let pid = std::process::id();
    let lines = format!(
        r#"
        cat {hidden}/token; cat ../hidden/token; cat folder/token; ls {hidden} folder
        ln -s {hidden}/token link; cat link; ln {hidden}/token hard; cat hard
        cp {hidden}/token copy; mv {hidden}/token moved; mv {hidden} here; cat here/token
        tar cf archive {hidden} ../hidden; cat archive | grep -a token; dd if={hidden}/token; cat < ../hidden/token
        cat /proc/{pid}/environ /proc/{pid}/maps /proc/{pid}/cmdline /proc/1/environ /proc/$PPID/environ
        ls /proc /proc/{pid}/fd /root /home /tmp; cat /etc/shadow /proc/{pid}/root{hidden}/token
        cd {hidden} && cat token
        perl -e 'chroot("/"); open(F, "<", "{hidden}/token") and print <F>'
        "#
    );
    let finished = place.run(&lines);
    assert_eq!(finished.stdout.text, "", "{finished:?}");
    assert!(is_untouched(&place));
}

#[test]
fn nothing_outside_is_written() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let hidden = place.hidden.display().to_string();
    let token = place.hidden.join("token");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let before = fs::metadata(&token).unwrap();
    std::os::unix::fs::symlink(&place.hidden, place.work.join("folder")).unwrap();
    std::os::unix::fs::symlink(&token, place.work.join("link")).unwrap();
    let lines = format!(
        r#"
        echo x > {hidden}/new; echo x > ../hidden/token; echo x >> folder/token; echo x > link
        mkdir {hidden}/new; ln -s /etc folder/new; ln link {hidden}/new; mkfifo {hidden}/new
        echo x > file; mv file {hidden}/new; cp file {hidden}/new; ln file {hidden}/new
        rm -rf {hidden}; rm folder/token; rmdir {hidden}; unlink link/; mv {hidden} gone
        chmod 777 {hidden} {hidden}/token link; chmod 000 folder/token; chown 1:1 link
        touch {hidden}/token folder/token; truncate -s 0 {hidden}/token; touch -d 2001-01-01 link
        perl -e 'truncate("{hidden}/token", 0); chmod(0777, "{hidden}/token"); utime(1, 1, "{hidden}/token"); unlink("{hidden}/token"); rename("{hidden}/token", "x")'
        echo x > /tmp/tierbar-escape; echo x > /var/tmp/tierbar-escape; echo x > /dev/shm/tierbar-escape; echo x > ~root/tierbar-escape
        "#
    );
    let more = [
        call("chmod", 452, &format!(r#"-100, "{hidden}/token", 0777, 0"#)),
        call(
            "xattr",
            libc::SYS_setxattr,
            &format!(r#""{hidden}/token", "user.x", "y", 1, 0"#),
        ),
    ];
    let finished = place.run(&(lines + &more.concat()));
    assert!(is_untouched(&place), "{finished:?}");
    let after = fs::metadata(&token).unwrap();
    assert_eq!(
        (before.mode(), before.mtime(), before.uid()),
        (after.mode(), after.mtime(), after.uid()),
        "{finished:?}"
    );
    let refused = format!("chmod {}\nxattr {}\n", libc::EPERM, libc::EOPNOTSUPP);
    assert_eq!(finished.stdout.text, refused, "{finished:?}");
    for folder in ["/tmp", "/var/tmp", "/dev/shm", "/root"] {
        assert!(
            !Path::new(folder).join("tierbar-escape").exists(),
            "{folder}"
        );
    }
}

#[test]
fn modes_and_times_are_set_where_a_command_may_write() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    fs::create_dir(place.work.join("deep")).unwrap();
    let work = place.work.display();
    let lines = format!(
        r#"
        : > a; : > deep/b; : > c; : > e; ln -s deep/b link; ln -s {hidden}/token out; ln -s /usr/bin/env system
        chmod 750 a && chmod 711 {work}/deep/../deep/b && (cd deep && chmod 700 ../c) && echo modes
        chmod 640 link && touch -d 2001-02-03T04:05:06Z a && cp -p a d && echo times
        perl -e 'open(F, ">", "e"); chmod(0710, *F) && utime(981173106, 981173106, *F) && chown(-1, -1, *F) && print "open\n"'
        chmod 4755 a; chmod 755 out; chmod 755 system; touch -d 2001-01-01 out; chmod 755 none; chmod 700 {hidden}
        perl -e 'chmod 0755, "x" x 5000; chmod 0755, ""; utime 1, 1, "out"'
        "#,
        hidden = place.hidden.display()
    );
    let before = fs::metadata(place.hidden.join("token")).unwrap();
    let finished = place.run(&lines);
    let done = "modes\ntimes\nopen\n";
    assert_eq!(finished.stdout.text, done, "{finished:?}");
    let mode = |name: &str| fs::metadata(place.work.join(name)).unwrap().mode() & 0o7777;
    let modes = ["a", "deep/b", "c", "d", "e"].map(mode);
    assert_eq!(modes, [0o750, 0o640, 0o700, 0o750, 0o710], "{finished:?}");
    for name in ["d", "e"] {
        let changed = fs::metadata(place.work.join(name)).unwrap();
        assert_eq!(changed.mtime(), 981_173_106, "{name}");
    }
    let after = fs::metadata(place.hidden.join("token")).unwrap();
    assert_eq!(
        (before.mode(), before.mtime()),
        (after.mode(), after.mtime())
    );
    assert!(is_untouched(&place), "{finished:?}");
}

/// Where the file system has none, they are refused before it says so.
#[test]
fn attributes_of_files_outside_are_not_read() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let token = place.hidden.join("token").display().to_string();
    let value = r#""user.secret", "\0" x 64, 64"#;
    let calls = [
        ("get", libc::SYS_getxattr, format!(r#""{token}", {value}"#)),
        ("see", libc::SYS_lgetxattr, format!(r#""{token}", {value}"#)),
        (
            "list",
            libc::SYS_listxattr,
            format!(r#""{token}", "\0" x 64, 64"#),
        ),
        (
            "list link",
            libc::SYS_llistxattr,
            format!(r#""{token}", "\0" x 64, 64"#),
        ),
        // getxattrat and listxattrat.
        (
            "get at",
            464,
            format!(r#"-100, "{token}", 0, "user.secret", "\0" x 16, 16"#),
        ),
        (
            "list at",
            465,
            format!(r#"-100, "{token}", 0, "\0" x 64, 64"#),
        ),
    ];
    let lines: String = calls
        .iter()
        .map(|(name, number, arguments)| call(name, *number, arguments))
        .collect();
    let finished = place.run(&lines);
    let expected: String = calls
        .iter()
        .map(|(name, ..)| format!("{name} {}\n", libc::EOPNOTSUPP))
        .collect();
    assert_eq!(finished.stdout.text, expected, "{finished:?}");
}

/// A short form of `tests/fuzz/run sandbox`.
#[cfg(target_arch = "x86_64")]
#[test]
fn random_calls_do_not_lead_out() {
    if Place::new().is_none() {
        return skip_unsandboxed();
    }
    if !Path::new(PYTHON).exists() {
        return skip("there is no Python that a command can run");
    }
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fuzz/sandbox/run");
    let mut command = Command::new(PYTHON);
    command
        .arg("-B")
        .arg(fuzz)
        .arg("--launcher")
        .arg(launcher());
    command.args(["--seed", "25", "--children", "5", "--seconds", "0"]);
    let done = command.output().unwrap();
    let told = String::from_utf8_lossy(&done.stdout);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{told}{errors}");
}

/// A file that is open for reading has an owner who can change its mode and more, and a command is the owner.
#[test]
fn what_can_only_be_read_is_not_changed() {
    let Some(mut place) = Place::new() else {
        return skip_unsandboxed();
    };
    let shelf = place.work.parent().unwrap().join("shelf");
    let book = shelf.join("book");
    fs::create_dir(&shelf).unwrap();
    fs::write(&book, "a book").unwrap();
    fs::set_permissions(&book, fs::Permissions::from_mode(0o640)).unwrap();
    place.policy.read.push(shelf.clone());
    let before = fs::metadata(&book).unwrap();
    let open = format!(
        r#"do {{ open(F, "<", "{}") or die; fileno(F) }}"#,
        book.display()
    );
    let folder = format!(
        r#"do {{ sysopen(F, "{}", 0200000) or die; fileno(F) }}"#,
        shelf.display()
    );
    let times = r#"pack("QQQQ", 1, 0, 1, 0)"#;
    let calls = [
        ("mode", libc::SYS_fchmod, format!("{open}, 0777")),
        ("modes", libc::SYS_fchmod, format!("{folder}, 0777")),
        ("owner", libc::SYS_fchown, format!("{open}, 1, 1")),
        ("same", libc::SYS_fchown, format!("{open}, -1, -1")),
        (
            "time",
            libc::SYS_utimensat,
            format!("{open}, 0, {times}, 0"),
        ),
        (
            "xattr",
            libc::SYS_fsetxattr,
            format!(r#"{open}, "user.x", "y", 1, 0"#),
        ),
        (
            "no xattr",
            libc::SYS_fremovexattr,
            format!(r#"{open}, "user.x""#),
        ),
        // FS_IOC_SETFLAGS: append only.
        (
            "flags",
            libc::SYS_ioctl,
            format!(r#"{open}, 0x40086602, pack("Q", 0x20)"#),
        ),
        // EXT4_IOC_SETVERSION, and one that no kernel knows.
        (
            "version",
            libc::SYS_ioctl,
            format!(r#"{open}, 0x40086604, pack("Q", 1)"#),
        ),
        ("other", libc::SYS_ioctl, format!("{open}, 0xC0FFEE00, 0")),
        (
            "verity",
            libc::SYS_ioctl,
            format!(r#"{open}, 0x40806685, "\0" x 128"#),
        ),
    ];
    let lines: String = calls
        .iter()
        .map(|(name, number, arguments)| call(name, *number, arguments))
        .collect();
    let finished = place.run(&format!("cat {}; echo\n{lines}", book.display()));
    let expected: String = calls
        .iter()
        .map(|(name, ..)| match *name {
            "xattr" | "no xattr" => format!("{name} {}\n", libc::EOPNOTSUPP),
            _ => format!("{name} {}\n", libc::EPERM),
        })
        .collect();
    assert_eq!(
        finished.stdout.text,
        format!("a book\n{expected}"),
        "{finished:?}"
    );
    let after = fs::metadata(&book).unwrap();
    assert_eq!(
        (before.mode(), before.mtime(), before.uid(), before.ctime()),
        (after.mode(), after.mtime(), after.uid(), after.ctime()),
        "{finished:?}"
    );
}

/// Each of these opens, makes, moves or links what is outside, and returns an error.
#[test]
#[expect(clippy::too_many_lines, reason = "a list of calls")]
fn no_call_on_files_leads_out() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let hidden = place.hidden.display();
    fs::write(place.work.join("mine"), "mine").unwrap();
    const READ: u32 = 0;
    const CHANGE: u32 = 2;
    const CREATE: u32 = 0o102;
    const TEMPORARY: u32 = 0o20_200_002;
    let mut calls = Vec::new();
    let token = format!("{hidden}/token");
    for (path, flags) in [
        (token.as_str(), READ),
        ("../hidden/token", READ),
        ("/proc/self/root/etc/shadow", READ),
        ("/proc/self/cwd/../hidden/token", READ),
        ("/proc/1/mem", READ),
        ("/proc/1/environ", READ),
        ("/proc/kcore", READ),
        ("/proc/kallsyms", READ),
        ("/proc/net/tcp", READ),
        ("/proc/self/maps", READ),
        ("/etc/shadow", READ),
        ("/etc/ssl/private", READ),
        ("/run", READ),
        ("/root", READ),
        ("/home", READ),
        ("/sys/kernel/debug", READ),
        ("/sys/fs/cgroup/cgroup.procs", CHANGE),
        ("/proc/sysrq-trigger", CHANGE),
        ("/proc/sys/kernel/core_pattern", CHANGE),
        ("/proc/sys/kernel/modprobe", CHANGE),
        ("/proc/self/oom_score_adj", CHANGE),
        ("/proc/self/uid_map", CHANGE),
        ("/proc/self/mem", CHANGE),
        ("/dev/mem", CHANGE),
        ("/dev/kmsg", CHANGE),
        ("/dev/tty", CHANGE),
        ("/dev/ptmx", CHANGE),
        ("/dev/fuse", CHANGE),
        ("/dev/kvm", CHANGE),
        ("/dev/net/tun", CHANGE),
        ("/usr/bin/env", CHANGE),
        ("/etc/passwd", CHANGE),
        ("/tmp/tierbar-escape", CREATE),
        ("/dev/shm/tierbar-escape", CREATE),
        ("/run/tierbar-escape", CREATE),
        ("/etc/tierbar-escape", CREATE),
        ("/usr/bin/tierbar-escape", CREATE),
        ("/tmp", TEMPORARY),
        ("/dev/shm", TEMPORARY),
        ("..", TEMPORARY),
    ] {
        let arguments = format!(r#"-100, "{path}", {flags}, 0600"#);
        calls.push((format!("open {path} {flags}"), libc::SYS_openat, arguments));
    }
    // A folder can be named without a right to it, and nothing is opened from there.
    let named = format!(
        r#"syscall({}, -100, my $p = "{hidden}", 010200000)"#,
        libc::SYS_openat
    );
    let how = r#"pack("QQQ", 0, 0, 0), 24"#;
    for (name, number, arguments) in [
        (
            "from a folder",
            libc::SYS_openat,
            format!(r#"{named}, "token", 0, 0"#),
        ),
        (
            "openat2",
            libc::SYS_openat2,
            format!(r#"-100, "{hidden}/token", {how}"#),
        ),
        (
            "take",
            libc::SYS_renameat2,
            format!(r#"-100, "{hidden}/token", -100, "taken", 0"#),
        ),
        (
            "give",
            libc::SYS_renameat2,
            format!(r#"-100, "mine", -100, "{hidden}/mine", 0"#),
        ),
        (
            "exchange",
            libc::SYS_renameat2,
            format!(r#"-100, "{hidden}/token", -100, "mine", 2"#),
        ),
        (
            "link",
            libc::SYS_linkat,
            format!(r#"-100, "{hidden}/token", -100, "linked", 0"#),
        ),
        (
            "link out",
            libc::SYS_linkat,
            format!(r#"-100, "mine", -100, "{hidden}/linked", 0"#),
        ),
        (
            "link system",
            libc::SYS_linkat,
            r#"-100, "/usr/bin/env", -100, "env", 0"#.to_owned(),
        ),
        (
            "remove",
            libc::SYS_unlinkat,
            format!(r#"-100, "{hidden}/token", 0"#),
        ),
        (
            "folder",
            libc::SYS_mkdirat,
            format!(r#"-100, "{hidden}/new", 0700"#),
        ),
        (
            "symlink",
            libc::SYS_symlinkat,
            format!(r#""/etc", -100, "{hidden}/new""#),
        ),
        (
            "fifo",
            libc::SYS_mknodat,
            format!(r#"-100, "{hidden}/new", 010600, 0"#),
        ),
        (
            "socket",
            libc::SYS_mknodat,
            r#"-100, "socket", 0140600, 0"#.to_owned(),
        ),
        (
            "device",
            libc::SYS_mknodat,
            r#"-100, "device", 020600, 259"#.to_owned(),
        ),
        ("cut", libc::SYS_truncate, format!(r#""{hidden}/token", 0"#)),
        (
            "run",
            libc::SYS_execveat,
            format!(r#"-100, "{hidden}/token", 0, 0, 0"#),
        ),
    ] {
        calls.push((name.to_owned(), number, arguments));
    }
    let lines: String = calls
        .iter()
        .map(|(name, number, arguments)| call(name, *number, arguments))
        .collect();
    let finished = place.run(&lines);
    let results: Vec<_> = finished.stdout.text.lines().collect();
    assert_eq!(results.len(), calls.len(), "{finished:?}");
    for (result, (name, ..)) in results.iter().zip(&calls) {
        assert!(result.starts_with(name.as_str()), "{name}: {result}");
        assert!(!result.ends_with(" 0"), "{result}: {finished:?}");
    }
    assert!(is_untouched(&place), "{finished:?}");
    assert_eq!(fs::read(place.work.join("mine")).unwrap(), b"mine");
    for folder in ["/tmp", "/dev/shm", "/run", "/etc", "/usr/bin"] {
        let made = Path::new(folder).join("tierbar-escape");
        assert!(!made.exists(), "{folder}");
    }
}

#[test]
fn a_path_that_is_exchanged_changes_nothing_outside() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let token = place.hidden.join("token");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    // The link leads inside and outside by turns, as fast as it can.
    let lines = format!(
        r#"
        : > mine; ln -s mine inner; ln -s {} outer; cp -P inner link
        perl -e 'for (1..400) {{ symlink "outer", "t"; rename "t", "link"; symlink "inner", "t"; rename "t", "link" }}' &
        perl -e 'for (1..400) {{ chmod 0777, "link" }}'; wait
        "#,
        token.display()
    );
    let finished = place.run(&lines);
    let mode = fs::metadata(&token).unwrap().mode() & 0o777;
    assert_eq!(mode, 0o600, "{finished:?}");
    let mine = fs::metadata(place.work.join("mine")).unwrap().mode() & 0o777;
    assert_eq!(mine, 0o777, "{finished:?}");
}

#[test]
fn a_folder_that_becomes_a_link_leads_nowhere() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let hidden = place.hidden.display().to_string();
    // Swapped as fast as it is read and written.
    let lines = format!(
        r#"
        mkdir real; echo mine > real/token; ln -s {hidden} linked
        (i=0; while [ $i -lt 60 ]; do mv real swap; mv linked real; mv real linked; mv swap real; i=$((i+1)); done) &
        i=0; while [ $i -lt 60 ]; do cat real/token; echo x >> real/more; i=$((i+1)); done; wait
        "#
    );
    let finished = place.run(&lines);
    assert!(!finished.stdout.text.contains("the token"), "{finished:?}");
    assert!(is_untouched(&place));
}

#[test]
fn nothing_is_connected_to_without_the_network() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    attack_sockets(&place);
}

#[test]
fn the_web_is_not_this_machine() {
    let Some(place) = Place::with_network() else {
        return skip_without_network();
    };
    attack_sockets(&place);
    let made = place.run(
        r#"perl -e 'use Socket; print socket(S, PF_INET, SOCK_STREAM, 6) ? "made" : "refused"'"#,
    );
    assert_eq!(made.stdout.text, "made", "{made:?}");
}

/// Tries the host's sockets in every way.
fn attack_sockets(place: &Place) {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    // Where the command may read and write, and where it may not.
    let inside = UnixListener::bind(place.work.join("host.sock")).unwrap();
    let outside = UnixListener::bind(place.hidden.join("host.sock")).unwrap();
    let log = UnixDatagram::bind(place.hidden.join("log.sock")).unwrap();
    let name = format!("tierbar-{port}");
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let nowhere = UnixListener::bind_addr(&address).unwrap();
    let hidden = place.hidden.display();
    let lines = format!(
        r#"
        bash -c 'echo x > /dev/tcp/127.0.0.1/{port}'; bash -c 'echo x > /dev/tcp/::1/{port}'
        perl -e 'use Socket; socket(S, PF_INET, SOCK_STREAM, 6); connect(S, pack_sockaddr_in({port}, INADDR_LOOPBACK)) and print "tcp "'
        perl -e 'use Socket; socket(S, PF_INET, SOCK_STREAM, 6); send(S, "x", 0x20000000, pack_sockaddr_in({port}, INADDR_LOOPBACK)) and print "fast "'
        perl -e 'use Socket; socket(S, PF_INET, SOCK_STREAM, 262); connect(S, pack_sockaddr_in({port}, INADDR_LOOPBACK)) and print "mptcp "'
        for path in host.sock {hidden}/host.sock /run/docker.sock; do
            perl -e 'use Socket; socket(S, PF_UNIX, SOCK_STREAM, 0); connect(S, pack_sockaddr_un($ARGV[0])) and print "unix "' $path
            perl -e 'use Socket; socket(S, PF_UNIX, SOCK_DGRAM, 0); send(S, "x", 0, pack_sockaddr_un($ARGV[0])) and print "unix "' $path
        done
        perl -e 'use Socket; socket(S, PF_UNIX, SOCK_STREAM, 0); connect(S, pack_sockaddr_un("\0{name}")) and print "abstract "'
        perl -e 'use Socket; socketpair(A, B, PF_UNIX, SOCK_STREAM, 0); connect(A, pack_sockaddr_un("\0{name}")) and print "pair "'
        perl -e 'use Socket; socketpair(A, B, PF_UNIX, SOCK_DGRAM, 0); send(A, "x", 0, pack_sockaddr_un("{hidden}/log.sock")) and print "pair "'
        perl -e 'use Socket; socketpair(A, B, PF_UNIX, SOCK_DGRAM, 0); connect(A, pack_sockaddr_un("{hidden}/log.sock")) and print "pair "'
        perl -e 'use Socket; socketpair(A, B, PF_UNIX, SOCK_STREAM, 0); send(A, "x", 0, pack_sockaddr_un("{hidden}/log.sock"))'
        perl -e 'use Socket; socket(S, PF_INET, SOCK_STREAM, 6); bind(S, pack_sockaddr_in(0, INADDR_ANY)) and listen(S, 1) and print "server "'
        perl -e 'use Socket; socket(S, PF_INET, SOCK_STREAM, 6); listen(S, 1) and print "server "'
        perl -e 'use Socket; socketpair(A, B, PF_UNIX, SOCK_STREAM, 0); bind(A, pack_sockaddr_un("\0{name}-new")) and print "name "'
        perl -e 'socket(S, 16, 3, 0) and print "netlink "; socket(S, 40, 1, 0) and print "vsock "; socket(S, 17, 3, 0) and print "packet "'
        "#
    );
    let finished = place.run(&lines);
    assert_eq!(finished.stdout.text, "", "{finished:?}");
    tcp.set_nonblocking(true).unwrap();
    assert!(tcp.accept().is_err(), "{finished:?}");
    for listener in [inside, outside, nowhere] {
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "{finished:?}");
    }
    log.set_nonblocking(true).unwrap();
    assert!(log.recv(&mut [0; 8]).is_err(), "{finished:?}");
    for name in ["host.sock", "log.sock"] {
        fs::remove_file(place.hidden.join(name)).unwrap();
    }
}

#[test]
fn nothing_is_sent_by_udp() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = udp.local_addr().unwrap().port();
    for place in [Some(place), Place::with_network()].into_iter().flatten() {
        place.run(&format!("bash -c 'echo x > /dev/udp/127.0.0.1/{port}'"));
        udp.set_nonblocking(true).unwrap();
        assert!(udp.recv(&mut [0; 8]).is_err());
    }
}

#[test]
fn other_processes_are_out_of_reach() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let mut victim = Victim::new();
    let pid = victim.0.id();
    let lines = format!(
        "kill -9 {pid}; kill -STOP {pid}; kill -9 $PPID; perl -e 'kill 9, {pid}, -{pid}'\nrenice 19 {pid}; prlimit --pid {pid} --cpu=1; taskset -p 1 {pid}\n"
    );
    let limits = "pack(\"QQ\", 1, 1)";
    let calls = [
        // PTRACE_ATTACH and PTRACE_SEIZE.
        call("attach", libc::SYS_ptrace, &format!("16, {pid}, 0, 0")),
        call("seize", libc::SYS_ptrace, &format!("0x4206, {pid}, 0, 0")),
        call(
            "read",
            libc::SYS_process_vm_readv,
            &format!("{pid}, 0, 0, 0, 0, 0"),
        ),
        call(
            "write",
            libc::SYS_process_vm_writev,
            &format!("{pid}, 0, 0, 0, 0, 0"),
        ),
        call(
            "limit",
            libc::SYS_prlimit64,
            &format!("{pid}, 0, {limits}, 0"),
        ),
        call(
            "affinity",
            libc::SYS_sched_setaffinity,
            &format!("{pid}, 8, pack(\"Q\", 1)"),
        ),
        call("priority", libc::SYS_setpriority, &format!("0, {pid}, 19")),
        call("kill", libc::SYS_kill, &format!("{pid}, 9")),
        call("tkill", libc::SYS_tkill, &format!("{pid}, 9")),
        call("tgkill", libc::SYS_tgkill, &format!("{pid}, {pid}, 9")),
    ];
    let finished = place.run(&(lines + &calls.concat()));
    for name in [
        "attach", "seize", "read", "write", "limit", "affinity", "priority", "kill", "tkill",
        "tgkill",
    ] {
        let refused = format!("{name} {}\n", libc::EPERM);
        assert!(
            finished.stdout.text.contains(&refused),
            "{name}: {finished:?}"
        );
    }
    assert!(victim.is_alive(), "{finished:?}");
    // All that it may, which is what it has started.
    let finished = place.run("sleep 1000 & kill -9 -1; wait $!; echo $?");
    assert_eq!(finished.stdout.text, "137\n", "{finished:?}");
    assert!(victim.is_alive(), "{finished:?}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a list of calls")]
fn the_kernels_large_parts_are_closed() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let calls = [
        ("io_uring", libc::SYS_io_uring_setup, "8, \"\\0\" x 128"),
        ("bpf", libc::SYS_bpf, "0, \"\\0\" x 128, 128"),
        (
            "perf",
            libc::SYS_perf_event_open,
            "\"\\0\" x 128, 0, -1, -1, 0",
        ),
        ("userfaultfd", libc::SYS_userfaultfd, "1"),
        ("keyctl", libc::SYS_keyctl, "0, -3, 0"),
        (
            "add_key",
            libc::SYS_add_key,
            "\"user\", \"x\", \"y\", 1, -3",
        ),
        ("unshare", libc::SYS_unshare, "0x10000000"),
        ("setns", libc::SYS_setns, "0, 0"),
        ("mount", libc::SYS_mount, "\"none\", \".\", \"tmpfs\", 0, 0"),
        ("chroot", libc::SYS_chroot, "\".\""),
        ("memfd", libc::SYS_memfd_create, "\"x\", 0"),
        ("shm", libc::SYS_shmget, "0, 4096, 0x380"),
        ("inotify", libc::SYS_inotify_init1, "0"),
        ("handle", libc::SYS_open_by_handle_at, "-100, 0, 0"),
        ("module", libc::SYS_finit_module, "0, \"\", 0"),
        ("reboot", libc::SYS_reboot, "0, 0, 0, 0"),
        ("swap", libc::SYS_swapoff, "\"/none\""),
        // Other processes, and their memory and files.
        ("pidfd", libc::SYS_pidfd_getfd, "0, 0, 0"),
        ("advise", libc::SYS_process_madvise, "0, 0, 0, 0, 0"),
        ("release", libc::SYS_process_mrelease, "0, 0"),
        ("compare", libc::SYS_kcmp, "1, 1, 0, 0, 0"),
        ("move", libc::SYS_move_pages, "1, 0, 0, 0, 0, 0"),
        ("migrate", libc::SYS_migrate_pages, "1, 0, 0, 0"),
        // The newer calls for mounts.
        ("umount", libc::SYS_umount2, "\".\", 2"),
        ("tree", libc::SYS_open_tree, "-100, \".\", 1"),
        (
            "move_mount",
            libc::SYS_move_mount,
            "-100, \".\", -100, \".\", 0",
        ),
        ("fsopen", libc::SYS_fsopen, "\"tmpfs\", 0"),
        ("fsmount", libc::SYS_fsmount, "0, 0, 0"),
        ("fspick", libc::SYS_fspick, "-100, \".\", 0"),
        ("setattr", libc::SYS_mount_setattr, "-100, \".\", 0, 0, 0"),
        ("pivot", libc::SYS_pivot_root, "\".\", \".\""),
        ("fanotify", libc::SYS_fanotify_init, "0, 0"),
        (
            "to handle",
            libc::SYS_name_to_handle_at,
            "-100, \".\", 0, 0, 0",
        ),
        // The system.
        ("init", libc::SYS_init_module, "0, 0, \"\""),
        ("delete", libc::SYS_delete_module, "\"none\", 0"),
        ("kexec", libc::SYS_kexec_load, "0, 0, 0, 0"),
        ("swapon", libc::SYS_swapon, "\"/none\", 0"),
        ("acct", libc::SYS_acct, "\"/none\""),
        ("quota", libc::SYS_quotactl, "0, 0, 0, 0"),
        ("syslog", libc::SYS_syslog, "3, 0, 0"),
        ("time", libc::SYS_settimeofday, "0, 0"),
        ("clock", libc::SYS_clock_settime, "0, 0"),
        ("name", libc::SYS_sethostname, "\"x\", 1"),
        ("domain", libc::SYS_setdomainname, "\"x\", 1"),
        ("hang up", libc::SYS_vhangup, ""),
        // Queues, semaphores and memory of other programs, by their numbers.
        ("queue", libc::SYS_msgget, "0, 0x380"),
        ("send", libc::SYS_msgsnd, "99999, \"\\1\" x 16, 1, 0x800"),
        (
            "receive",
            libc::SYS_msgrcv,
            "99999, \"\\0\" x 64, 1, 0, 0x800",
        ),
        ("end queue", libc::SYS_msgctl, "99999, 0, 0"),
        ("semaphore", libc::SYS_semget, "0, 1, 0x380"),
        ("wait", libc::SYS_semop, "99999, \"\\0\" x 6, 1"),
        (
            "wait long",
            libc::SYS_semtimedop,
            "99999, \"\\0\" x 6, 1, 0",
        ),
        ("end semaphore", libc::SYS_semctl, "99999, 0, 0, 0"),
        ("attach memory", libc::SYS_shmat, "99999, 0, 0"),
        ("end memory", libc::SYS_shmctl, "99999, 0, 0"),
        ("posix queue", libc::SYS_mq_open, "\"x\", 0102, 0600, 0"),
        (
            "request key",
            libc::SYS_request_key,
            "\"user\", \"x\", 0, 0",
        ),
        ("secret memory", libc::SYS_memfd_secret, "0"),
        // Pages in a pipe; PR_SET_THP_DISABLE.
        ("splice", libc::SYS_vmsplice, "1, 0, 0, 0"),
        ("huge pages", libc::SYS_prctl, "41, 0, 0, 0, 0"),
        // Typing into a terminal: TIOCSTI, and TIOCLINUX.
        ("type", libc::SYS_ioctl, "0, 0x5412, \"x\""),
        ("paste", libc::SYS_ioctl, "0, 0x541C, \"x\""),
        // READ_IMPLIES_EXEC.
        ("personality", libc::SYS_personality, "0x0400000"),
        ("pair", libc::SYS_socketpair, "2, 1, 0, \"\\0\" x 8"),
        // Needs a capability.
        ("groups", libc::SYS_setgroups, "0, 0"),
        // A new user namespace.
        ("clone", libc::SYS_clone, "0x10000011, 0, 0, 0, 0"),
    ];
    let lines: String = calls
        .iter()
        .map(|(name, number, arguments)| call(name, *number, arguments))
        .collect();
    let finished = place.run(&lines);
    let refused: Vec<_> = finished.stdout.text.lines().collect();
    let expected: Vec<_> = calls
        .iter()
        .map(|(name, ..)| format!("{name} {}", libc::EPERM))
        .collect();
    assert_eq!(refused, expected, "{finished:?}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn another_numbering_of_calls_ends_the_process() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    // `getpid` of x32.
    let finished = place.run("perl -e 'syscall(0x40000000 + 39); print \"alive\"'; echo $?");
    // SIGSYS.
    assert_eq!(finished.stdout.text, "159\n", "{finished:?}");
}

#[test]
fn no_rights_are_gained() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    // PR_GET_NO_NEW_PRIVS, and PR_CAPBSET_READ would be true for root.
    let lines = format!(
        "perl -e 'print syscall({}, 39, 0, 0, 0, 0), \"\\n\"'\nmknod device c 1 1; mknod socket b 8 0; id -u",
        libc::SYS_prctl
    );
    let finished = place.run(&lines);
    let own = fs::metadata(&place.work).unwrap().uid();
    assert_eq!(finished.stdout.text, format!("1\n{own}\n"), "{finished:?}");
    assert!(!place.work.join("device").exists(), "{finished:?}");
    if own != 0 {
        return skip("only root can make a program of another user's to run");
    }
    let program = place.work.join("id");
    fs::copy("/usr/bin/id", &program).unwrap();
    chown(&program, Some(65534), Some(65534)).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o6755)).unwrap();
    let outside = Command::new(&program).arg("-u").output().unwrap();
    let inside = place.run("./id -u");
    assert_eq!(inside.stdout.text, "0\n", "{inside:?}");
    // It would have been possible.
    assert_eq!(outside.stdout, b"65534\n");
}

#[test]
fn open_files_are_not_inherited() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let token = fs::File::open(place.hidden.join("token")).unwrap();
    let number = token.as_raw_fd();
    rustix::io::fcntl_setfd(&token, rustix::io::FdFlags::empty()).unwrap();
    let finished = place.run(&format!("cat <&{number}; cat /dev/fd/{number}"));
    assert_eq!(finished.stdout.text, "", "{finished:?}");
}

#[test]
fn too_many_processes_end_a_command() {
    // Each process forks in each round: 256 at most, whatever fails. What has ended and was not waited for takes a number, too.
    let bomb = "perl -e 'fork for 1..8; sleep 100'";
    let zombies = "perl -e 'for (1..256) { fork or exit } sleep 100'";
    for place in [Place::new(), Place::of_ordinary_user()] {
        let Some(mut place) = place else {
            return skip_unsandboxed();
        };
        place.policy.limits.processes = 64;
        for line in [bomb, zombies] {
            let finished = place.run(line);
            assert_eq!(finished.end, End::ProcessLimit, "{finished:?}");
            assert_eq!(processes_in(&place.work), 0);
        }
    }
}

#[test]
fn too_many_threads_end_a_command() {
    let Some(mut place) = Place::new() else {
        return skip_unsandboxed();
    };
    if !Path::new(PYTHON).exists() {
        return skip("there is no Python that a command can run");
    }
    place.policy.limits.processes = 4;
    let script = "import threading, time\nfor _ in range(100): threading.Thread(target=time.sleep, args=(100,)).start()";
    let finished = place.run(&format!("{PYTHON} -c '{script}'"));
    assert_eq!(finished.end, End::ProcessLimit, "{finished:?}");
}

#[test]
fn the_kernel_bounds_the_processes_of_an_ordinary_user() {
    let Some(place) = Place::of_ordinary_user() else {
        return skip_unsandboxed();
    };
    let finished = place.run("id -u; ulimit -p 2> /dev/null || ulimit -u");
    let (user, most) = finished.stdout.text.trim().split_once('\n').unwrap();
    assert_ne!(user, "0");
    // "unlimited" is no number.
    assert!(
        most.parse::<u64>().is_ok_and(|most| most > 256),
        "{finished:?}"
    );
}

#[test]
fn a_process_that_leaves_its_session_is_ended() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let finished = place.run(
        "setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' > /dev/null 2>&1 & (setsid nohup setsid sleep 1000 > /dev/null 2>&1 &); sleep 0.2; echo done",
    );
    assert_eq!(finished.end, End::Exited { code: 0 }, "{finished:?}");
    assert_eq!(processes_in(&place.work), 0);
}

#[test]
fn too_much_memory_ends_a_command() {
    let Some(mut place) = Place::new() else {
        return skip_unsandboxed();
    };
    place.policy.limits.memory_bytes = 64 << 20;
    // One process is refused the memory.
    let finished = place.run("perl -e 'my $x = \"a\" x (1 << 28); print length $x'");
    assert_eq!(finished.stdout.text, "", "{finished:?}");
    // Several together are ended.
    let finished = place
        .run("for i in 1 2 3 4; do perl -e 'my $x = \"a\" x (24 << 20); sleep 100' & done; wait");
    assert_eq!(finished.end, End::MemoryLimit, "{finished:?}");
}

#[test]
fn memory_counts_when_the_first_thread_has_ended() {
    let Some(mut place) = Place::new() else {
        return skip_unsandboxed();
    };
    if !Path::new(PYTHON).exists() {
        return skip("there is no Python that a command can run");
    }
    place.policy.limits.memory_bytes = 64 << 20;
    let script = format!(
        r#"import ctypes, os, threading, time
def hold():
    kept = b"a" * (16 << 20)
    time.sleep(100)
for _ in range(5):
    if os.fork() == 0:
        break
threading.Thread(target=hold).start()
ctypes.CDLL(None).syscall({}, 0)"#,
        libc::SYS_exit
    );
    let finished = place.run(&format!("{PYTHON} -c '{script}'"));
    assert_eq!(finished.end, End::MemoryLimit, "{finished:?}");
}

/// Each is 256 MiB, written or read, of which no process has the pages afterwards.
#[test]
fn memory_outside_of_a_process_counts() {
    let Some(mut place) = Place::new() else {
        return skip_unsandboxed();
    };
    place.policy.limits.memory_bytes = 64 << 20;
    let (mmap, read, write) = (libc::SYS_mmap, libc::SYS_read, libc::SYS_write);
    let (munmap, madvise) = (libc::SYS_munmap, libc::SYS_madvise);
    // A mapping of 16 MiB, of which each page is written.
    let piece = |flags: &str, file: &str| {
        format!(
            r#"my $n = 1 << 24; my $a = syscall({mmap}, 0, $n, 3, {flags}, {file}, 0); $a > 0 or die; syscall({read}, fileno Z, $a, $n);"#
        )
    };
    let zero = r#"open(Z, "<", "/dev/zero") or die;"#;
    let shared = piece("0x21", "-1");
    let given_up = format!("{zero} for (1..16) {{ {shared} syscall({madvise}, $a, $n, 4) }}");
    let one_page =
        format!("{zero} for (1..16) {{ {shared} syscall({munmap}, $a + 4096, $n - 4096) }}");
    let of_zero = format!(
        r#"{zero} open(F, "+<", "/dev/zero") or die; for (1..16) {{ {} syscall({madvise}, $a, $n, 4) }}"#,
        piece("1", "fileno F")
    );
    // A page of the tables for each 2 MiB; without huge pages.
    let tables = format!(
        r#"my $n = 1 << 37; my $a = syscall({mmap}, 0, $n, 1, 0x4022, -1, 0); $a > 0 or die; syscall({madvise}, $a, $n, 15);
        open(F, ">", "read"); for (0..65535) {{ syscall({write}, fileno F, $a + ($_ << 21), 1) }}"#
    );
    // F_SETFL, O_RDWR and O_NONBLOCK.
    let buffers = r#"for (1..3) { last if fork } my @a; for (1..490) { socketpair(my $a, my $b, 1, 1, 0) or last; push @a, $a, $b;
        for my $end ($a, $b) { fcntl($end, 4, 2050); 1 while syswrite $end, "x" x 32768 } }"#;
    // Seven huge pages of private memory, and one small page of each: in a pipe, or left in its place. MADV_COLLAPSE makes them whatever
    // the system's setting is.
    let private = piece("0x22", "-1");
    let huge = format!(
        r#"{private} my $h = ($a + 0x1FFFFF) & ~0x1FFFFF; my @h = map($h + ($_ << 21), 0..6); my $c = syscall({madvise}, $h, 7 << 21, 25);"#
    );
    let vmsplice = libc::SYS_vmsplice;
    let in_pipes = format!(
        r#"{zero} my @p; for (1..16) {{ {huge} pipe(my $r, my $w) or die; push @p, $r, $w;
        for my $b (@h) {{ syscall({vmsplice}, fileno $w, pack("QQ", $b, 4096), 1, 0) == 4096 or die }} syscall({munmap}, $a, $n) }}"#
    );
    let small_part = format!(
        r#"{zero} for (1..16) {{ {huge} $c == 0 or die; for my $b (@h) {{ syscall({munmap}, $b + 4096, (1 << 21) - 4096) }} }}"#
    );
    // A byte of each 2 MiB of a file, which is emptied.
    let in_sockets = format!(
        r#"open(F, "+>", "big") or die; my $m = "x" x (1 << 21); my @s; for my $k (0..3) {{ socketpair(my $s, my $t, 1, 1, 0) or die; push @s, $s, $t;
        for (32 * $k .. 32 * $k + 31) {{ syswrite F, $m; my $o = pack("Q", $_ << 21); syscall({}, fileno $s, fileno F, $o, 1) == 1 or die }} }} truncate F, 0;"#,
        libc::SYS_sendfile
    );
    for script in [
        given_up.as_str(),
        &one_page,
        &of_zero,
        &tables,
        buffers,
        &in_pipes,
        &small_part,
        &in_sockets,
    ] {
        // Held for some readings of the launcher's.
        let script = format!("{script} sleep 2; print \"held\"");
        let finished = place.run(&format!("perl -e '{script}'"));
        assert_eq!(finished.stdout.text, "", "{script}: {finished:?}");
    }
    // What a program needs.
    let little = format!("{zero} {shared} print \"shared\"");
    let finished = place.run(&format!("perl -e '{little}'"));
    assert_eq!(finished.stdout.text, "shared", "{finished:?}");
}

/// Files there would be memory that no limit counts.
#[test]
fn the_temporary_folder_is_on_a_disk() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let in_memory = |path: &str| {
        let kind = Command::new("stat").args(["-fc", "%T", path]).output();
        kind.unwrap().stdout.starts_with(b"tmpfs")
    };
    if !in_memory("/dev/shm") || in_memory("/var/tmp") {
        return skip("/dev/shm is no folder in memory, or /var/tmp is one");
    }
    let request = Request::shell("echo $HOME", place.work.clone(), place.policy.clone());
    let mut child = Command::new(launcher())
        .env("TMPDIR", "/dev/shm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, request.line(launcher()).unwrap().as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    drop(stdin);
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains("/var/tmp/tierbar-command-"), "{text}");
}

#[test]
fn a_command_dies_with_its_launcher() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let line = ": > begun; exec sleep 1000";
    let request = Request::shell(line, place.work.clone(), place.policy.clone());
    let mut child = Command::new(launcher())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let line = serde_json::to_string(&request).unwrap() + "\n";
    std::io::Write::write_all(&mut stdin, line.as_bytes()).unwrap();
    while !place.work.join("begun").exists() {
        let early = child.try_wait().unwrap();
        assert!(early.is_none(), "{early:?}");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    while processes_in(&place.work) > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn a_second_request_is_no_command() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    // A folder that holds the hidden one is refused by the launcher too, whatever the request's origin.
    let policy = Policy {
        write: vec![place.work.parent().unwrap().to_owned()],
        ..place.policy.clone()
    };
    let request = Request::shell("cat ../hidden/token", place.work.clone(), policy);
    assert!(run(launcher(), &request, &Stop::default()).is_err());
}
