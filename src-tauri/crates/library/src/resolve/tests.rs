use super::*;
use crate::{LibraryOptions, inventory};
use tierbar_core::Code;

fn folder(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    folder
}

fn resolve(folder: &Path, spec: &str) -> Result<PathBuf, Error> {
    let options = LibraryOptions::from(folder.to_owned());
    super::resolve(folder, spec, || inventory::take(&options))
}

#[test]
fn a_model_is_found_by_id_file_name_and_path() {
    let folder = folder(&["a.Q4_1.gguf", "sub/b.gguf"]);
    let at = |file: &str| folder.path().join(file);
    for (spec, file) in [
        ("a.Q4_1", "a.Q4_1.gguf"),
        (" a.Q4_1.gguf\n", "a.Q4_1.gguf"),
        ("b", "sub/b.gguf"),
        ("b.gguf", "sub/b.gguf"),
        ("sub/b", "sub/b.gguf"),
        ("sub/b.gguf", "sub/b.gguf"),
    ] {
        assert_eq!(resolve(folder.path(), spec), Ok(at(file)), "{spec:?}");
    }
    let absolute = at("sub/b.gguf");
    assert_eq!(
        resolve(Path::new("/elsewhere"), absolute.to_str().unwrap()),
        Ok(absolute)
    );
}

#[test]
fn a_split_model_resolves_by_prefix_or_part_to_its_first() {
    let folder = folder(&["s/m-00001-of-00002.gguf", "s/m-00002-of-00002.gguf"]);
    let first = folder.path().join("s/m-00001-of-00002.gguf");
    let second = folder.path().join("s/m-00002-of-00002.gguf");
    for spec in ["m", "s/m-00002-of-00002", second.to_str().unwrap()] {
        assert_eq!(resolve(folder.path(), spec), Ok(first.clone()), "{spec}");
    }
}

#[test]
fn of_two_models_with_one_id_the_first_folder_wins() {
    let folder = folder(&["a/m.gguf", "m.gguf", "z/m.gguf", "a/n.gguf", "z/n.gguf"]);
    let at = |file: &str| Ok(folder.path().join(file));
    assert_eq!(resolve(folder.path(), "m"), at("m.gguf"));
    assert_eq!(resolve(folder.path(), "n"), at("a/n.gguf"));
    assert_eq!(resolve(folder.path(), "n@z"), at("z/n.gguf"));
}

#[test]
fn a_tilde_is_the_home_folder() {
    let home = std::env::home_dir().unwrap();
    assert_eq!(
        absolute("~/models/a.gguf"),
        Some(home.join("models/a.gguf"))
    );
    assert_eq!(absolute("~"), Some(home));
    assert_eq!(absolute("~someone/a.gguf"), None);
    assert_eq!(absolute("a~b"), None);
}

#[test]
fn a_misspelled_name_gets_the_nearest_names() {
    let models = folder(&[
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "gemma-3-270m-q4_k_m.gguf",
        "zephyr.gguf",
    ]);
    let error = resolve(models.path(), "smollm2-135M-instruct").unwrap_err();
    assert_eq!(error.code, Code::ModelMissing);
    let named = models.path().to_str().unwrap();
    assert!(error.message.contains(named), "{error}");
    assert_eq!(
        error.hint.unwrap(),
        "the library has SmolLM2-135M-Instruct.Q4_1"
    );
    let hint = |spec| resolve(models.path(), spec).unwrap_err().hint.unwrap();
    assert_eq!(
        hint("llama-70b"),
        "the library has SmolLM2-135M-Instruct.Q4_1, gemma-3-270m-q4_k_m, zephyr"
    );
    let error = resolve(folder(&[]).path(), "llama").unwrap_err();
    assert!(error.hint.unwrap().starts_with("the folder has no models"));
}

#[test]
fn names_that_leave_the_folder_are_refused() {
    let outer = folder(&["secret.gguf", "models/a.gguf"]);
    let models = outer.path().join("models");
    for spec in [
        "../secret.gguf",
        "../secret",
        "a/../../secret.gguf",
        "./../secret.gguf",
        "..",
        ".",
    ] {
        assert_eq!(
            resolve(&models, spec).unwrap_err().code,
            Code::ModelMissing,
            "{spec}"
        );
    }
}

#[test]
fn a_path_that_is_not_a_file_has_its_own_error() {
    let folder = folder(&["a.gguf"]);
    let message_of = |path: &Path| {
        let error = resolve(Path::new("/m"), path.to_str().unwrap()).unwrap_err();
        error.message
    };
    assert!(message_of(folder.path()).ends_with("is a folder, not a model"));
    assert!(message_of(&folder.path().join("b.gguf")).contains("cannot be found"));
    assert!(message_of(Path::new("/dev/null")).ends_with("is not a file"));
    assert!(message_of(Path::new("  ")).contains("no model is chosen"));
}
