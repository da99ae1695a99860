use super::*;
use std::{fs::File, time::Duration};

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn origin() -> Origin {
    Origin {
        reference: "owner/repo:Q4_K_M".to_owned(),
        url: "https://user:pass@example.com/m.gguf?signature=secret#part"
            .parse()
            .unwrap(),
        sha256: "aa".to_owned(),
    }
}

#[test]
fn a_record_has_the_source_without_secrets() {
    let (folder, path) = file("four");
    record_download(&path, origin()).unwrap();
    let record = read(&path).unwrap();
    assert_eq!(record.reference.as_deref(), Some("owner/repo:Q4_K_M"));
    assert_eq!(record.url.as_deref(), Some("https://example.com/m.gguf"));
    assert_eq!(record.size, 4);
    assert_eq!(record.last_sha256(), Some("aa"));
    assert!(record.fetched.is_some());
    let names: Vec<_> = fs::read_dir(folder.path().join(".tierbar"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["m.gguf.json"]);
}

/// The record that is shown of the file as it is now.
fn shown(path: &Path) -> Option<Record> {
    current_record(path, &stamp(&fs::metadata(path).unwrap()))
}

/// Sets the file's time of change, in seconds from now.
fn set_time(path: &Path, seconds: u64) {
    let time = SystemTime::now() + Duration::from_secs(seconds);
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

#[test]
fn a_record_of_a_replaced_file_is_ignored() {
    let (folder, path) = file("four");
    record_download(&path, origin()).unwrap();
    assert!(shown(&path).is_some() && is_fetched(&path));
    // Another one of the same size, by its time.
    let other = folder.path().join("other");
    fs::write(&other, "five").unwrap();
    set_time(&other, 100);
    fs::rename(&other, &path).unwrap();
    assert_eq!(shown(&path), None);
    assert!(!is_fetched(&path));
    // Once all of it was read, what is known of it is: also that it is not what was fetched.
    record_hash(&path, "bb").unwrap();
    let record = shown(&path).unwrap();
    assert_eq!(
        (record.sha256.as_deref(), record.last_sha256()),
        (Some("aa"), Some("bb"))
    );
    assert!(!is_fetched(&path));
    set_time(&path, 50);
    assert_eq!(shown(&path), None);
    fs::write(&path, "longer").unwrap();
    assert_eq!(shown(&path), None);
}

#[test]
fn an_invalid_record_is_ignored() {
    let (_folder, path) = file("four");
    assert_eq!(read(&path), None);
    let place = record_path(&path).unwrap();
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    for text in [
        "",
        "{",
        "[]",
        "{\"size\": -1}",
        "\0\0\0\0",
        "{\"sha256\": 5}",
    ] {
        fs::write(&place, text).unwrap();
        assert_eq!(read(&path), None, "{text}");
    }
    fs::write(&place, " ".repeat(1 << 20) + "{}").unwrap();
    assert_eq!(read(&path), None);
    fs::remove_file(&place).unwrap();
    fs::create_dir(&place).unwrap();
    assert_eq!(read(&path), None);
}

#[test]
fn the_longest_file_name_can_have_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{}.gguf", "x".repeat(250)));
    fs::write(&path, "four").unwrap();
    record_download(&path, origin()).unwrap();
    assert_eq!(read(&path).unwrap().size, 4);
}

#[test]
fn only_downloaded_files_keep_their_expected_hash() {
    let (_folder, path) = file("four");
    record_hash(&path, "bb").unwrap();
    assert_eq!(expected_sha256(&path).as_deref(), Some("bb"));
    set_time(&path, 100);
    assert_eq!(expected_sha256(&path), None);
    record_hash(&path, "cc").unwrap();
    assert_eq!(expected_sha256(&path).as_deref(), Some("cc"));
    record_download(&path, origin()).unwrap();
    set_time(&path, 200);
    assert_eq!(expected_sha256(&path).as_deref(), Some("aa"));
    record_hash(&path, "dd").unwrap();
    let record = read(&path).unwrap();
    assert_eq!(record.last_sha256(), Some("dd"));
    assert_eq!(record.sha256.as_deref(), Some("aa"));
    assert_eq!(record.reference.as_deref(), Some("owner/repo:Q4_K_M"));
}
