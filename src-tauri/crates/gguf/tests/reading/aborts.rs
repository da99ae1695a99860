//! Valid headers that make llama.cpp abort or hang. Each was confirmed with llama.cpp itself.

use crate::writer::{F32, Gguf, Q8_0};
use tierbar_core::Code;

const F16: u32 = 1;
const I32: u32 = 26;

pub(crate) fn refused(name: &str, file: &Gguf, part: &str) {
    let Err(error) = file.read() else {
        panic!("{name} is accepted");
    };
    assert_eq!(error.code, Code::ModelInvalid, "{name}: {error}");
    assert!(error.message.contains(part), "{name}: {error}");
    assert!(error.hint.is_some(), "{name}: {error}");
}

fn llama() -> Gguf {
    Gguf::model("llama", 2)
}

fn float(key: &str, number: f32) -> Gguf {
    llama().pair(key, 6, &number.to_le_bytes())
}

#[test]
fn values_that_llama_cpp_asserts_on_are_refused() {
    let bare = |layers, context, width| {
        Gguf::empty()
            .text("general.architecture", "llama")
            .number("llama.block_count", layers)
            .number("llama.context_length", context)
            .number("llama.embedding_length", width)
            .tensor("output_norm.weight", &[64], F32, 256)
    };
    refused("no context", &bare(1, 0, 64), "llama.context_length is 0");
    refused("no width", &bare(1, 4096, 0), "llama.embedding_length is 0");
    refused(
        "layers",
        &bare(u32::MAX, 4096, 64),
        "claims 4294967295 layers",
    );
    for epsilon in [-1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        refused(
            "epsilon",
            &float("llama.attention.layer_norm_rms_epsilon", epsilon),
            "layer_norm_rms_epsilon is",
        );
    }
    for epsilon in [0.0, 1e-6] {
        float("llama.attention.layer_norm_rms_epsilon", epsilon)
            .read()
            .unwrap();
    }
    for kind in ["", "x", "Linear"] {
        let file = llama().text("llama.rope.scaling.type", kind);
        refused("rope scaling", &file, "rope.scaling.type is unknown");
    }
    for kind in ["none", "linear", "yarn", "longrope"] {
        llama()
            .text("llama.rope.scaling.type", kind)
            .read()
            .unwrap();
    }
}

#[test]
fn impossible_rope_values_are_refused() {
    let sections = |architecture: &str, sections: &[u32]| {
        let key = format!("{architecture}.rope.dimension_sections");
        Gguf::model(architecture, 1).numbers(&key, sections)
    };
    for none in [&[][..], &[0, 0, 0], &[0, 0, 0, 8]] {
        refused(
            "sections",
            &sections("qwen2vl", none),
            "rope.dimension_sections has none",
        );
        // Which means there that a head is turned by one position alone.
        sections("glm4", none).read().unwrap();
    }
    sections("qwen2vl", &[0, 8, 0, 0]).read().unwrap();
    // Heads of 64 / 4.
    let headed = |of: &[u32]| sections("qwen2vl", of).number("qwen2vl.attention.head_count", 4);
    headed(&[8, 4, 4, 0]).read().unwrap();
    refused("sections", &headed(&[8, 4, 5, 0]), "more than a head's 16");
}

#[test]
fn inconsistent_heads_are_refused() {
    let heads = |heads: &[u32], kv_heads: &[u32], turned: u32| {
        llama()
            .numbers("llama.attention.head_count", heads)
            .numbers("llama.attention.head_count_kv", kv_heads)
            .number("llama.rope.dimension_count", turned)
    };
    // Heads of 64 / 8.
    heads(&[8, 8], &[2, 0], 8).read().unwrap();
    heads(&[8, 0], &[8, 0], 4).read().unwrap();
    refused("none", &heads(&[0, 0], &[0, 0], 0), "head_count is 0");
    refused(
        "more",
        &heads(&[8, 8], &[8, 16], 8),
        "16 heads of keys for 8",
    );
    refused(
        "uneven",
        &heads(&[8, 8], &[3, 8], 8),
        "3 heads of keys for 8",
    );
    refused(
        "odd",
        &heads(&[8, 8], &[8, 8], 7),
        "rope.dimension_count is 7",
    );
    refused(
        "wide",
        &heads(&[8, 8], &[8, 8], 10),
        "rope.dimension_count is 10, for heads of 8",
    );
    let named = heads(&[8, 8], &[8, 8], 10).number("llama.attention.key_length", 16);
    named.read().unwrap();
    // These have none, and say so.
    Gguf::model("mamba", 1)
        .number("mamba.attention.head_count", 0)
        .read()
        .unwrap();
}

