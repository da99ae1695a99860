use super::{state as state_of, *};
use std::os::unix::fs::PermissionsExt;
use tierbar_core::config::{ContextForm, KvCache};

fn key() -> Key {
    Key {
        model: "m".into(),
        template: "t".into(),
        kv_cache: KvCache::F16,
        engine: "e".into(),
    }
}

/// A state of three tokens, as llama.cpp begins one.
fn state() -> Vec<u8> {
    let words: [u32; 6] = [0x6767_7371, 2, 3, 7, 8, 9];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend([0xab; 5000]);
    bytes
}

fn save(contexts: &Contexts, name: &str) -> ContextDescription {
    let draft = contexts.draft(name).unwrap();
    fs::write(draft.path(), state()).unwrap();
    let written = state().len() as u64;
    draft
        .seal(ModelId("small".into()), 3, key(), written)
        .unwrap()
}

fn folder() -> (tempfile::TempDir, Contexts) {
    let home = tempfile::tempdir().unwrap();
    let contexts = Contexts::new(home.path().join("contexts"));
    (home, contexts)
}

#[test]
fn a_saved_context_is_listed_read_and_removed() {
    let (_home, contexts) = folder();
    assert_eq!(contexts.list().unwrap(), []);
    let name = "Übersicht / notes: 2 🦙";
    let saved = save(&contexts, name);
    assert_eq!(contexts.list().unwrap(), std::slice::from_ref(&saved));
    assert_eq!(contexts.get(name).unwrap(), saved);
    assert_eq!(contexts.tokens(name).unwrap(), [7, 8, 9]);
    contexts.check(name).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&contexts.path(name)), 0o600);
    assert_eq!(mode(contexts.folder()), 0o700);
    contexts.remove(name).unwrap();
    let error = contexts.remove(name).unwrap_err();
    assert_eq!(error.code, Code::ContextUnknown);
    assert_eq!(contexts.list().unwrap(), []);
}

#[test]
fn an_unknown_name_gets_the_existing_names() {
    let (_home, contexts) = folder();
    save(&contexts, "one");
    let error = contexts.get("two").unwrap_err();
    assert_eq!(error.code, Code::ContextUnknown);
    assert_eq!(error.hint.unwrap(), "saved contexts: one");
}

#[test]
fn saving_replaces_and_dropped_drafts_vanish() {
    let (_home, contexts) = folder();
    save(&contexts, "one");
    let before = fs::read(contexts.path("one")).unwrap();
    let draft = contexts.draft("one").unwrap();
    fs::write(draft.path(), b"half").unwrap();
    let short = draft.seal(ModelId("small".into()), 3, key(), 5024);
    assert_eq!(short.unwrap_err().code, Code::Storage);
    assert_eq!(fs::read(contexts.path("one")).unwrap(), before);
    save(&contexts, "one");
    assert_eq!(fs::read_dir(contexts.folder()).unwrap().count(), 1);
}

#[test]
fn any_damage_is_detected() {
    let (_home, contexts) = folder();
    save(&contexts, "one");
    let path = contexts.path("one");
    let whole = fs::read(&path).unwrap();
    for at in (0..whole.len())
        .step_by(97)
        .chain(whole.len() - 60..whole.len())
    {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        assert_eq!(
            contexts.check("one").unwrap_err().code,
            Code::Corrupt,
            "{at}"
        );
    }
    for length in [0, 1, 15, 16, 100, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        assert_eq!(
            contexts.check("one").unwrap_err().code,
            Code::Corrupt,
            "{length}"
        );
        assert_eq!(contexts.get("one").unwrap_err().code, Code::Corrupt);
        assert_eq!(contexts.list().unwrap(), []);
    }
}

#[test]
fn a_context_is_replaced_only_on_request() {
    let (_home, contexts) = folder();
    let seal = |draft: Draft| {
        fs::write(draft.path(), state()).unwrap();
        draft.seal(ModelId("small".into()), 3, key(), state().len() as u64)
    };
    let begun = contexts.draft("one").unwrap().without_replacing().unwrap();
    // Another one is faster.
    let first = save(&contexts, "one");
    assert_eq!(seal(begun).unwrap_err().code, Code::Conflict);
    let late = contexts.draft("one").unwrap().without_replacing();
    let refused = late.unwrap_err();
    assert_eq!(refused.code, Code::Conflict);
    assert!(refused.hint.unwrap().contains("--replace"));
    assert_eq!(contexts.list().unwrap(), [first]);
    contexts.check("one").unwrap();
    // Nor is one that cannot be read.
    fs::write(contexts.path("one"), "damaged").unwrap();
    let late = contexts.draft("one").unwrap().without_replacing();
    assert_eq!(late.unwrap_err().code, Code::Conflict);
    seal(contexts.draft("one").unwrap()).unwrap();
    assert_eq!(fs::read_dir(contexts.folder()).unwrap().count(), 1);
}

