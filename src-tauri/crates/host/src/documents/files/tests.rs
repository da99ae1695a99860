use super::{super::extract, *};
use crate::{
    own_data::tests::{data_folder_at, hard_link_to_data},
    sources::tests::tempdir,
};
use data_encoding::HEXLOWER;
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};
use tempfile::TempDir;
use tierbar_core::Code;
use tierbar_skip::{
    Call, denying,
    race::{ALL, Found, LINKS, Way, race},
};

fn source(path: &Path, is_folder: bool) -> DocumentSource {
    DocumentSource {
        id: 1,
        path: path.to_str().unwrap().to_owned(),
        collection: "Documents".to_owned(),
        is_folder,
        is_missing: false,
        problem: None,
        indexed: 0,
        waiting: 0,
        failed: 0,
        noticed: 0,
        read_pictures: false,
        passages: 0,
        without_vectors: 0,
        left_out: None,
    }
}

#[test]
fn a_folder_has_its_documents_and_no_others() {
    let folder = tempdir();
    let at = |name: &str| folder.path().join(name);
    for inner in ["b", "node_modules", ".git", "Tierbar"] {
        fs::create_dir(at(inner)).unwrap();
    }
    for name in [
        "a.pdf",
        "b/c.md",
        "node_modules/d.md",
        ".git/e.txt",
        ".f.txt",
        "g.jpg",
        "h.rs",
        "Tierbar/tierbar.db",
        "Tierbar/token",
        "Tierbar/secrets.json",
    ] {
        fs::write(at(name), "x").unwrap();
    }
    fs::write(at("b/empty.md"), "").unwrap();
    symlink(folder.path(), at("b/again")).unwrap();
    let found = scan(&source(folder.path(), true)).unwrap();
    let left_out = found.left_out().unwrap();
    assert_eq!(
        left_out,
        "Not searched: 1 folder that programs have generated"
    );
    assert_eq!(names(&found, folder.path()), ["a.pdf", "b/c.md", "h.rs"]);
    assert!(found.files[0].size == 1 && found.files[0].modified > 0);
    // A file that was added itself is a document whatever its name.
    let file = scan(&source(&at("g.jpg"), false)).unwrap();
    assert_eq!(file.files.len(), 1);
    assert_eq!(scan(&source(&at("none"), true)), None);
    assert_eq!(scan(&source(&at("none"), false)), None);
}

/// A source whose name leads to a folder of the same form in Tierbar's data at times: to the data itself, or to a part of it.
fn race_to_data(ways: &[Way], place: &str) {
    let root = tempdir();
    let path = root.path();
    data_folder_at(&path.join("private"));
    let (papers, private) = (path.join("papers"), path.join(place));
    for (folder, text) in [(&papers, "own"), (&private, "secret")] {
        fs::create_dir_all(folder.join("inner")).unwrap();
        fs::write(folder.join("inner/a.md"), text).unwrap();
    }
    let inner = papers.join("inner/a.md");
    let scan = |path: &Path, is_folder| match scan(&source(path, is_folder)) {
        Some(scan) if scan.files.iter().any(|file| file.size != 3) => Found::Foreign,
        Some(_) => Found::Own,
        None => Found::Refused,
    };
    race(
        ways,
        &papers,
        &private,
        &mut [
            &mut || scan(&papers, true),
            &mut || scan(&inner, false),
            &mut || opened(&inner),
        ],
    );
}

/// What opening a file finds, whose own text is "own".
fn opened(path: &Path) -> Found {
    let own = HEXLOWER.encode(&Sha256::digest("own"));
    match extract::open(path) {
        Ok((_, sha256)) if sha256 != own => Found::Foreign,
        Ok(_) => Found::Own,
        Err(_) => Found::Refused,
    }
}

#[test]
fn a_folder_that_becomes_a_link_is_not_entered() {
    let root = tempdir();
    let (papers, outside) = (root.path().join("papers"), root.path().join("outside"));
    let inner = papers.join("inner");
    for (folder, text) in [(&inner, "own"), (&outside, "secret")] {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("a.md"), text).unwrap();
    }
    let file = inner.join("a.md");
    let mut look = || {
        let found = scan(&source(&papers, true)).unwrap();
        let mut files = found.files.iter();
        if files.any(|file| file.size != 3) {
            return Found::Foreign;
        }
        match names(&found, &papers)
            .iter()
            .any(|name| name == "inner/a.md")
        {
            true => Found::Own,
            false => Found::Refused,
        }
    };
    race(
        &LINKS,
        &inner,
        &outside,
        &mut [&mut look, &mut || opened(&file)],
    );
}

