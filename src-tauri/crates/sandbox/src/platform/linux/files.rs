//! Landlock: which files, ports and processes a command may use.

use crate::Policy;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use std::path::Path;

/// What every command may read besides programs and libraries: names and certificates, and no configuration that could hold a
/// secret.
const READ: [&str; 29] = [
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
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

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
pub(super) fn restrict(policy: &Policy, home: &Path, version: i32) -> Result<(), String> {
    apply(policy, home, version).map_err(|error| format!("Landlock: {error}"))
}

fn apply(policy: &Policy, home: &Path, version: i32) -> Result<(), Box<dyn std::error::Error>> {
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
        rules = rules.add_rule(beneath(place, read)?)?;
    }
    for place in DEVICES.iter().map(Path::new) {
        let access = AccessFs::ReadFile | AccessFs::WriteFile;
        if place.exists() {
            rules = rules.add_rule(beneath(place, access)?)?;
        }
    }
    for place in &policy.read {
        rules = rules.add_rule(beneath(place, read)?)?;
    }
    for place in policy.write.iter().map(|path| path.as_path()).chain([home]) {
        rules = rules.add_rule(beneath(place, write)?)?;
    }
    for port in policy.network.ports() {
        rules = rules.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
    }
    let status = rules.restrict_self()?;
    if status.ruleset != RulesetStatus::FullyEnforced || !status.no_new_privs {
        return Err(format!("only partly enforced: {:?}", status.ruleset).into());
    }
    Ok(())
}

/// A rule for a folder, or for a file with the rights that files can have.
fn beneath(
    place: &Path,
    access: BitFlags<AccessFs>,
) -> Result<PathBeneath<PathFd>, Box<dyn std::error::Error>> {
    let access = if place.is_dir() {
        access
    } else {
        access & (AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Execute | AccessFs::Truncate)
    };
    Ok(PathBeneath::new(PathFd::new(place)?, access))
}
