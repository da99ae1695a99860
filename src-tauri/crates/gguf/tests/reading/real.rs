//! The real models that the project tests with.

use std::{
    env,
    fs::File,
    io::{BufReader, Read},
    path::PathBuf,
};
use tierbar_core::{Code, ModelAccount, config::KvCache, model::KvAccount};

fn model(name: &str) -> PathBuf {
    let folder = env::var_os("TIERBAR_TEST_MODELS")
        .map(PathBuf::from)
        .or_else(|| Some(env::home_dir()?.join(".cache/tierbar/models")))
        .unwrap();
    let path = folder.join(name);
    assert!(
        path.is_file(),
        "{} is missing: run `make setup`, or set TIERBAR_TEST_MODELS to a folder that has it",
        path.display()
    );
    path
}

fn tensor_bytes(account: &ModelAccount) -> u64 {
    account.dense_bytes
        + account.embedding_bytes
        + account.per_layer_embedding_bytes
        + account.expert_bytes
}

#[test]
fn smollm2_is_accounted_for_to_the_byte() {
    let path = model("SmolLM2-135M-Instruct.Q4_1.gguf");
    let account = tierbar_gguf::read(&path).unwrap();
    assert_eq!(account.architecture, "llama");
    assert_eq!(account.quant, "Q4_1");
    assert_eq!(account.file_bytes, path.metadata().unwrap().len());
    assert_eq!(
        (account.layers, account.embedding, account.vocabulary),
        (30, 576, 49152)
    );
    assert_eq!(account.context_train, 8192);
    assert_eq!(account.parameters, 134_515_008);
    assert_eq!(account.expert_bytes, 0);
    assert!(account.chat_template);
    assert!(!account.thinking && !account.tools);
    assert_eq!((account.heads, account.kv_heads), (9, 3));
    assert_eq!((account.experts, account.experts_used), (0, 0));
    assert!(account.tied_output);
    assert_eq!(account.parts, 1);
    // 49152 rows of 18 blocks of Q8_0: the converter keeps the output layer's precision.
    assert_eq!(account.embedding_bytes, 49_152 * 18 * 34);
    assert_eq!(account.per_layer_embedding_bytes, 0);
    let header = account.file_bytes - tensor_bytes(&account);
    assert!(
        (1 << 20..4 << 20).contains(&header),
        "{header} bytes are no tensor's"
    );
    // 30 layers of 3 KV heads of 64.
    let kv = KvAccount {
        full_elements_per_token: 11_520,
        sliding_elements_per_cell: 0,
        window: 0,
        state_bytes: 0,
    };
    assert_eq!(account.kv, kv);
    assert_eq!(KvCache::F16.bytes(kv.full_elements_per_token), 23_040);
    assert_eq!(KvCache::Q8_0.bytes(kv.full_elements_per_token), 12_240);
    assert_eq!(KvCache::Q4_0.bytes(kv.full_elements_per_token), 6_480);
}

#[test]
fn gemma_3_270m_is_accounted_for_with_its_windows() {
    let account = tierbar_gguf::read(&model("gemma-3-270m-q4_k_m.gguf")).unwrap();
    assert_eq!(account.architecture, "gemma3");
    assert_eq!(
        (account.layers, account.embedding, account.vocabulary),
        (18, 640, 262_144)
    );
    assert_eq!(account.context_train, 32_768);
    assert_eq!(account.parameters, 268_098_176);
    assert_eq!(account.expert_bytes, 0);
    assert_eq!((account.heads, account.kv_heads), (4, 1));
    assert!(account.tied_output);
    // 262144 rows of 20 blocks of Q8_0.
    assert_eq!(account.embedding_bytes, 262_144 * 20 * 34);
    assert!(!account.thinking && !account.tools);
    // 3 full and 15 sliding layers of 1 KV head of 256.
    let kv = KvAccount {
        full_elements_per_token: 1_536,
        sliding_elements_per_cell: 7_680,
        window: 512,
        state_bytes: 0,
    };
    assert_eq!(account.kv, kv);
    assert_eq!(KvCache::F16.bytes(kv.full_elements_per_token), 3_072);
    assert_eq!(KvCache::Q8_0.bytes(kv.sliding_elements_per_cell), 8_160);
}

#[test]
fn a_truncated_file_gives_the_missing_bytes() {
    let path = model("SmolLM2-135M-Instruct.Q4_1.gguf");
    let whole = path.metadata().unwrap().len();
    let header = whole - tensor_bytes(&tierbar_gguf::read(&path).unwrap());
    let cut_to = |length: u64| {
        let file = BufReader::new(File::open(&path).unwrap());
        tierbar_gguf::read_from(file.take(length), length, "m.gguf").unwrap_err()
    };
    let error = cut_to(whole - 1000);
    assert_eq!(error.code, Code::ModelInvalid);
    let expected = format!("1000 bytes of {whole} of the model m.gguf are missing");
    assert!(error.message.starts_with(&expected), "{error}");
    assert_eq!(error.details["missing_bytes"], 1000);
    for step in 1..64 {
        let error = cut_to(header * step / 64);
        assert!(error.message.contains("the file is incomplete"), "{error}");
    }
}
