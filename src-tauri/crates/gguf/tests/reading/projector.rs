//! Media projectors and the models that they belong to.

use crate::writer::{F32, Gguf, Q8_0};
use tierbar_core::{Code, budget::MediaProjector};
use tierbar_gguf::{Encoder, ProjectorAccount};

fn clip(encoders: &[(&str, u32)]) -> Gguf {
    let file = Gguf::empty()
        .text("general.architecture", "clip")
        .text("general.type", "mmproj")
        .text("general.name", "Gemma 4")
        .tensor("v.patch_embd.weight", &[32, 2], Q8_0, 68)
        .tensor("mm.input_projection.weight", &[4], F32, 16);
    encoders.iter().fold(file, |file, (encoder, width)| {
        let kind = if *encoder == "audio" {
            "gemma4a"
        } else {
            "gemma4v"
        };
        let file = file.text(&format!("clip.{encoder}.projector_type"), kind);
        file.pair(&format!("clip.has_{encoder}_encoder"), 7, &[1])
            .number(&format!("clip.{encoder}.projection_dim"), *width)
    })
}

fn read(file: &Gguf) -> ProjectorAccount {
    tierbar_gguf::projector_from(&file.header()[..], file.file_bytes(), "mmproj.gguf").unwrap()
}

fn refused(file: &Gguf, code: Code, part: &str) {
    let error =
        tierbar_gguf::projector_from(&file.header()[..], file.file_bytes(), "p.gguf").unwrap_err();
    assert_eq!(error.code, code, "{error}");
    assert!(error.message.contains(part), "{error}");
}

#[test]
fn a_projector_fits_the_models_of_its_width() {
    let file = clip(&[("vision", 64)]);
    let account = read(&file);
    let expected = ProjectorAccount {
        name: Some("Gemma 4".to_owned()),
        quant: "Q8_0".to_owned(),
        bytes: 68 + 16,
        projection_dim: Some(64),
        vision: Some(Encoder {
            kind: "gemma4v".to_owned(),
            projection: 64,
            ..Encoder::default()
        }),
        audio: None,
    };
    assert_eq!(account, expected);
    let model = Gguf::model("llama", 1).read().unwrap();
    assert_eq!(model.embedding, 64);
    assert!(account.fits(&model));
    assert!(!read(&clip(&[("vision", 65)])).fits(&model));
}

#[test]
fn a_projector_may_support_audio() {
    let both = read(&clip(&[("vision", 64), ("audio", 64)]));
    assert!(both.vision.is_some() && both.audio.is_some());
    let unified = clip(&[("vision", 64)]).text("clip.projector_type", "gemma4uv");
    assert_eq!(read(&unified).vision.unwrap().kind, "gemma4uv");
    let sound = read(&clip(&[("audio", 2560)]));
    assert!(sound.vision.is_none() && sound.audio.is_some());
    assert_eq!(sound.projection_dim, Some(2560));
    refused(
        &clip(&[("vision", 64), ("audio", 65)]),
        Code::ModelInvalid,
        "different widths",
    );
    refused(&clip(&[]), Code::ModelInvalid, "neither for images");
    let switched_off = clip(&[]).pair("clip.has_vision_encoder", 7, &[0]);
    refused(&switched_off, Code::ModelInvalid, "neither for images");
}

