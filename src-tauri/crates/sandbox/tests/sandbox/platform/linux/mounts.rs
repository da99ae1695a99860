//! Bind mounts, which give Tierbar's data another real path. A command cannot make one, a person can.

use crate::{
    launcher,
    place::{Place, skip_unsandboxed},
};
use std::{fs, process::Command};
use tierbar_sandbox::Request;
use tierbar_skip::skip;

/// Mounts what is hidden on a granted folder and takes it away again, while commands start there: until one has run in the folder itself
/// and one was refused, and thirty times.
const MOUNTS: &str = r#"
set -e
mount --make-rprivate /
mount --bind "$HIDDEN" "$SUB" && umount "$SUB"
echo possible
mkfifo "$HERE/request"
# Open for both, so that no command loses its host.
exec 3<>"$HERE/request"
(while [ ! -e "$HERE/done" ]; do mount --bind "$FROM" "$SUB"; umount -l "$SUB" || true; done) &
count=0
until [ $count -ge 30 ] && grep -q own "$HERE/reports" && grep -q 'would show' "$HERE/reports"; do
    cat "$HERE/line" >&3
    "$LAUNCHER" <&3 >> "$HERE/reports"
    echo >> "$HERE/reports"
    count=$((count + 1))
done
touch "$HERE/done"
wait
"#;

/// Runs commands in a folder on which this one is mounted at times. Returns the reports, or why nothing can be mounted.
fn reports(place: &Place, from: &std::path::Path) -> Result<String, String> {
    let here = place.work.parent().unwrap();
    let sub = place.work.join("sub");
    fs::create_dir(&sub).unwrap();
    fs::write(sub.join("file"), "own").unwrap();
    let mut policy = place.policy.clone();
    policy.write = vec![sub.clone()];
    let line = "cat file token data/token hidden/token";
    let request = Request::shell(line, sub.clone(), policy);
    fs::write(here.join("line"), request.line(launcher()).unwrap()).unwrap();
    fs::write(here.join("reports"), "").unwrap();
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", MOUNTS])
        .envs([("HIDDEN", place.hidden.as_path()), ("FROM", from)])
        .envs([("SUB", sub.as_path()), ("HERE", here)])
        .env("LAUNCHER", launcher())
        .output()
        .unwrap();
    if output.stdout.starts_with(b"possible") {
        return Ok(fs::read_to_string(here.join("reports")).unwrap());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn data_under_another_path_is_known_again() {
    if Place::new().is_none() {
        return skip_unsandboxed();
    }
    // The data itself, and the folder that it is in.
    for around in [false, true] {
        let place = Place::new().unwrap();
        let from = if around {
            place.hidden.parent().unwrap()
        } else {
            &place.hidden
        };
        match reports(&place, from) {
            Ok(reports) => assert!(!reports.contains("the token"), "{reports}"),
            Err(why) => return skip(&format!("nothing can be mounted here: {why}")),
        }
    }
}
