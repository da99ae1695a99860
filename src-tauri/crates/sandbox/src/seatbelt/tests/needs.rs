//! The profile against what programs do on macOS, as their sources, Apple's documents and published profiles have it, and against what
//! no command is to do. It shows what the text of the rules means; whether macOS asks for more, only a Mac shows.

use super::{
    sbpl::{Rules, Use},
    *,
};

const HOME: &str = "/private/tmp/home";
/// One that `xcode-select` points to.
const DEVELOPER: &str = "/Applications/Xcode-26.1.app/Contents/Developer";

/// Every program: the loader, its cache, and the C library.
const ANY: &[Use<'_>] = &[
    Use("process-fork", ""),
    Use("signal", "same-sandbox"),
    Use("file-read-data", "/"),
    Use("file-read-data", "/usr/lib/dyld"),
    Use("file-map-executable", "/usr/lib/dyld"),
    Use(
        "file-read-data",
        "/System/Volumes/Preboot/Cryptexes/OS/System/Library/dyld/dyld_shared_cache_arm64e",
    ),
    Use(
        "file-map-executable",
        "/System/Volumes/Preboot/Cryptexes/OS/System/Library/dyld/dyld_shared_cache_arm64e",
    ),
    Use(
        "file-read-data",
        "/System/Library/CoreServices/SystemVersion.plist",
    ),
    Use("file-read-data", "/usr/share/locale/en_US.UTF-8/LC_CTYPE"),
    Use(
        "file-read-data",
        "/private/var/db/timezone/zoneinfo/Europe/Berlin",
    ),
    Use("file-read-metadata", "/private/etc/localtime"),
    Use("file-read-metadata", "/Users/a/work"),
    Use("file-read-data", "/dev/urandom"),
    Use("file-write-data", "/dev/null"),
    Use("file-ioctl", "/dev/null"),
    Use("sysctl-read", "hw.pagesize"),
    Use("sysctl-read", "kern.osproductversion"),
    Use("mach-lookup", "com.apple.system.opendirectoryd.libinfo"),
    Use("file-read-data", "/Users/a/notes/todo.md"),
    Use("file-write-create", "/Users/a/work/new"),
    Use("file-write-unlink", "/Users/a/work/old"),
    Use("file-write-create", "/private/tmp/home/tmp.1"),
];