#[test]
fn a_source_whose_name_leads_to_tierbars_data_is_not_left() {
    race_to_data(&ALL, "private");
}

#[test]
fn a_part_of_tierbars_data_mounted_on_a_source_is_not_read() {
    race_to_data(&[Way::Mount], "private/logs");
}

#[test]
fn a_hard_link_to_tierbars_data_is_no_document() {
    let folder = folder_of(&[("a.md", "x")]);
    let _data = hard_link_to_data(&folder.path().join("token.md"));
    let found = scan(&source(folder.path(), true)).unwrap();
    assert_eq!(names(&found, folder.path()), ["a.md"]);
}

#[test]
fn what_is_not_seen_of_a_folder_is_named() {
    let unreadable = |path: &str| Unreadable {
        path: path.to_owned(),
        reason: "permission denied".to_owned(),
    };
    let mut scan = Scan::default();
    assert_eq!(scan.left_out(), None);
    scan.left_out.note(Why::TooMany);
    scan.unreadable = vec![unreadable("/d/a")];
    assert_eq!(
        scan.left_out().unwrap(),
        "/d/a cannot be read (permission denied), and is searched as it was. Not searched: 1 file beyond the first 50000"
    );
    scan.unreadable.push(unreadable("/d/b"));
    let left_out = scan.left_out().unwrap();
    assert!(left_out.starts_with("/d/a and 1 more cannot"), "{left_out}");
}

