//! The code that runs on files of unknown origin, for a fuzzer: the GGUF reader and, for what it accepts, all planning; the readers of
//! documents.
//!
//! A finding is a panic (arithmetic overflows are ones here), an allocation or a time beyond the limits that `run` beside
//! this gives, an account that claims more than the file, or a document with more text than it may have.
#![expect(clippy::unwrap_used, reason = "a finding ends the run")]

pub mod layout;
pub mod mutation;

use std::{cell::OnceCell, fs::File, io::Write, path::Path};
use tempfile::TempDir;
use tierbar_core::{
    Error, ModelAccount,
    budget::{CompanionModels, GIB, MICRO_BATCH, plan_load},
    config::KvCache,
    fit::{Machine, Offer, verdict_with},
};
use tierbar_documents::{LONGEST_TEXT, Part, Refusal};

/// The size of the data that a file claims to have after its header; there is none, which the reader does not notice.
const DATA_BYTES: u64 = 1 << 36;

/// Reads one file, complete and with nothing after these bytes.
pub fn header(bytes: &[u8]) {
    let length = bytes.len() as u64;
    for total in [length, length + DATA_BYTES] {
        account(tierbar_gguf::read_from(bytes, total, "fuzzed.gguf"), total);
        if let Ok(projector) = checked(tierbar_gguf::projector_from(bytes, total, "fuzzed.gguf")) {
            assert!(projector.bytes <= total);
        }
    }
    let _ = tierbar_gguf::split_of(&String::from_utf8_lossy(bytes));
}

/// The hole at the end of each file, which reads as zeros.
const HOLE_BYTES: u64 = 1 << 20;

/// Reads two parts of a model in two files: the first two bytes give the start of the second header.
pub fn parts(bytes: &[u8]) {
    thread_local! {
        static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
    }
    let Some((at, headers)) = bytes.split_first_chunk() else {
        return;
    };
    let at = usize::from(u16::from_le_bytes(*at)).min(headers.len());
    let (first, second) = headers.split_at(at);
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(|| tempfile::tempdir().unwrap()).path();
        let mut total = 0;
        let paths = [first, second].map(|header| {
            let number = if total == 0 { 1 } else { 2 };
            let path = folder.join(format!("fuzzed-{number:05}-of-00002.gguf"));
            let mut file = File::create(&path).unwrap();
            file.write_all(header).unwrap();
            let length = header.len() as u64 + HOLE_BYTES;
            file.set_len(length).unwrap();
            total += length;
            path
        });
        account(tierbar_gguf::read(&paths[0]), total);
    });
}

/// Reads one document, of the kind that its bytes or this name say.
pub fn document(name: &Path, bytes: &[u8]) {
    let mut text = 0;
    let outcome = tierbar_documents::read(bytes, name, true, &mut |part| {
        if let Part::Block(block) = part {
            text += block.text.len();
        }
    });
    assert!(text <= LONGEST_TEXT, "{text}");
    if let Err(Refusal(sentence)) = outcome {
        assert!(sentence.ends_with('.'), "{sentence}");
    }
}

/// Checks that every error has a message and a hint.
fn checked<T>(read: Result<T, Error>) -> Result<T, Error> {
    if let Err(error) = &read {
        assert!(
            !error.message.is_empty() && error.hint.is_some(),
            "{error:?}"
        );
        assert!(error.message.len() < 200_000, "{}", error.message.len());
    }
    read
}

fn account(read: Result<ModelAccount, Error>, total: u64) {
    let Ok(account) = checked(read) else {
        return;
    };
    let classes = [
        account.dense_bytes,
        account.embedding_bytes,
        account.per_layer_embedding_bytes,
        account.expert_bytes,
    ];
    let sum: u128 = classes.into_iter().map(u128::from).sum();
    assert!(sum <= total.into(), "{account:?}");
    assert!(
        account.layers > 0 && account.vocabulary > 0 && account.embedding > 0,
        "{account:?}"
    );
    let others = [1, total, u64::MAX].map(|size_bytes| Offer {
        quant: account.quant.clone(),
        reference: String::new(),
        size_bytes,
    });
    for kv in [KvCache::F16, KvCache::Q8_0, KvCache::Q4_0] {
        for context in [1, 4096, account.context_train, u32::MAX] {
            for machine in [
                Machine::mac(8 * GIB),
                Machine::mac(16 * GIB),
                Machine::new(u64::MAX, None),
            ] {
                let verdict = verdict_with(
                    &account,
                    CompanionModels::default(),
                    (context, kv),
                    &machine,
                    &others,
                );
                let planned = plan_load(&account, context, kv, MICRO_BATCH, &machine.budget());
                assert_eq!(planned.is_ok(), verdict.total_bytes <= verdict.budget_bytes);
            }
        }
    }
    let json = serde_json::to_string(&account).unwrap();
    assert_eq!(
        serde_json::from_str::<ModelAccount>(&json).unwrap(),
        account
    );
}