#[test]
fn an_encoder_whose_memory_cannot_be_planned_is_refused() {
    let kind = |side: &str, kind: &str| {
        Gguf::empty()
            .text("general.architecture", "clip")
            .pair(&format!("clip.has_{side}_encoder"), 7, &[1])
            .text("clip.projector_type", kind)
    };
    let named_encoders = [
        ("vision", "deepseekocr"),
        ("audio", "lfm2a"),
        ("vision", "gemma4a"),
        ("audio", "gemma4v"),
        ("vision", "of next year"),
        ("vision", ""),
    ];
    for (side, name) in named_encoders {
        refused(&kind(side, name), Code::ModelUnsupported, name);
    }
    let unbounded = kind("vision", "dots_ocr");
    refused(&unbounded, Code::ModelInvalid, "largest image size");
    let bounded = unbounded.number("clip.vision.image_max_pixels", 10_000);
    assert_eq!(read(&bounded).vision.unwrap().pixels, 10_000);
    let both = kind("vision", "qwen2.5o").pair("clip.has_audio_encoder", 7, &[1]);
    let both = read(&both);
    assert_eq!(both.vision.unwrap().kind, "qwen2.5vl_merger");
    assert_eq!(both.audio.unwrap().kind, "qwen2a");
}

#[test]
fn the_width_of_a_missing_encoder_is_ignored() {
    let file = clip(&[("vision", 64)]).number("clip.audio.projection_dim", 9);
    assert_eq!(read(&file).projection_dim, Some(64));
}

#[test]
fn an_unknown_width_fits() {
    let model = Gguf::model("llama", 1).read().unwrap();
    let unknown = read(&clip(&[("vision", 0)]));
    assert_eq!(unknown.projection_dim, None);
    assert!(unknown.fits(&model));
}

#[test]
fn early_llava_files_give_their_width_in_the_last_layer() {
    let file = clip(&[("vision", 768)])
        .pair("clip.has_llava_projector", 7, &[1])
        .tensor("mm.2.bias", &[4096], F32, 4 * 4096);
    assert_eq!(read(&file).projection_dim, Some(4096));
}

#[test]
fn models_and_projectors_are_distinguished() {
    refused(
        &Gguf::model("llama", 1),
        Code::ModelUnsupported,
        "a llama model, not a media projector",
    );
    let error = clip(&[("vision", 64)]).read().unwrap_err();
    assert_eq!(error.code, Code::ModelUnsupported);
    assert!(error.message.contains("media projector"), "{error}");
}

#[test]
fn a_projector_file_must_be_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mmproj-BF16.gguf");
    let file = clip(&[("vision", 64)]);
    file.write(&path);
    assert_eq!(tierbar_gguf::projector(&path).unwrap(), read(&file));
    let cut = std::fs::File::options().write(true).open(&path).unwrap();
    cut.set_len(file.file_bytes() - 7).unwrap();
    let error = tierbar_gguf::projector(&path).unwrap_err();
    assert_eq!(error.details["missing_bytes"], 7, "{error}");
}

fn shaped(kind: &str, image: u32, width: u32, heads: u32) -> Encoder {
    Encoder {
        kind: kind.to_owned(),
        image,
        patch: 14,
        width,
        inner: width.saturating_mul(4),
        heads,
        ..Encoder::default()
    }
}

#[test]
fn an_image_takes_at_most_a_quarter_of_the_context() {
    for kind in ["qwen2vl_merger", "qwen2.5vl_merger", "qwen3vl_merger"] {
        let encoder = shaped(kind, 560, 1280, 16);
        assert_eq!(encoder.most_rows(2048, 64), Some(512));
        assert_eq!(encoder.most_rows(100_000, 64), Some(1024));
        assert_eq!(encoder.most_rows(10, 64), Some(70));
    }
    let gemma_4 = shaped("gemma4v", 224, 768, 12);
    assert_eq!(gemma_4.most_rows(100_000, 512), Some(512));
    assert_eq!(gemma_4.most_rows(1024, 512), Some(256));
    assert_eq!(shaped("gemma3", 896, 1152, 16).most_rows(4096, 512), None);
}