/// A folder with these files, in those that their names have.
fn folder_of(files: &[(&str, &str)]) -> TempDir {
    let folder = tempdir();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn names(scan: &Scan, folder: &Path) -> Vec<String> {
    let files = scan.files.iter();
    let names = files.map(|file| Path::new(&file.path).strip_prefix(folder).unwrap());
    names
        .map(|name| name.to_str().unwrap().to_owned())
        .collect()
}

#[test]
fn what_git_ignores_is_no_document() {
    let folder = folder_of(&[
        (
            ".gitignore",
            "\u{feff}*.log\r\n/out\nbuild/\n# *.md\n!kept.log\n[z-a]\n",
        ),
        ("a.md", "x"),
        ("a.log", "x"),
        ("kept.log", "x"),
        ("out/b.md", "x"),
        ("inner/out/c.md", "x"),
        ("inner/build/d.md", "x"),
        ("inner/build/kept.log", "x"),
        // The nearest rules come first.
        ("inner/.gitignore", "!e.log\n*.md\n!c.md\n"),
        ("inner/e.log", "x"),
        ("inner/f.md", "x"),
        ("inner/f.jpg", "x"),
    ]);
    let found = scan(&source(folder.path(), true)).unwrap();
    assert_eq!(
        names(&found, folder.path()),
        ["a.md", "inner/e.log", "inner/out/c.md", "kept.log"]
    );
    assert_eq!(
        found.left_out().unwrap(),
        "Not searched: 2 files (.gitignore), 2 folders (.gitignore)"
    );
}

#[test]
fn lock_files_and_generated_folders_are_no_documents() {
    let folder = folder_of(&[
        ("package.json", "x"),
        ("package-lock.json", "x"),
        ("pnpm-lock.yaml", "x"),
        ("a.min.js", "x"),
        ("a-min.css", "x"),
        ("admin.css", "x"),
        ("a.min.md", "x"),
        ("env/pyvenv.cfg", "x"),
        ("env/lib/a.py", "x"),
        ("cache/CACHEDIR.TAG", "x"),
        ("cache/b.txt", "x"),
        ("target/c.txt", "x"),
    ]);
    let found = scan(&source(folder.path(), true)).unwrap();
    assert_eq!(
        names(&found, folder.path()),
        ["a.min.md", "admin.css", "package.json"]
    );
    assert_eq!(
        found.left_out().unwrap(),
        "Not searched: 3 folders that programs have generated, 2 lock files, 2 minified files"
    );
    // One that was added itself is not asked what it is.
    let found = scan(&source(&folder.path().join("cache"), true)).unwrap();
    assert_eq!(names(&found, folder.path()), ["cache/b.txt"]);
}

#[test]
fn rules_behind_a_link_or_too_long_are_none() {
    let rules = folder_of(&[("rules", "*.md\n")]);
    let folder = folder_of(&[("a.md", "x"), ("b/c.md", "x")]);
    symlink(rules.path().join("rules"), folder.path().join(".gitignore")).unwrap();
    let long = "*.md\n".repeat(1 << 14);
    fs::write(folder.path().join("b/.gitignore"), long).unwrap();
    let found = scan(&source(folder.path(), true)).unwrap();
    assert_eq!(names(&found, folder.path()), ["a.md", "b/c.md"]);
}

#[test]
fn rules_of_all_files_have_a_limit() {
    let long = "*.md\n".repeat(MOST_RULES / 2);
    let files = [".gitignore", "b/.gitignore", "c/.gitignore"].map(|name| (name, "!*.md\n"));
    let folder = folder_of(&files);
    for name in ["b/.gitignore", "c/.gitignore"] {
        fs::write(folder.path().join(name), &long).unwrap();
    }
    for name in ["a.md", "b/a.md", "c/a.md"] {
        fs::write(folder.path().join(name), "x").unwrap();
    }
    let found = scan(&source(folder.path(), true)).unwrap();
    assert_eq!(
        names(&found, folder.path()).len(),
        2,
        "those of one are beyond it"
    );
}

#[test]
fn a_folder_within_that_cannot_be_read_is_not_gone() {
    let folder = folder_of(&[("a.md", "x"), ("inner/b.md", "x")]);
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    set_mode(folder.path(), 0o755);
    let inner = folder.path().join("inner");
    // Its names cannot be read; they can, and nothing about them.
    for mode in [0o000, 0o444] {
        set_mode(&inner, mode);
        let scanned = tierbar_skip::as_ordinary_user(|| scan(&source(folder.path(), true)));
        set_mode(&inner, 0o755);
        let Some(found) = scanned else {
            return tierbar_skip::skip("a thread has the user of its process here");
        };
        let found = found.unwrap();
        assert_eq!(names(&found, folder.path()), ["a.md"], "{mode:o}");
        let denied = Unreadable {
            path: inner.to_str().unwrap().to_owned(),
            reason: "permission denied".to_owned(),
        };
        assert_eq!(found.unreadable, [denied], "{mode:o}");
    }
}

/// As macOS does for a folder that its privacy settings deny, whichever call it refuses.
#[test]
fn a_source_that_the_system_denies_is_not_empty() {
    let folder = folder_of(&[("a.md", "x")]);
    for call in [Call::Open, Call::ReadNames, Call::Stat] {
        let looked = denying(call, || {
            let look = sources::look(folder.path()).unwrap_err();
            (look, scan(&source(folder.path(), true)))
        });
        let Some((error, scanned)) = looked else {
            return tierbar_skip::skip("no call can be denied to a thread here");
        };
        assert_eq!(scanned, None, "{call:?}");
        assert_eq!(error.code, Code::AccessDenied, "{call:?}: {error}");
        assert!(
            error.message.ends_with("cannot be read: permission denied"),
            "{call:?}: {error}"
        );
    }
}

#[test]
fn a_name_that_cannot_be_looked_at_hides_no_other() {
    let files = ["a.md", "kept.md", ".kept", "mount/b.md"];
    let folder = folder_of(&files.map(|name| (name, "x")));
    let root = sources::open(folder.path()).unwrap();
    let (opened, mut entries) = read_folder(&root, Path::new("")).unwrap();
    for entry in &mut entries {
        let errno = match entry.name.to_str().unwrap() {
            "kept.md" | ".kept" => Errno::PERM,
            // Its server is gone.
            "mount" => Errno::NOTCONN,
            _ => continue,
        };
        entry.fault = Some(errno.into());
    }
    let mut scan = Scan::default();
    let all = Folder {
        place: PathBuf::new(),
        depth: 0,
        rules: Vec::new(),
    };
    scan.look_into(all, folder.path(), &opened, entries, &mut Vec::new());
    assert!(scan.files[0].path.ends_with("a.md") && scan.files.len() == 1);
    let mut unreadable: Vec<_> = scan.unreadable.iter().map(|one| &one.path).collect();
    unreadable.sort_unstable();
    assert!(unreadable[0].ends_with("kept.md") && unreadable[1].ends_with("mount"));
    assert_eq!(unreadable.len(), 2, "{unreadable:?}");
}

#[test]
fn a_folder_whose_rules_cannot_be_read_stays_as_it_was() {
    let folder = folder_of(&[("a.md", "x"), (GITIGNORE, "a.md")]);
    let root = sources::open(folder.path()).unwrap();
    for is_refused in [true, false] {
        let (opened, mut entries) = read_folder(&root, Path::new("")).unwrap();
        let mut names = entries.iter_mut();
        let rules = names.find(|entry| entry.name == GITIGNORE).unwrap();
        rules.fault = is_refused.then(|| Errno::PERM.into());
        rules.about.in_cloud = !is_refused;
        let mut scan = Scan::default();
        let all = Folder {
            place: PathBuf::new(),
            depth: 0,
            rules: Vec::new(),
        };
        scan.look_into(all, folder.path(), &opened, entries, &mut Vec::new());
        assert_eq!(scan.files, []);
        assert_eq!(scan.unreadable[0].path, folder.path().to_str().unwrap());
    }
}

#[test]
fn a_source_with_much_that_cannot_be_read_stays_as_it_was() {
    let folder = folder_of(&[("a.md", "x")]);
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    set_mode(folder.path(), 0o755);
    for number in 0..=MOST_UNREADABLE {
        let inner = folder.path().join(number.to_string());
        fs::create_dir(&inner).unwrap();
        set_mode(&inner, 0o000);
    }
    let scanned = tierbar_skip::as_ordinary_user(|| scan(&source(folder.path(), true)));
    let Some(found) = scanned else {
        return tierbar_skip::skip("a thread has the user of its process here");
    };
    let found = found.unwrap();
    assert_eq!(found.files, []);
    assert_eq!(found.unreadable[0].path, folder.path().to_str().unwrap());
    assert!(found.left_out().unwrap().contains("100 names"));
}

#[test]
fn what_is_in_icloud_only_is_searched_as_it_was() {
    let folder = folder_of(&[("a.md", "x")]);
    let root = sources::open(folder.path()).unwrap();
    let (opened, entries) = read_folder(&root, Path::new("")).unwrap();
    let named = |name: &str| {
        let about = About {
            is_file: name.contains('.'),
            is_folder: !name.contains('.'),
            in_cloud: name != "here.md",
            ..entries[0].about
        };
        let name = name.into();
        Entry {
            name,
            about,
            fault: None,
        }
    };
    let entries = [
        "here.md", "read.md", "new.md", "new.pdf", "new.jpg", "read", "new", "target",
    ];
    let entries = entries.map(named);
    let inner = Folder {
        place: PathBuf::new(),
        depth: 0,
        rules: Vec::new(),
    };
    let (mut scan, mut folders) = (Scan::default(), Vec::new());
    scan.look_into(inner, folder.path(), &opened, entries.into(), &mut folders);
    assert_eq!(names(&scan, folder.path()), ["here.md"]);
    assert!(
        folders.is_empty(),
        "none is listed, which would download it"
    );
    let known = |name: &str| SeenFile {
        path: folder.path().join(name).to_str().unwrap().to_owned(),
        size: 7,
        modified: 1,
    };
    let files = ["here.md", "read.md", "gone.md", "read/a.md", "read/b/c.md"];
    scan.keep(files.map(known).into());
    let kept = ["here.md", "read.md", "read/a.md", "read/b/c.md"];
    assert_eq!(names(&scan, folder.path()), kept);
    assert_eq!(
        scan.left_out().unwrap(),
        "Not searched: 1 folder that programs have generated, 2 files in iCloud only, 1 folder in iCloud only"
    );
}

#[test]
fn a_change_matters_where_a_scan_would_look() {
    let sources = HashSet::from([PathBuf::from("/home/me/.notes")]);
    let is_found = |path: &str| is_found(Path::new(path), &sources);
    assert!(is_found("/home/me/.notes/a.md"));
    assert!(is_found("/home/me/.notes"));
    assert!(!is_found("/home/me/.notes/.git/index"));
    assert!(!is_found("/home/me/.notes/target/x.txt"));
    assert!(is_found("/home/me/.notes/code/.gitignore"));
    assert!(!is_found("/home/me/.notes/target/.gitignore"));
    // The system may know a source by another name.
    assert!(is_found("/private/home/me/.notes/.git/index"));
}
