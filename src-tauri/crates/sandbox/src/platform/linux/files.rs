//! Landlock: which files and processes a command may use. It may use no port: the launcher makes its connections.

use crate::policy::GrantedFiles;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use std::{os::fd::AsFd, path::Path};
use tierbar_nofollow::locate;

/// What every command may read besides programs and libraries: names and certificates, and no configuration that could hold a
/// secret.
const READ: [&str; 30] = [
    // A writable mapping of it would be memory that no process holds.
    "/dev/zero",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/java-21-openjdk",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/python3",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    "/proc/cpuinfo",
    "/proc/meminfo",
];
/// Devices that hold nothing.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/full", "/dev/random", "/dev/urandom"];

/// The kernel's version of Landlock; 0 or less without.
pub(super) fn version() -> i32 {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the call takes no rules, and returns a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            VERSION,
        )
    };
    i32::try_from(version).unwrap_or(0)
}

/// Restricts this process. `home` is the command's own folder.
pub(super) fn restrict(granted: &GrantedFiles, home: &Path, version: i32) -> Result<(), String> {
    apply(granted, home, version).map_err(|error| format!("Landlock: {error}"))
}

fn apply(
    granted: &GrantedFiles,
    home: &Path,
    version: i32,
) -> Result<(), Box<dyn std::error::Error>> {
    let abi = ABI::from(version);
    let all = AccessFs::from_all(abi);
    let read = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute;
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    let write = all & !(devices | AccessFs::MakeSock);
    // All that this version of the kernel has, or nothing.
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(all)?;
    let scopes = Scope::from_all(abi);
    if !scopes.is_empty() {
        rules = rules.scope(scopes)?;
    }
    let net = AccessNet::from_all(abi) & (AccessNet::BindTcp | AccessNet::ConnectTcp);
    if !net.is_empty() {
        rules = rules.handle_access(net)?;
    }
    let mut rules = rules.create()?;
    let system = super::SYSTEM.iter().chain(&READ).map(Path::new);
    for place in system.filter(|place| place.exists()) {
        rules = rules.add_rule(beneath(PathFd::new(place)?, place.is_dir(), read))?;
    }
    for place in DEVICES.iter().map(Path::new) {
        let access = AccessFs::ReadFile | AccessFs::WriteFile;
        if place.exists() {
            rules = rules.add_rule(beneath(PathFd::new(place)?, false, access))?;
        }
    }
    let home = locate(home)?;
    let read = granted.read.iter().map(|place| (place, read));
    let written = granted.write.iter().chain([&home]);
    for (place, access) in read.chain(written.map(|place| (place, write))) {
        let is_folder = place.about()?.is_folder;
        rules = rules.add_rule(beneath(place, is_folder, access))?;
    }
    let status = rules.restrict_self()?;
    if status.ruleset != RulesetStatus::FullyEnforced || !status.no_new_privs {
        return Err(format!("only partly enforced: {:?}", status.ruleset).into());
    }
    Ok(())
}

/// A rule for a folder, or for a file with the rights that files can have.
fn beneath<F: AsFd>(place: F, is_folder: bool, access: BitFlags<AccessFs>) -> PathBeneath<F> {
    let of_files =
        AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Execute | AccessFs::Truncate;
    let access = if is_folder { access } else { access & of_files };
    PathBeneath::new(place, access)
}
