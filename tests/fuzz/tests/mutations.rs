//! Tests of the fuzzer's own parts.
#![allow(clippy::unwrap_used, reason = "a test fails by its panic")]

use std::{env, fs::File, io::Read, path::PathBuf};
use tierbar_fuzz::{header, layout::Layout, mutation::mutate, parts};

/// The starter model's header, with 64 tokens.
fn shortened() -> Vec<u8> {
    let folder = env::var_os("TIERBAR_TEST_MODELS")
        .map(PathBuf::from)
        .or_else(|| Some(env::home_dir()?.join(".cache/tierbar/models")));
    let path = folder.unwrap().join("SmolLM2-135M-Instruct.Q4_1.gguf");
    let mut bytes = Vec::new();
    let file = File::open(&path)
        .unwrap_or_else(|_| panic!("{} is missing: run `make setup`", path.display()));
    file.take(4 << 20).read_to_end(&mut bytes).unwrap();
    let mut layout = Layout::read(&bytes).unwrap();
    layout.rest.truncate(32);
    layout.shortened(64).write()
}

#[test]
fn a_shortened_header_is_still_a_model() {
    let bytes = shortened();
    assert!(bytes.len() < 32 << 10, "{}", bytes.len());
    let account = tierbar_gguf::read_from(&bytes[..], 1 << 30, "m").unwrap();
    assert_eq!((account.layers, account.vocabulary), (30, 64));
}

/// What a fuzzer has found once, as files of their own: `seeds` beside this folder.
#[test]
fn former_crashes_stay_fixed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/seeds");
    let mut read = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        header(&std::fs::read(entry.unwrap().path()).unwrap());
        read += 1;
    }
    assert!(read > 0);
}

#[test]
fn mutated_headers_keep_their_form_and_find_nothing() {
    let sound = shortened();
    let mut noise = |bytes: &mut Vec<u8>| bytes.iter_mut().for_each(|byte| *byte ^= 0x20);
    let (mut read, mut accepted) = (0, 0);
    for seed in 0..200 {
        let mutated = mutate(&sound, seed, &mut noise).unwrap();
        read += u32::from(Layout::read(&mutated).is_some());
        let account = tierbar_gguf::read_from(&mutated[..], 1 << 30, "m");
        accepted += u32::from(account.is_ok());
        header(&mutated);
        if seed % 20 == 0 {
            let at = u16::try_from(mutated.len()).unwrap();
            parts(&[&at.to_le_bytes()[..], &mutated, &sound].concat());
        }
    }
    // Most reach the checks after parsing, and some the planning after those.
    assert!(read > 100, "{read}");
    assert!((10..190).contains(&accepted), "{accepted}");
}