#[test]
fn impossible_expert_counts_are_refused() {
    let experts = |all: u32, used: u32, groups: u32, groups_used: u32| {
        llama()
            .number("llama.expert_count", all)
            .number("llama.expert_used_count", used)
            .number("llama.expert_group_count", groups)
            .number("llama.expert_group_used_count", groups_used)
    };
    for (all, used, groups, groups_used) in [(8, 8, 0, 0), (0, 0, 0, 0), (8, 1, 1, 0), (8, 2, 4, 2)]
    {
        experts(all, used, groups, groups_used).read().unwrap();
    }
    for (all, used) in [(8, 9), (8, 0), (0, 1)] {
        refused(
            "used",
            &experts(all, used, 0, 0),
            &format!("to use {used} of {all} experts"),
        );
    }
    refused(
        "many",
        &experts(1025, 1, 0, 0),
        "1025 experts, more than 1024",
    );
    for (groups, groups_used) in [(3, 1), (4, 0), (4, 4), (8, 1), (u32::MAX, 1)] {
        refused(
            "groups",
            &experts(8, 2, groups, groups_used),
            "groups of its 8 experts",
        );
    }
    refused(
        "groups of none",
        &experts(0, 0, 1, 1),
        "groups of its 0 experts",
    );
    // One expert is none to these.
    Gguf::model("hunyuan-dense", 1)
        .number("hunyuan-dense.expert_count", 1)
        .read()
        .unwrap();
}

#[test]
fn zero_divisors_of_an_architecture_are_refused() {
    let with = |architecture: &str, key: &str, number: u32| {
        Gguf::model(architecture, 4).number(&format!("{architecture}.{key}"), number)
    };
    for (architecture, key) in [
        ("mamba2", "ssm.group_count"),
        ("nemotron_h", "ssm.group_count"),
        ("rwkv6", "wkv.head_size"),
        ("hrm_text", "hrm.l_cycles"),
        ("minimax-m3", "attention.indexer.block_size"),
        ("nanbeige", "num_loops"),
    ] {
        refused(architecture, &with(architecture, key, 0), key);
        with(architecture, key, 2).read().unwrap();
    }
    for (architecture, key, wrong, right) in [
        ("nanbeige", "num_loops", 129, 128),
        ("gemma-embedding", "dense_2_feat_in", 65, 64),
        ("gemma-embedding", "dense_3_feat_out", 1, 0),
    ] {
        refused(architecture, &with(architecture, key, wrong), key);
        with(architecture, key, right).read().unwrap();
    }
    // The groups of plamo2 are none.
    let states = |inner| {
        with("jamba", "ssm.inner_size", inner)
            .number("jamba.ssm.conv_kernel", 4)
            .numbers("jamba.attention.head_count_kv", &[0; 4])
    };
    refused("jamba", &states(64), "ssm.inner_size");
    states(128).read().unwrap();
    for architecture in ["smallthinker", "glm4moe", "llada-moe"] {
        refused(architecture, &Gguf::model(architecture, 4), "expert_count");
    }
    let scale = |layers, scale: f32| {
        Gguf::model("llama4", layers).pair(
            "llama4.attention.temperature_scale",
            6,
            &scale.to_le_bytes(),
        )
    };
    refused("llama4", &scale(4, 0.0), "attention.temperature_scale");
    refused("short llama4", &scale(3, 0.1), "block_count");
    scale(4, 0.1).read().unwrap();
}

#[test]
fn tensor_types_without_arithmetic_are_refused() {
    for name in [
        "blk.0.attn_norm.weight",
        "output_norm.weight",
        "blk.0.attn_q.bias",
        "blk.0.ffn_down.scale",
        "rope_freqs.weight",
        "blk.0.ssm_conv1d.weight",
    ] {
        for (kind, bytes) in [(F16, 64), (I32, 128), (Q8_0, 34)] {
            refused(name, &llama().tensor(name, &[32], kind, bytes), "not F32");
        }
        llama().tensor(name, &[32], F32, 128).read().unwrap();
    }
    // Q8_1, Q8_K, and the integers and doubles.
    for (kind, elements, bytes) in [
        (9, 32, 36),
        (15, 256, 292),
        (24, 1, 1),
        (25, 1, 2),
        (I32, 1, 4),
        (27, 1, 8),
        (28, 1, 8),
    ] {
        let file = llama().tensor("blk.0.attn_q.weight", &[elements], kind, bytes);
        refused("weights", &file, "invalid for weights");
    }
    let table = llama().tensor("blk.0.ffn_gate_tid2eid.weight", &[1], I32, 4);
    table.read().unwrap();
}
