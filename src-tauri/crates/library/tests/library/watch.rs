//! The list of models follows the folders by the real system's notifications.

use std::{fs, os::unix::fs::symlink, path::Path, sync::Arc, time::Duration};
use tierbar_library::{Library, LibraryOptions, LibraryWatch, Pace, Scan};
use tokio::time::timeout;

const HANG: Duration = Duration::from_secs(120);

/// Looks for places that come and go often, and never polls.
const PACE: Pace = Pace {
    settling: Duration::from_millis(50),
    longest: Duration::from_millis(500),
    look: Duration::from_millis(20),
    poll: Duration::from_secs(3600),
};

/// Never scans by itself, so every change comes from the system's notifications.
const TOLD: Pace = Pace {
    look: Duration::from_secs(3600),
    ..PACE
};

fn watch(models_dir: &Path, folders: &[&Path], pace: Pace) -> LibraryWatch {
    let options = LibraryOptions {
        models_dir: models_dir.to_owned(),
        folders: folders.iter().map(|path| path.to_path_buf()).collect(),
        ..LibraryOptions::default()
    };
    LibraryWatch::start(Arc::new(Library::new(options)), pace)
}

async fn until(watch: &LibraryWatch, what: impl Fn(&Scan) -> bool) -> Arc<Scan> {
    let mut snapshot = watch.snapshot();
    let seen = snapshot.wait_for(|scan| scan.as_deref().is_some_and(&what));
    timeout(HANG, seen)
        .await
        .unwrap_or_else(|_| panic!("still {:?}", watch.snapshot().borrow()))
        .unwrap()
        .clone()
        .unwrap()
}

fn ids(scan: &Scan) -> Vec<&str> {
    scan.entries.iter().map(|entry| entry.id.as_str()).collect()
}

async fn until_ids(watch: &LibraryWatch, wanted: &[&str]) -> Arc<Scan> {
    until(watch, |scan| ids(scan) == wanted).await
}

#[tokio::test]
async fn models_appear_change_and_vanish() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let watch = watch(folder.path(), &[], TOLD);
    assert_eq!(ids(watch.latest().await.as_ref()), Vec::<&str>::new());
    fs::write(at("a.gguf"), "x").unwrap();
    until_ids(&watch, &["a"]).await;
    fs::write(at("a.gguf"), "longer").unwrap();
    until(&watch, |scan| scan.entries[0].size_bytes == 6).await;
    fs::write(at("b.gguf.part"), "x").unwrap();
    fs::rename(at("b.gguf.part"), at("b.gguf")).unwrap();
    until_ids(&watch, &["a", "b"]).await;
    fs::remove_file(at("a.gguf")).unwrap();
    until_ids(&watch, &["b"]).await;
}

#[tokio::test]
async fn recreated_folders_are_watched() {
    let folder = tempfile::tempdir().unwrap();
    let sub = folder.path().join("sub");
    let watch = watch(folder.path(), &[], TOLD);
    watch.latest().await;
    for round in ["a", "b", "c"] {
        fs::create_dir(&sub).unwrap();
        let one = format!("{round}1");
        fs::write(sub.join(format!("{one}.gguf")), "").unwrap();
        until_ids(&watch, &[&one]).await;
        let two = format!("{round}2");
        fs::write(sub.join(format!("{two}.gguf")), "").unwrap();
        until_ids(&watch, &[&one, &two]).await;
        // Another folder of the same name, before the next look.
        fs::remove_dir_all(&sub).unwrap();
        fs::create_dir(&sub).unwrap();
        fs::write(sub.join("x.gguf"), "").unwrap();
        until_ids(&watch, &["x"]).await;
        fs::write(sub.join("y.gguf"), "").unwrap();
        until_ids(&watch, &["x", "y"]).await;
        fs::remove_dir_all(&sub).unwrap();
        until_ids(&watch, &[]).await;
    }
}

