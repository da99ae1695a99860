//! Media projectors and the models that they belong to.

use crate::writer::{F32, Gguf, Q8_0};
use tierbar_core::Code;
use tierbar_gguf::{Encoder, ProjectorAccount};

fn clip(encoders: &[(&str, u32)]) -> Gguf {
    let file = Gguf::empty()
        .text("general.architecture", "clip")
        .text("general.type", "mmproj")
        .text("general.name", "Gemma 4")
        .text("clip.projector_type", "gemma4v")
        .tensor("v.patch_embd.weight", &[32, 2], Q8_0, 68)
        .tensor("mm.input_projection.weight", &[4], F32, 16);
    encoders.iter().fold(file, |file, (encoder, width)| {
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
        file_bytes: file.file_bytes(),
        bytes: 68 + 16,
        projection_dim: Some(64),
        vision: Some(Encoder {
            kind: "gemma4v".to_owned(),
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
fn a_projector_may_hear_too() {
    let both = read(&clip(&[("vision", 64), ("audio", 64)]));
    assert!(both.vision.is_some() && both.audio.is_some());
    let own =
        clip(&[("vision", 64), ("audio", 64)]).text("clip.vision.projector_type", "qwen2vl_merger");
    assert_eq!(read(&own).vision.unwrap().kind, "qwen2vl_merger");
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
fn the_width_that_an_encoder_is_not_there_for_does_not_count() {
    let file = clip(&[("vision", 64)]).number("clip.audio.projection_dim", 9);
    assert_eq!(read(&file).projection_dim, Some(64));
}

#[test]
fn a_width_that_is_not_told_fits() {
    let model = Gguf::model("llama", 1).read().unwrap();
    let unknown = read(&clip(&[("vision", 0)]));
    assert_eq!(unknown.projection_dim, None);
    assert!(unknown.fits(&model));
}

#[test]
fn the_first_llava_files_tell_their_width_by_their_last_layer() {
    let file = clip(&[("vision", 768)])
        .pair("clip.has_llava_projector", 7, &[1])
        .tensor("mm.2.bias", &[4096], F32, 4 * 4096);
    assert_eq!(read(&file).projection_dim, Some(4096));
}

#[test]
fn a_model_is_no_projector_and_a_projector_no_model() {
    refused(
        &Gguf::model("llama", 1),
        Code::ModelUnsupported,
        "no media projector, but a llama model",
    );
    let error = clip(&[("vision", 64)]).read().unwrap_err();
    assert_eq!(error.code, Code::ModelUnsupported);
    assert!(error.message.contains("media projector"), "{error}");
}

#[test]
fn a_projector_is_read_by_its_path_and_must_be_whole() {
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