/// Of each program, what it needs besides.
const NEEDS: &[(&str, &[Use<'_>])] = &[
    (
        "zsh",
        &[
            Use("process-exec", "/bin/zsh"),
            Use("file-map-executable", "/usr/lib/zsh/5.9/zsh/zle.so"),
            Use("file-test-existence", "/private/etc/zshenv"),
            Use("file-test-existence", "/Users/a/work/.zshrc"),
            Use("file-read-data", "/dev/fd/63"),
        ],
    ),
    (
        "git",
        &[
            Use("process-exec", "/usr/bin/git"),
            Use("file-read-metadata", "/private/var/db/xcode_select_link"),
            Use(
                "file-read-data",
                "/Library/Preferences/com.apple.dt.Xcode.plist",
            ),
            Use(
                "process-exec",
                "/Library/Developer/CommandLineTools/usr/bin/git",
            ),
            Use(
                "process-exec",
                "/Library/Developer/CommandLineTools/usr/libexec/git-core/git-remote-https",
            ),
            Use(
                "process-exec",
                "/Applications/Xcode.app/Contents/Developer/usr/bin/git",
            ),
            Use(
                "process-exec",
                "/Applications/Xcode-26.1.app/Contents/Developer/usr/bin/git",
            ),
            Use(
                "process-exec",
                "/Applications/Xcode-26.1.app/Contents/Developer/usr/libexec/git-core/git-remote-https",
            ),
            Use(
                "file-read-data",
                "/Applications/Xcode-26.1.app/Contents/Developer/usr/share/git-core/templates/HEAD",
            ),
            Use("file-test-existence", "/Users/a/work/.git/index.lock"),
            Use("file-test-existence", "/private/etc/gitconfig"),
            Use("file-write-mode", "/Users/a/work/.git/config"),
            Use("file-read-data", "/private/etc/ssl/cert.pem"),
        ],
    ),
    (
        "python3",
        &[
            Use(
                "process-exec",
                "/Library/Developer/CommandLineTools/usr/bin/python3",
            ),
            Use(
                "file-map-executable",
                "/Library/Developer/CommandLineTools/Library/Frameworks/Python3.framework/Versions/3.9/Python3",
            ),
            Use(
                "file-map-executable",
                "/opt/homebrew/Cellar/python@3.13/3.13.7/Frameworks/Python.framework/Versions/3.13/Python",
            ),
            Use("ipc-posix-sem", "/mp-1a2b3c"),
            Use("file-read-data", "/private/etc/passwd"),
        ],
    ),
    (
        "node",
        &[
            Use("process-exec", "/opt/homebrew/bin/node"),
            Use(
                "file-map-executable",
                "/opt/homebrew/Cellar/node/24.9.0/bin/node",
            ),
            Use("file-read-data", "/opt/homebrew/etc/openssl@3/openssl.cnf"),
            Use("process-info-pidinfo", "same-sandbox"),
            Use("sysctl-read", "hw.cpufrequency"),
        ],
    ),
    (
        "npx",
        &[
            Use("process-exec-interpreter", "/usr/bin/env"),
            Use(
                "process-exec",
                "/opt/homebrew/lib/node_modules/npm/bin/npx-cli.js",
            ),
            Use(
                "process-exec-interpreter",
                "/Users/a/work/node_modules/.bin/tsc",
            ),
            Use("file-write-create", "/private/tmp/home/.npm/_cacache/tmp/1"),
            Use(
                "file-map-executable",
                "/Users/a/work/node_modules/esbuild/lib.node",
            ),
            Use("network-outbound", "localhost:4321"),
        ],
    ),
    (
        "make",
        &[
            Use(
                "process-exec",
                "/Library/Developer/CommandLineTools/usr/bin/make",
            ),
            Use(
                "process-exec",
                "/Applications/Xcode-26.1.app/Contents/Developer/usr/bin/make",
            ),
            Use("process-exec", "/bin/sh"),
            Use("file-read-metadata", "/private/var/select/sh"),
            Use("file-test-existence", "/Users/a/work/Makefile"),
            Use("process-exec", "/Users/a/work/build/tool"),
        ],
    ),
    (
        "clang",
        &[
            Use(
                "process-exec",
                "/Library/Developer/CommandLineTools/usr/bin/clang",
            ),
            Use(
                "process-exec",
                "/Applications/Xcode.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/bin/ld",
            ),
            Use(
                "process-exec",
                "/Applications/Xcode-26.1.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/bin/clang",
            ),
            Use(
                "file-map-executable",
                "/Applications/Xcode-26.1.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/lib/libLTO.dylib",
            ),
            Use(
                "file-read-data",
                "/Applications/Xcode-26.1.app/Contents/Developer/Platforms/MacOSX.platform/Developer/SDKs/MacOSX.sdk/usr/include/stdio.h",
            ),
            // What `xcodebuild` and `xcrun` are made of.
            Use(
                "file-map-executable",
                "/Applications/Xcode-26.1.app/Contents/SharedFrameworks/DVTFoundation.framework/Versions/A/DVTFoundation",
            ),
            Use(
                "file-read-data",
                "/Library/Developer/CommandLineTools/SDKs/MacOSX.sdk/usr/include/stdio.h",
            ),
            Use(
                "file-test-existence",
                "/Library/Developer/CommandLineTools/SDKs/MacOSX.sdk/SDKSettings.json",
            ),
            Use("file-write-times", "/Users/a/work/a.o"),
        ],
    ),
];

const DENIED: &[Use<'_>] = &[
    // Tierbar's data, although it lies in a granted folder here.
    Use("file-read-data", "/Users/a/work/Tierbar/token"),
    Use("file-read-metadata", "/Users/a/work/Tierbar/token"),
    Use("file-test-existence", "/Users/a/work/Tierbar/token"),
    Use("file-write-create", "/Users/a/work/Tierbar/config.toml"),
    Use("process-exec", "/Users/a/work/Tierbar/tool"),
    Use("process-exec-interpreter", "/Users/a/work/Tierbar/tool"),
    // What no command was granted.
    Use(
        "file-read-data",
        "/Users/a/Library/Keychains/login.keychain-db",
    ),
    Use("file-read-data", "/Users/a/.ssh/id_ed25519"),
    Use("file-read-data", "/Users/a/Documents/letter.md"),
    Use("file-read-data", "/Users/a/.zsh_history"),
    Use("file-read-data", "/Users/b/work/a"),
    Use("file-read-data", "/Users/a"),
    Use("file-read-data", "/private/etc/sudoers"),
    Use(
        "file-read-data",
        "/private/var/db/dslocal/nodes/Default/users/a.plist",
    ),
    Use("file-read-data", "/opt/homebrew/var/postgresql/base"),
    Use("file-read-data", "/Volumes/Backup/a"),
    Use("file-read-data", "/dev/tty"),
    Use("file-write-data", "/dev/disk0"),
    Use("pseudo-tty", ""),
    Use("process-exec", "/Users/a/.local/bin/tool"),
    Use(
        "process-exec",
        "/Applications/Safari.app/Contents/MacOS/Safari",
    ),
    // An Xcode that was not chosen.
    Use(
        "file-read-data",
        "/Applications/Xcode-26.0.app/Contents/Info.plist",
    ),
    // Written are the granted folders alone.
    Use("file-write-create", "/Applications/Xcode-26.1.app/a"),
    Use("file-write-data", "/Users/a/notes/todo.md"),
    Use("file-write-create", "/Users/a/Library/LaunchAgents/a.plist"),
    Use("file-write-create", "/usr/local/bin/git"),
    Use("file-write-create", "/opt/homebrew/bin/git"),
    Use("file-write-create", "/private/tmp/a"),
    Use("file-write-setugid", "/Users/a/work/tool"),
    // Services that act for a user, and other processes.
    Use("mach-lookup", "com.apple.SecurityServer"),
    Use("mach-lookup", "com.apple.securityd.xpc"),
    Use("mach-lookup", "com.apple.coreservices.launchservicesd"),
    Use("mach-lookup", "com.apple.coreservices.appleevents"),
    Use("mach-lookup", "com.apple.pasteboard.1"),
    Use("mach-lookup", "com.apple.tccd"),
    Use("mach-register", "com.apple.a"),
    Use("mach-priv-task-port", ""),
    Use("appleevent-send", "com.apple.finder"),
    Use("user-preference-read", "com.apple.Safari"),
    Use("iokit-open-user-client", "AGXAccelerator"),
    Use("job-creation", ""),
    Use("signal", "others"),
    Use("process-info-pidinfo", "others"),
    Use("sysctl-write", "kern.maxfiles"),
    Use("ipc-posix-sem", "/tierbar"),
    Use("ipc-posix-shm-read-data", "apple.shm.notification_center"),
    // The network is the proxy alone.
    Use("network-outbound", "localhost:4322"),
    Use("network-outbound", "192.168.1.1:80"),
    Use("network-outbound", "/private/var/run/mDNSResponder"),
    Use("network-bind", "localhost:8080"),
    Use("network-inbound", "localhost:8080"),
];

fn rules(proxy: Option<u16>) -> Rules {
    let policy = Policy {
        read: vec!["/Users/a/notes".into()],
        write: vec!["/Users/a/work".into()],
        protected: vec!["/Users/a/work/Tierbar".into()],
        ..Policy::default()
    };
    let (home, developer) = (Path::new(HOME), Some(Path::new(DEVELOPER)));
    Rules::read(&profile(&policy, home, developer, proxy).unwrap())
}

#[test]
fn a_command_can_do_what_developers_programs_do() {
    let rules = rules(Some(4321));
    let all = NEEDS.iter().chain([&("any program", ANY)]);
    let refused: Vec<_> = all
        .flat_map(|(program, needs)| needs.iter().map(move |need| (program, need)))
        .filter(|(_, need)| !rules.allow(**need))
        .collect();
    assert!(refused.is_empty(), "refused: {refused:#?}");
}

#[test]
fn a_command_can_do_nothing_else() {
    for proxy in [Some(4321), None] {
        let rules = rules(proxy);
        let allowed: Vec<_> = DENIED
            .iter()
            .filter(|denied| rules.allow(**denied))
            .collect();
        assert!(allowed.is_empty(), "allowed: {allowed:#?}");
        let service = Use("mach-lookup", "com.apple.trustd.agent");
        assert_eq!(rules.allow(service), proxy.is_some());
    }
}