#[tokio::test]
async fn models_follow_their_volume() {
    let own = tempfile::tempdir().unwrap();
    fs::write(own.path().join("own.gguf"), "").unwrap();
    let mount = tempfile::tempdir().unwrap();
    let (disk, away) = (mount.path().join("disk"), mount.path().join("away"));
    let watch = watch(own.path(), &[&disk], PACE);
    let first = until_ids(&watch, &["own"]).await;
    assert_eq!(first.notices.len(), 1);
    fs::create_dir(&away).unwrap();
    fs::write(away.join("big.gguf"), "").unwrap();
    for _ in 0..2 {
        fs::rename(&away, &disk).unwrap();
        let there = until_ids(&watch, &["big", "own"]).await;
        assert_eq!(there.notices, Vec::<String>::new());
        // It is watched again, not only listed.
        fs::write(disk.join("new.gguf"), "").unwrap();
        until_ids(&watch, &["big", "new", "own"]).await;
        fs::remove_file(disk.join("new.gguf")).unwrap();
        until_ids(&watch, &["big", "own"]).await;
        fs::rename(&disk, &away).unwrap();
        let gone = until_ids(&watch, &["own"]).await;
        assert_eq!(gone.notices.len(), 1);
    }
}

#[tokio::test]
async fn link_targets_may_appear_change_and_vanish() {
    let own = tempfile::tempdir().unwrap();
    let disk = tempfile::tempdir().unwrap();
    let (file, folder) = (disk.path().join("real"), disk.path().join("more"));
    symlink(&file, own.path().join("link.gguf")).unwrap();
    symlink(&folder, own.path().join("linked")).unwrap();
    let watch = watch(own.path(), &[], PACE);
    until_ids(&watch, &[]).await;
    fs::write(&file, "four").unwrap();
    until_ids(&watch, &["link"]).await;
    fs::write(&file, "longer").unwrap();
    until(&watch, |scan| scan.entries[0].size_bytes == 6).await;
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("more.gguf"), "").unwrap();
    until_ids(&watch, &["link", "more"]).await;
    fs::remove_dir_all(&folder).unwrap();
    fs::remove_file(&file).unwrap();
    until_ids(&watch, &[]).await;
}

#[tokio::test]
async fn a_models_folder_created_later_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let models = folder.path().join("models");
    let watch = watch(&models, &[], PACE);
    assert!(watch.latest().await.models_dir_error.is_some());
    fs::create_dir(&models).unwrap();
    until(&watch, |scan| scan.models_dir_error.is_none()).await;
    fs::write(models.join("a.gguf"), "").unwrap();
    until_ids(&watch, &["a"]).await;
}

#[tokio::test]
async fn a_burst_of_files_causes_few_scans() {
    let folder = tempfile::tempdir().unwrap();
    let watch = watch(folder.path(), &[], TOLD);
    watch.latest().await;
    let path = folder.path().to_owned();
    let work = tokio::task::spawn_blocking(move || {
        for number in 0..10_000 {
            fs::write(path.join(format!("{number}.gguf")), "x").unwrap();
        }
    });
    work.await.unwrap();
    until(&watch, |scan| scan.entries.len() == 10_000).await;
    assert!(watch.scans() < 100, "{} scans", watch.scans());
}

#[tokio::test]
async fn changed_options_update_the_list() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(one.path().join("one.gguf"), "").unwrap();
    fs::write(two.path().join("two.gguf"), "").unwrap();
    let watch = watch(one.path(), &[], TOLD);
    until_ids(&watch, &["one"]).await;
    watch.follow(Arc::new(watch.library().with(two.path().to_owned())));
    until_ids(&watch, &["two"]).await;
    fs::write(two.path().join("three.gguf"), "").unwrap();
    until_ids(&watch, &["three", "two"]).await;
    assert_eq!(watch.library().models_dir(), two.path());
}

#[tokio::test]
async fn a_scan_can_be_requested() {
    let folder = tempfile::tempdir().unwrap();
    let watch = watch(folder.path(), &[], TOLD);
    watch.latest().await;
    let before = watch.scans();
    watch.look();
    let scanned = async {
        while watch.scans() == before {
            tokio::task::yield_now().await;
        }
    };
    timeout(HANG, scanned).await.unwrap();
}
