//! The models folder as its users see it.

use std::{
    env, fs,
    fs::File,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};
use tierbar_core::Code;
use tierbar_library::Library;

const SMOLLM2: &str = "SmolLM2-135M-Instruct.Q4_1";

fn real_models() -> PathBuf {
    let folder = env::var_os("TIERBAR_TEST_MODELS")
        .map(PathBuf::from)
        .or_else(|| Some(env::home_dir()?.join(".cache/tierbar/models")))
        .unwrap();
    assert!(
        folder.join(format!("{SMOLLM2}.gguf")).is_file(),
        "{SMOLLM2}.gguf is not in {}: run `make setup`, or set TIERBAR_TEST_MODELS to a folder that has it",
        folder.display()
    );
    folder
}

/// Writes a file that is no model and was last changed that many seconds ago; its error shows its first 4 bytes.
fn write(path: &Path, text: &str, seconds_ago: u64) {
    fs::write(path, text).unwrap();
    // Whole seconds: not every file system keeps more.
    let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 - seconds_ago);
    File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(changed)
        .unwrap();
}

fn errors(library: &Library) -> Vec<String> {
    let entries = library.list().unwrap();
    entries
        .into_iter()
        .map(|entry| entry.account.unwrap_err().message)
        .collect()
}

#[test]
fn a_real_model_is_listed_with_its_account_and_found_by_its_id() {
    let folder = real_models();
    let library = Library::new(folder.clone());
    let entries = library.list().unwrap();
    let entry = entries
        .iter()
        .find(|entry| entry.id.as_str() == SMOLLM2)
        .unwrap();
    assert_eq!(entry.path, folder.join(format!("{SMOLLM2}.gguf")));
    let account = entry.account.as_ref().unwrap();
    assert_eq!((account.layers, account.file_bytes), (30, entry.size_bytes));
    assert_eq!(library.resolve(SMOLLM2).unwrap(), entry.path);
    assert_eq!(library.account(&entry.path).as_ref(), Ok(account));
}

#[test]
fn an_invalid_file_is_listed_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("b.gguf"), "WORD", 0);
    write(&folder.path().join("a.gguf"), "", 0);
    let entries = Library::new(folder.path().to_owned()).list().unwrap();
    let ids: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(entries[1].size_bytes, 4);
    let error = entries[1].account.as_ref().unwrap_err();
    assert_eq!(error.code, Code::ModelInvalid);
    assert!(error.message.contains("begins with \"WORD\""), "{error}");
}

#[test]
fn a_header_is_read_again_only_when_the_file_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gguf");
    let library = Library::new(folder.path().to_owned());
    let shows = |word: &str| {
        let errors = errors(&library);
        assert!(errors[0].contains(word), "{errors:?}");
    };
    write(&path, "OLD1", 60);
    shows("OLD1");
    // The same size and time: taken for the same file.
    write(&path, "SAME", 60);
    shows("OLD1");
    write(&path, "NEW2", 30);
    shows("NEW2");
    write(&path, "LONGER", 30);
    shows("LONG");
    // Another file in its place, of the same size and time.
    let other = folder.path().join("other");
    write(&other, "OTHERS", 30);
    fs::rename(&other, &path).unwrap();
    shows("OTHE");
}

#[test]
fn a_removed_model_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gguf");
    let library = Library::new(folder.path().to_owned());
    write(&path, "OLD1", 60);
    assert_eq!(errors(&library).len(), 1);
    fs::remove_file(&path).unwrap();
    assert_eq!(library.list().unwrap(), []);
    let error = library.account(&path).unwrap_err();
    assert_eq!(error.code, Code::ModelMissing);
    // Listing the empty folder dropped what was remembered.
    write(&path, "SAME", 60);
    assert!(errors(&library)[0].contains("SAME"));
}

#[test]
fn only_a_missing_folder_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(Library::new(folder.path().to_owned()).list().unwrap(), []);
    let missing = folder.path().join("missing");
    let error = Library::new(missing.clone()).list().unwrap_err();
    assert_eq!(error.code, Code::Storage);
    assert!(error.message.contains(missing.to_str().unwrap()), "{error}");
    assert_eq!(
        Library::new(missing).resolve("a").unwrap_err().code,
        Code::Storage
    );
}