#[test]
fn encoder_memory_grows_with_the_image() {
    let bytes = |encoder: &Encoder| encoder.compute_bytes(4096, 512);
    let small = shaped("gemma3", 448, 1152, 16);
    let large = shaped("gemma3", 896, 1152, 16);
    assert!(bytes(&large) > 3 * bytes(&small));
    let gated = Encoder {
        gated: true,
        ..large.clone()
    };
    assert!(bytes(&gated) > bytes(&large));
    // Heads of 1152 / 9 = 128 have attention that keeps no scores, those of 144 have none on Metal.
    let [kept, not] = [8, 9].map(|heads| bytes(&shaped("gemma3", 896, 1152, heads)));
    assert!(kept - not >= 8 * 4 * 4096 * 4096, "{kept} {not}");
    let qwen = shaped("qwen2vl_merger", 560, 1280, 16);
    assert!(qwen.compute_bytes(4096, 512) > 2 * qwen.compute_bytes(1024, 512));
    // Problems of its header come before those of its use.
    let hunyuan = Encoder {
        pixels: 4096 * 4096,
        ..shaped("hunyuanvl", 0, 1152, 16)
    };
    assert_eq!(hunyuan.most_rows(4096, 512), None);
    assert!(bytes(&hunyuan) > 10 * bytes(&shaped("hunyuanvl", 0, 1152, 16)));
    let frames = Encoder {
        kind: "gemma4ua".to_owned(),
        projection: 3840,
        ..Encoder::default()
    };
    assert!(bytes(&frames) > 4096 * 3840 * 8);
    let wide = Encoder {
        head: 720,
        ..small.clone()
    };
    assert!(bytes(&wide) > 2 * bytes(&small));
    let sound = Encoder {
        kind: "gemma4a".to_owned(),
        channels: 128,
        bands: 128,
        ..Encoder::default()
    };
    assert!(bytes(&sound) > 128 * 128 * 750 * 16);
    let absurd = Encoder {
        image: u32::MAX,
        patch: 1,
        ..shaped("x", 0, u32::MAX, u32::MAX)
    };
    assert!(bytes(&absurd) > 1 << 60);
    let every = Encoder {
        patch: u32::MAX,
        merge: Some(u32::MAX),
        ..shaped("qwen2.5vl_merger", u32::MAX, u32::MAX, u32::MAX)
    };
    assert!(bytes(&every) > 1 << 60);
}

#[test]
fn a_projector_load_has_weights_and_encoder_memory() {
    let account = read(&clip(&[("vision", 64), ("audio", 64)]));
    let of = |encoder: &Option<Encoder>| encoder.as_ref().unwrap().compute_bytes(4096, 512);
    assert_eq!(
        account.load_bytes(4096, 512),
        account.bytes + of(&account.vision) + of(&account.audio)
    );
}

#[test]
fn an_encoder_shape_comes_from_header_and_tensors() {
    let file = clip(&[("vision", 64), ("audio", 64)])
        .number("clip.audio.num_mel_bins", 128)
        .tensor("a.conv1d.0.weight", &[3, 3, 1, 32], F32, 4 * 9 * 32)
        .number("clip.vision.image_size", 896)
        .number("clip.vision.patch_size", 14)
        .number("clip.vision.embedding_length", 32)
        .number("clip.vision.feed_forward_length", 0)
        .number("clip.vision.attention.head_count", 2)
        .number("clip.vision.projector.scale_factor", 4)
        .tensor("v.blk.0.ffn_up.weight", &[32, 96], F32, 4 * 32 * 96)
        .tensor("v.blk.0.ffn_gate.weight", &[32, 96], F32, 4 * 32 * 96)
        .tensor("a.blk.0.ffn_up.weight", &[32, 960], F32, 4 * 32 * 960);
    let expected = Encoder {
        kind: "gemma4v".to_owned(),
        image: 896,
        pixels: 0,
        patch: 14,
        merge: Some(4),
        width: 32,
        inner: 96,
        gated: true,
        heads: 2,
        projection: 64,
        ..Encoder::default()
    };
    let account = read(&file);
    assert_eq!(account.vision, Some(expected));
    let audio = account.audio.unwrap();
    assert_eq!((audio.channels, audio.bands), (32, 128));
}