#[test]
fn drafts_of_a_killed_process_are_removed() {
    let (_home, contexts) = folder();
    save(&contexts, "one");
    std::mem::forget(contexts.draft("two").unwrap());
    contexts.sweep();
    assert_eq!(fs::read_dir(contexts.folder()).unwrap().count(), 1);
    contexts.get("one").unwrap();
}

#[test]
fn empty_and_control_names_are_refused() {
    let (_home, contexts) = folder();
    for name in ["", "  ", "a\nb", &"x".repeat(201)] {
        assert_eq!(contexts.draft(name).unwrap_err().code, Code::BadRequest);
    }
}

#[test]
fn a_context_beyond_the_free_space_is_refused() {
    let (home, _) = folder();
    let draft = Contexts::new(home.path().to_owned()).draft("one").unwrap();
    draft.check_room(1).unwrap();
    let error = draft.check_room(1 << 60).unwrap_err();
    assert_eq!(error.code, Code::Storage);
    // It is there twice while it is compressed.
    assert_eq!(error.details["needed_bytes"], 1_u64 << 61);
}

#[test]
fn a_state_is_kept_compressed_and_comes_back() {
    let (_home, contexts) = folder();
    let saved = save(&contexts, "one");
    assert_eq!(saved.raw_bytes(), state().len() as u64);
    assert!(saved.bytes < saved.raw_bytes());
    let unpacked = crate::state(&contexts.path("one")).unwrap();
    assert!(fs::read(&unpacked).unwrap() == state());
    drop(unpacked);
    assert_eq!(fs::read_dir(contexts.folder()).unwrap().count(), 1);
}

/// As all contexts were written once.
#[test]
fn a_context_of_version_1_is_still_read() {
    let (_home, contexts) = folder();
    let other = contexts.draft("one").unwrap();
    let plain = Draft::new(contexts.folder(), "one", contexts.path("one"), false).unwrap();
    drop(other);
    fs::write(plain.path(), state()).unwrap();
    let written = state().len() as u64;
    let saved = plain
        .seal(ModelId("small".into()), 3, key(), written)
        .unwrap();
    assert_eq!(contexts.list().unwrap(), std::slice::from_ref(&saved));
    assert_eq!((saved.packed, saved.raw_bytes()), (None, saved.bytes));
    contexts.check("one").unwrap();
    assert_eq!(contexts.tokens("one").unwrap(), [7, 8, 9]);
    let path = contexts.path("one");
    assert_eq!(crate::state(&path).unwrap().as_ref(), path);
}

fn save_compact(contexts: &Contexts, name: &str, state: &[u8]) -> ContextDescription {
    let draft = contexts.draft(name).unwrap().in_form(ContextForm::Compact);
    fs::write(draft.path(), state).unwrap();
    let written = state.len() as u64;
    draft
        .seal(ModelId("small".into()), 3, key(), written)
        .unwrap()
}

#[test]
fn a_compact_context_is_read_like_any_other() {
    let (_home, contexts) = folder();
    let state = crate::compact::tests::state(1, false);
    let saved = save_compact(&contexts, "one", &state);
    assert_eq!(saved.form(), ContextForm::Compact);
    assert_eq!(saved.raw_bytes(), state.len() as u64);
    assert!(saved.bytes * 2 < saved.raw_bytes(), "{saved:?}");
    assert_eq!(contexts.list().unwrap(), std::slice::from_ref(&saved));
    contexts.check("one").unwrap();
    assert_eq!(contexts.tokens("one").unwrap(), [7, 8, 9]);
    let path = contexts.path("one");
    let unpacked = fs::read(crate::state(&path).unwrap()).unwrap();
    assert_eq!(unpacked.len(), state.len());
    // Programs that know no compact form know no such file.
    assert!(fs::read(&path).unwrap().ends_with(b"TIERCTX3"));
}

#[test]
fn a_state_of_unknown_form_is_saved_exactly() {
    let (_home, contexts) = folder();
    let saved = save_compact(&contexts, "one", &state());
    assert_eq!(saved.form(), ContextForm::Exact);
    let unpacked = crate::state(&contexts.path("one")).unwrap();
    assert!(fs::read(&unpacked).unwrap() == state());
    assert!(
        fs::read(contexts.path("one"))
            .unwrap()
            .ends_with(b"TIERCTX2")
    );
}

