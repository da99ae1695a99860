//! Folders that a command was granted and that lead elsewhere when it starts, and a launcher that it could change.

use crate::{
    launcher,
    place::{Place, skip_unsandboxed},
};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};
use tierbar_sandbox::{NotRun, PolicyError, Request, Stop, run};
use tierbar_skip::race::{Found, LINKS, race};

impl Place {
    /// Of a command that starts in `work/sub` and may write there. Beside it, `link` leads to the folder `private`, which is not protected:
    /// any folder of the user's would do.
    fn request_in_sub(&self, line: &str) -> Request {
        let sub = self.work.join("sub");
        let private = self.hidden.with_file_name("private");
        for (folder, text) in [(&sub, "own"), (&private, "secret")] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("file"), text).unwrap();
        }
        symlink(&private, self.work.join("link")).unwrap();
        let mut policy = self.policy.clone();
        policy.write = vec![sub.clone()];
        Request::shell(line, sub, policy)
    }
}

#[test]
fn a_link_in_place_of_a_granted_folder_is_not_followed() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let request = place.request_in_sub("cat file; echo x > new");
    let finished = run(launcher(), &request, &Stop::default()).unwrap();
    assert_eq!(finished.stdout.text, "own");
    fs::rename(place.work.join("sub"), place.work.join("before")).unwrap();
    fs::rename(place.work.join("link"), place.work.join("sub")).unwrap();
    let refused = run(launcher(), &request, &Stop::default());
    assert!(
        matches!(refused, Err(NotRun::Policy(PolicyError::NotOpened(_)))),
        "{refused:?}"
    );
    let private = place.hidden.with_file_name("private");
    assert_eq!(fs::read_dir(private).unwrap().count(), 1);
}

/// What is checked is what is granted, whatever the name leads to in between.
#[test]
fn a_folder_in_whose_place_a_link_appears_is_never_left() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let request = place.request_in_sub("cat file; chmod 600 file; echo x > new");
    let private = place.hidden.with_file_name("private");
    fs::set_permissions(private.join("file"), fs::Permissions::from_mode(0o640)).unwrap();
    let sub = place.work.join("sub");
    let mut attempt = || {
        let read = run(launcher(), &request, &Stop::default());
        let read = read.map_or_else(|_| String::new(), |finished| finished.stdout.text);
        let mode = fs::metadata(private.join("file"))
            .unwrap()
            .permissions()
            .mode();
        let is_written = private.join("new").exists() || mode & 0o777 != 0o640;
        match read.as_str() {
            "own" if !is_written => Found::Own,
            "" if !is_written => Found::Refused,
            _ => Found::Foreign,
        }
    };
    race(&LINKS, &sub, &private, &mut [&mut attempt]);
}

#[test]
fn a_launcher_that_the_command_could_change_does_not_start() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let release = place.work.join("target/release");
    fs::create_dir_all(&release).unwrap();
    let own = release.join("tierbar-sandbox");
    fs::copy(launcher(), &own).unwrap();
    let request = Request::shell("true", place.work.clone(), place.policy.clone());
    let refused = run(&own, &request, &Stop::default());
    assert!(
        matches!(refused, Err(NotRun::Policy(PolicyError::Program(..)))),
        "{refused:?}"
    );
    // Beside the folder, it is as good as any.
    let outside = place.hidden.join("tierbar-sandbox");
    fs::rename(&own, &outside).unwrap();
    run(&outside, &request, &Stop::default()).unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o777)).unwrap();
    let refused = run(&outside, &request, &Stop::default());
    assert!(
        matches!(refused, Err(NotRun::Policy(PolicyError::Changeable(_)))),
        "{refused:?}"
    );
}
