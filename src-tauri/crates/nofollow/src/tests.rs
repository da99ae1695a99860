//! Links, renames and races.

use super::*;
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};
use tempfile::TempDir;
use tierbar_skip::race::{Found, LINKS, race};

/// `work/sub/file`, and a folder `private` of the same form beside it, to which `link` leads.
struct Place {
    _root: TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        for (folder, text) in [("work/sub", "own"), ("private", "secret")] {
            fs::create_dir_all(path.join(folder)).unwrap();
            fs::write(path.join(folder).join("file"), text).unwrap();
        }
        symlink(path.join("private"), path.join("link")).unwrap();
        Self { _root: root, path }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

fn found(text: Result<String, OpenError>) -> Found {
    match text.as_deref() {
        Ok("own") => Found::Own,
        Ok(_) => Found::Foreign,
        // With `O_DIRECTORY`, macOS may find first that a link is no folder.
        Err(OpenError::Link { .. } | OpenError::System { .. }) => Found::Refused,
        Err(other) => panic!("{other}"),
    }
}

fn text(opened: OpenFile) -> String {
    let mut text = String::new();
    opened.into_file().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_link_in_any_part_of_a_path_is_refused() {
    let place = Place::new();
    symlink(place.at("private/file"), place.at("work/file")).unwrap();
    assert_eq!(text(open(&place.at("work/sub/file")).unwrap()), "own");
    for path in ["work/file", "link", "link/file"] {
        let path = place.at(path);
        for error in [open(&path).unwrap_err(), locate(&path).unwrap_err()] {
            assert!(matches!(error, OpenError::Link { .. }), "{error}");
            let real = path.canonicalize().unwrap();
            assert!(
                error.to_string().ends_with(real.to_str().unwrap()),
                "{error}"
            );
        }
    }
    for path in ["work/sub/file", "/a/../b"] {
        let error = open(Path::new(path)).unwrap_err();
        assert!(matches!(error, OpenError::NotAbsolute(_)), "{error}");
    }
    let error = open(&place.at("none")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn nothing_outside_is_inside() {
    let place = Place::new();
    symlink(place.at("private"), place.at("work/link")).unwrap();
    let work = open(&place.at("work")).unwrap();
    assert_eq!(text(work.inside(Path::new("sub/file")).unwrap()), "own");
    assert!(
        work.inside(Path::new(""))
            .unwrap()
            .about()
            .unwrap()
            .is_folder
    );
    let private = place.at("private/file");
    for path in [Path::new("../private/file"), &private] {
        let error = work.inside(path).unwrap_err();
        assert!(matches!(error, OpenError::Elsewhere(_)), "{error}");
    }
    for path in ["link", "link/file"] {
        let error = work.inside(Path::new(path)).unwrap_err();
        assert!(matches!(error, OpenError::Link { .. }), "{error}");
    }
    let error = work.create_folder(Path::new("link/new"), Mode::RWXU);
    assert!(error.is_err() && !place.at("private/new").exists());
}

#[test]
fn an_open_folder_is_known_by_the_path_that_it_has_now() {
    let place = Place::new();
    let sub = locate(&place.at("work/sub")).unwrap();
    fs::rename(place.at("work/sub"), place.at("work/moved")).unwrap();
    assert_eq!(sub.real_path().unwrap(), place.at("work/moved"));
    assert_eq!(sub.path(), place.at("work/sub"));
}

#[test]
fn a_pipe_is_opened_without_its_writer() {
    let place = Place::new();
    let pipe = place.at("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    assert!(!open(&pipe).unwrap().about().unwrap().is_file);
}

#[test]
fn a_folder_lists_links_as_nothing() {
    let place = Place::new();
    let sub = place.at("work/sub");
    symlink(place.at("private"), sub.join("link")).unwrap();
    fs::create_dir(sub.join("inner")).unwrap();
    let mut entries: Vec<_> = open(&sub)
        .unwrap()
        .entries()
        .unwrap()
        .map(|entry| {
            let Entry { name, about, .. } = entry.unwrap();
            (name, about.is_file, about.is_folder)
        })
        .collect();
    entries.sort();
    assert_eq!(
        entries,
        [
            ("file".into(), true, false),
            ("inner".into(), false, true),
            ("link".into(), false, false)
        ]
    );
    let file = open(&sub.join("file")).unwrap();
    assert_eq!(file.about().unwrap().bytes, 3);
    assert!(file.about().unwrap().modified > 0 && file.entries().is_err());
}

#[test]
fn a_folder_is_denied_if_each_of_its_names_is() {
    let entry = |errno: Option<Errno>| {
        Ok(Entry {
            name: "a".into(),
            about: About::default(),
            fault: errno.map(io::Error::from),
        })
    };
    for (faults, is_denied) in [
        (vec![], false),
        (vec![Some(Errno::PERM), None, Some(Errno::ACCESS)], false),
        (vec![Some(Errno::PERM), Some(Errno::IO)], false),
        (vec![Some(Errno::ACCESS), Some(Errno::PERM)], true),
    ] {
        let entries = refuse_if_all(faults.iter().copied().map(entry));
        let entries: io::Result<Vec<Entry>> = entries.collect();
        let found = entries.map_or_else(|error| Err(error.kind()), |found| Ok(found.len()));
        let expected = match is_denied {
            true => Err(io::ErrorKind::PermissionDenied),
            false => Ok(faults.len()),
        };
        assert_eq!(found, expected, "{faults:?}");
    }
}

#[test]
fn a_file_is_replaced_whole_and_a_link_itself() {
    let place = Place::new();
    let work = open(&place.at("work")).unwrap();
    let folder = work
        .create_folder(Path::new("new/deep"), Mode::RWXU)
        .unwrap();
    let at = place.at("work/new/deep");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&at), 0o700);
    let write = |name: &str| folder.replace(OsStr::new(name), &b"x"[..], Mode::RUSR | Mode::WUSR);
    write("file").unwrap();
    assert_eq!(mode(&at.join("file")), 0o600);
    fs::set_permissions(at.join("file"), fs::Permissions::from_mode(0o750)).unwrap();
    write("file").unwrap();
    assert_eq!(mode(&at.join("file")), 0o750);
    folder
        .replace_as(OsStr::new("file"), &b"x"[..], PRIVATE)
        .unwrap();
    assert_eq!(mode(&at.join("file")), 0o600);
    symlink(place.at("private/file"), at.join("link")).unwrap();
    write("link").unwrap();
    assert_eq!(fs::read(place.at("private/file")).unwrap(), b"secret");
    assert!(!at.join("link").is_symlink());
    fs::create_dir(at.join("folder")).unwrap();
    assert!(write("folder").is_err());
    assert_eq!(fs::read_dir(&at).unwrap().count(), 3, "no draft is left");
    fs::remove_file(at.join("link")).unwrap();
    symlink(place.at("private/file"), at.join("link")).unwrap();
    let remove = |name: &str| folder.remove(OsStr::new(name));
    remove("file").unwrap();
    remove("link").unwrap();
    assert!(remove("folder").is_err());
    assert_eq!(fs::read(place.at("private/file")).unwrap(), b"secret");
    assert_eq!(fs::read_dir(&at).unwrap().count(), 1);
}

/// Of two that write one name at once, each writes a whole file.
#[test]
fn concurrent_writers_of_a_name_do_not_mix() {
    let place = Place::new();
    let work = open(&place.at("work")).unwrap();
    let texts = [[b'a'; 100_000], [b'b'; 100_000]];
    std::thread::scope(|scope| {
        for text in &texts {
            scope.spawn(|| {
                for _ in 0..20 {
                    work.replace(OsStr::new("file"), &text[..], PRIVATE)
                        .unwrap();
                    let read = fs::read(place.at("work/file")).unwrap();
                    assert!(texts.iter().any(|text| read == text), "it is mixed");
                }
            });
        }
    });
    let names: Vec<_> = fs::read_dir(place.at("work")).unwrap().collect();
    assert_eq!(names.len(), 2, "no draft is left: {names:?}");
}

#[test]
fn a_file_is_created_under_a_free_name_alone() {
    let place = Place::new();
    let work = open(&place.at("work")).unwrap();
    symlink(place.at("private/new"), place.at("work/new")).unwrap();
    for name in ["new", "sub"] {
        let error = work.create(OsStr::new(name), PRIVATE).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{name}");
    }
    work.create(OsStr::new("other"), PRIVATE).unwrap();
    work.remove(OsStr::new("new")).unwrap();
    assert!(!place.at("private/new").exists() && !place.at("work/new").is_symlink());
}

#[test]
fn what_is_open_is_in_each_folder_around_it() {
    let place = Place::new();
    let sub = locate(&place.at("work/sub")).unwrap();
    let lineage = sub.lineage().unwrap();
    let identity = |path: &Path| About::at(path).unwrap().identity;
    for (at, name) in ["work/sub", "work", ""].iter().enumerate() {
        assert_eq!(lineage[at], identity(&place.at(name)), "{name}");
    }
    assert_eq!(lineage.last(), Some(&identity(Path::new("/"))));
    assert!(!lineage.contains(&identity(&place.at("private"))));
    let file = open(&place.at("work/sub/file")).unwrap();
    assert_eq!(file.lineage().unwrap().len(), 1, "a file has no folder");
}

#[test]
fn a_file_is_the_same_by_each_of_its_names() {
    let place = Place::new();
    let file = place.at("work/sub/file");
    fs::hard_link(&file, place.at("other")).unwrap();
    let sub = open(&place.at("work/sub")).unwrap();
    let identity = open(&file).unwrap().about().unwrap().identity;
    let listed = sub.entries().unwrap().next().unwrap().unwrap();
    let about = |folder: &OpenFile, name: &str| folder.about_entry(OsStr::new(name));
    let root = sub.parent().unwrap().parent().unwrap();
    for (about, from) in [
        (About::at(&place.at("other")).unwrap(), "a path"),
        (listed.about, "a list"),
        (about(&sub, "file").unwrap(), "its folder"),
        (about(&root, "other").unwrap(), "a folder around it"),
    ] {
        assert_eq!(about.identity, identity, "{from}");
    }
    assert_ne!(about(&root, "link").unwrap().identity, identity);
    assert!(about(&root, "none").is_err());
    assert!(open(Path::new("/")).unwrap().parent().is_none());
}

/// Each way to open, in a folder whose name leads elsewhere at times.
#[test]
fn a_folder_in_whose_place_a_link_appears_is_not_left() {
    let place = Place::new();
    let (work, sub) = (open(&place.at("work")).unwrap(), place.at("work/sub"));
    let private = About::at(&place.at("private")).unwrap().identity;
    let file = Path::new("file");
    race(
        &LINKS,
        &sub,
        &place.at("private"),
        &mut [
            &mut || found(open(&sub.join(file)).map(text)),
            &mut || match locate(&sub).map(|located| located.about().unwrap().identity) {
                Ok(identity) if identity == private => Found::Foreign,
                Ok(_) => Found::Own,
                Err(error) => found(Err(error)),
            },
            &mut || found(work.inside(Path::new("sub/file")).map(text)),
            &mut || {
                let folder = work.create_folder(Path::new("sub"), Mode::RWXU);
                found(folder.and_then(|folder| folder.inside(file)).map(text))
            },
        ],
    );
}

#[test]
fn a_file_without_its_content_is_recognized() {
    const COMPRESSED: u32 = 0x20;
    const HIDDEN: u32 = 0x8000;
    for (flags, expected) in [
        (0, false),
        (COMPRESSED | HIDDEN, false),
        (0x4000_0060, true),
    ] {
        assert_eq!(is_dataless(flags), expected, "{flags:#x}");
    }
    let place = Place::new();
    for name in ["work/sub/file", "work/sub", "link"] {
        let about = About::at(&place.at(name)).unwrap();
        assert!(!about.in_cloud, "{name}");
        assert_eq!(about.is_folder, name == "work/sub", "{name}");
    }
}