#[test]
fn a_context_of_a_later_version_is_refused_as_such() {
    let (_home, contexts) = folder();
    save(&contexts, "one");
    let path = contexts.path("one");
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() = b'4';
    fs::write(&path, bytes).unwrap();
    for error in [
        contexts.get("one").unwrap_err(),
        contexts.check("one").unwrap_err(),
    ] {
        assert_eq!(error.code, Code::ContextMismatch);
        assert!(error.message.contains("newer version"), "{error}");
    }
    assert_eq!(contexts.list().unwrap(), []);
}

#[test]
fn a_context_from_elsewhere_is_adopted_only_if_whole() {
    let (_home, contexts) = folder();
    let (_other_home, other) = folder();
    let saved = save(&other, "one");
    let bytes = fs::read(other.path("one")).unwrap();
    let adopt = |name: &str, bytes: &[u8]| {
        let file = contexts.temporary(bytes.len() as u64).unwrap();
        fs::write(&file, bytes).unwrap();
        contexts.adopt(name, file)
    };
    let mut damaged = bytes.clone();
    damaged[20] ^= 1;
    for (name, bytes) in [
        ("one", &damaged[..]),
        ("one", &bytes[1..]),
        ("two", &bytes),
        ("one", b""),
    ] {
        assert_eq!(adopt(name, bytes).unwrap_err().code, Code::Corrupt);
        assert_eq!(fs::read_dir(contexts.folder()).unwrap().count(), 0);
    }
    assert_eq!(adopt("one", &bytes).unwrap(), saved);
    assert_eq!(contexts.list().unwrap(), [saved]);
}

#[test]
fn a_context_travels_encrypted() {
    let ((_home, here), (_other_home, there)) = (folder(), folder());
    let saved = save(&here, "one");
    let key = StoreKey::derive(&"correct horse".to_owned().into(), [1; 16]).unwrap();
    let (described, sealed) = here.seal("one", &key).unwrap();
    assert_eq!(described, saved);
    let bytes = fs::read(&sealed).unwrap();
    assert_eq!(key.open(&*bytes).unwrap().saved(), &saved);
    assert_eq!(there.unseal(&sealed, &saved, &key).unwrap(), saved);
    assert_eq!(
        fs::read(there.path("one")).unwrap(),
        fs::read(here.path("one")).unwrap()
    );
    // What was announced as something else, or is damaged, changes nothing.
    there.remove("one").unwrap();
    let other = ContextDescription {
        tokens: 4,
        ..saved.clone()
    };
    assert_eq!(
        there.unseal(&sealed, &other, &key).unwrap_err().code,
        Code::Corrupt
    );
    fs::write(&sealed, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(
        there.unseal(&sealed, &saved, &key).unwrap_err().code,
        Code::Corrupt
    );
    assert_eq!(fs::read_dir(there.folder()).unwrap().count(), 0);
    drop(sealed);
    assert_eq!(fs::read_dir(here.folder()).unwrap().count(), 1);
}

#[test]
fn a_key_names_the_difference() {
    assert_eq!(key().difference(&key()), None);
    let other = |change: fn(&mut Key)| {
        let mut other = key();
        change(&mut other);
        key().difference(&other)
    };
    let change = |key: &mut Key| key.model = "x".into();
    assert_eq!(other(change), Some(Difference::Model));
    assert_eq!(
        other(|key| key.template.clear()),
        Some(Difference::Template)
    );
    let change = |key: &mut Key| key.kv_cache = KvCache::Q4_0;
    assert_eq!(other(change), Some(Difference::KvCache));
    assert_eq!(other(|key| key.engine.clear()), Some(Difference::Engine));
}

#[test]
fn fingerprints_differ_by_length_and_tensors() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("model");
    let print = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        fingerprint([path.as_path()]).unwrap()
    };
    let mut bytes = vec![1; 10 << 20];
    let first = print(&bytes);
    assert_eq!(print(&bytes), first);
    bytes[5 << 20..6 << 20].fill(2);
    assert_ne!(print(&bytes), first);
    bytes[5 << 20..6 << 20].fill(1);
    bytes.push(1);
    assert_ne!(print(&bytes), first);
    assert_ne!(print(&[]), print(&[1]));
}

#[test]
fn a_file_that_cannot_be_read_is_not_called_damaged() {
    let (home, contexts) = folder();
    // It opens, and no byte of it can be read.
    let unreadable = home.path();
    assert_eq!(verify(unreadable).unwrap_err().code, Code::Storage);
    assert_eq!(state_of(unreadable).unwrap_err().code, Code::Storage);
    save(&contexts, "one");
    let path = contexts.path("one");
    verify(&path).unwrap();
    fs::write(&path, b"half").unwrap();
    assert_eq!(verify(&path).unwrap_err().code, Code::Corrupt);
    assert_eq!(state_of(&path).unwrap_err().code, Code::Corrupt);
}
