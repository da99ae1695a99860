use super::*;
use notify::event::{CreateKind, DataChange, Flag, MetadataKind, RemoveKind, RenameMode};

fn event(kind: EventKind, paths: &[&str]) -> Event {
    let event = Event::new(kind);
    paths
        .iter()
        .fold(event, |event, path| event.add_path(path.into()))
}

#[test]
fn reads_are_no_changes_and_writes_are() {
    let matters = |kind| super::is_relevant(&event(kind, &["/m/a.gguf"]));
    for kind in [
        EventKind::Create(CreateKind::File),
        EventKind::Remove(RemoveKind::File),
        EventKind::Modify(ModifyKind::Data(DataChange::Any)),
        EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any)),
        EventKind::Access(AccessKind::Close(AccessMode::Write)),
        EventKind::Any,
    ] {
        assert!(matters(kind), "{kind:?}");
    }
    for kind in [
        AccessKind::Open(AccessMode::Any),
        AccessKind::Close(AccessMode::Read),
        AccessKind::Read,
    ] {
        assert!(!matters(EventKind::Access(kind)), "{kind:?}");
    }
}

#[test]
fn hidden_and_partial_files_count_once_renamed() {
    let create = EventKind::Create(CreateKind::File);
    for name in [
        "/m/.tierbar",
        "/m/a.gguf.part",
        "/m/A.GGUF.CRDOWNLOAD",
        "/m/a.download",
        "/m/a.tmp",
        "/m/b.incomplete",
        "/m/sha256-00-partial",
    ] {
        assert!(!is_relevant(&event(create, &[name])), "{name}");
    }
    let rename = EventKind::Modify(ModifyKind::Name(RenameMode::Both));
    assert!(is_relevant(&event(
        rename,
        &["/m/a.gguf.part", "/m/a.gguf"]
    )));
    assert!(is_relevant(&event(create, &[])));
    assert!(is_relevant(
        &Event::new(EventKind::Other).set_flag(Flag::Rescan)
    ));
}

#[test]
fn a_tree_is_watched_once_under_its_real_path() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    std::fs::create_dir_all(at("a/b")).unwrap();
    std::fs::create_dir_all(at("a b")).unwrap();
    std::fs::create_dir_all(at("c")).unwrap();
    std::os::unix::fs::symlink(at("c"), at("a/link")).unwrap();
    let folders = ["a", "a/b", "a/link", "a b", "gone"].map(at);
    let real = root.path().canonicalize().unwrap();
    assert_eq!(
        trees(&folders),
        ["a", "a b", "c"].map(|name| real.join(name))
    );
}
