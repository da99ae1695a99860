use super::*;
use crate::reference::path_problem;
use proptest::prelude::*;
use std::collections::HashSet;

fn repository() -> Repository {
    Repository::new("unsloth/gemma-4-E4B-it-GGUF").unwrap()
}

fn file(path: &str) -> HubFile {
    HubFile {
        path: path.to_owned(),
        size: 1,
        sha256: Some("0123456789abcdef".repeat(4)),
    }
}

fn names(paths: &[&str], taken: &[&str]) -> Vec<String> {
    let files: Vec<_> = paths.iter().map(|path| file(path)).collect();
    local::names(&repository(), "c0ffee", &files, &|name| {
        taken.iter().any(|taken| taken.eq_ignore_ascii_case(name))
    })
}

#[test]
fn a_descriptive_file_name_is_kept() {
    for (path, name) in [
        ("gemma-4-E4B-it-Q4_K_M.gguf", "gemma-4-E4B-it-Q4_K_M.gguf"),
        ("UD/Qwen3.5-UD-IQ2_M.GGUF", "Qwen3.5-UD-IQ2_M.gguf"),
        ("модель größe.gguf", "модель größe.gguf"),
        ("..hidden.gguf", "hidden.gguf"),
        ("-rf.gguf", "rf.gguf"),
        ("a:b*c?.gguf", "a_b_c_.gguf"),
        ("trailing. .gguf", "trailing.gguf"),
    ] {
        assert_eq!(names(&[path], &[]), [name], "{path}");
    }
}

#[test]
fn a_generic_file_name_gets_the_repository_name() {
    for (path, name) in [
        ("model.gguf", "gemma-4-E4B-it-model.gguf"),
        (
            "ggml-model-Q4_0.gguf",
            "gemma-4-E4B-it-ggml-model-Q4_0.gguf",
        ),
        ("Q4_K_M.gguf", "gemma-4-E4B-it-Q4_K_M.gguf"),
        ("UD-Q4_K_XL.gguf", "gemma-4-E4B-it-UD-Q4_K_XL.gguf"),
        // Still known as a projector by its first letters.
        ("mmproj-BF16.gguf", "mmproj-gemma-4-E4B-it-BF16.gguf"),
    ] {
        assert_eq!(names(&[path], &[]), [name], "{path}");
    }
}

#[test]
fn a_taken_name_is_avoided_in_any_case() {
    let path = "gemma-Q4_0.gguf";
    let second = "gemma-4-E4B-it-gemma-Q4_0.gguf";
    let third = "unsloth-gemma-4-E4B-it-gemma-Q4_0.gguf";
    assert_eq!(names(&[path], &["GEMMA-q4_0.gguf"]), [second]);
    assert_eq!(names(&[path], &[path, second]), [third]);
    let last = "01234567-gemma-4-E4B-it-gemma-Q4_0.gguf";
    assert_eq!(names(&[path], &[path, second, third]), [last]);
}

#[test]
fn parts_of_a_split_model_share_a_name() {
    let parts = [
        "x/big-Q8_0-00001-of-00002.gguf",
        "x/big-Q8_0-00002-of-00002.gguf",
    ];
    let plain = [
        "big-Q8_0-00001-of-00002.gguf",
        "big-Q8_0-00002-of-00002.gguf",
    ];
    assert_eq!(names(&parts, &[]), plain);
    // One of them is taken: both give way.
    assert_eq!(
        names(&parts, &[plain[1]]),
        plain.map(|name| format!("gemma-4-E4B-it-{name}"))
    );
    let long = "x".repeat(230);
    let long = [1, 2].map(|number| format!("{long}-{number:05}-of-00002.gguf"));
    let names = names(&[&long[0], &long[1]], &[]);
    let splits: Vec<_> = names
        .iter()
        .map(|name| tierbar_gguf::split_of(name).unwrap())
        .collect();
    assert_eq!(splits[0].prefix, splits[1].prefix);
    assert_eq!((splits[0].number, splits[1].number), (1, 2));
}

#[test]
fn long_names_stay_distinct() {
    let long = "é".repeat(120);
    let two = ["a", "b"].map(|end| names(&[&format!("{long}{end}.gguf")], &[]).remove(0));
    assert_ne!(two[0], two[1]);
    assert!(two.iter().all(|name| name.len() <= 200), "{two:?}");
}

#[test]
fn a_url_names_its_file() {
    let name = |url: &str, taken: bool| local::name_of_url(&Url::parse(url).unwrap(), &|_| taken);
    assert_eq!(
        name("https://x.example/a/m%20b.gguf?sig=1", false),
        "m b.gguf"
    );
    assert_eq!(name("https://x.example/..%5Cm.gguf", false), "_m.gguf");
    let (one, two) = (
        name("https://x.example/a/m.gguf?sig=1", true),
        name("https://x.example/b/m.gguf?sig=1", true),
    );
    assert_ne!(one, two);
    assert!(one.ends_with("-m.gguf"), "{one}");
    assert_eq!(one, name("https://x.example/a/m.gguf?sig=2", true));
}

#[test]
fn a_quant_is_found_in_a_name() {
    for (stem, quant) in [
        ("gemma-3-270m-q4_k_m", Some("Q4_K_M")),
        ("SmolLM2-135M-Instruct.Q4_1", Some("Q4_1")),
        ("Qwen3.5-35B-A3B-UD-IQ2_XXS", Some("UD-IQ2_XXS")),
        ("Qwen3.5-35B-A3B-UD-Q4_K_XL", Some("UD-Q4_K_XL")),
        ("model_Q5_K_S", Some("Q5_K_S")),
        ("x.i1-IQ4_NL", Some("IQ4_NL")),
        ("gpt-oss-20b-mxfp4", Some("MXFP4")),
        ("x-TQ1_0", Some("TQ1_0")),
        ("x-BF16", Some("BF16")),
        ("Q8_0", Some("Q8_0")),
        ("Qwen3-30B-A3B", None),
        ("q-learning", None),
        ("x-Q9_0", None),
        ("x-Q4_", None),
        ("", None),
    ] {
        assert_eq!(quants::quant_in(stem).as_deref(), quant, "{stem}");
    }
}

#[test]
fn the_next_page_is_found_among_other_links() {
    assert_eq!(
        next_page("<https://h/x?cursor=1>; rel=\"next\""),
        Some("https://h/x?cursor=1")
    );
    assert_eq!(
        next_page("</a>; rel=prev, </b>; title=\"x\"; rel=\"last next\""),
        Some("/b")
    );
    for none in [
        "",
        "<",
        "</a",
        "</a>",
        "</a>; rel=\"prev\"",
        "next",
        "</a>; rel=nextish",
    ] {
        assert_eq!(next_page(none), None, "{none:?}");
    }
}

#[test]
fn the_endpoint_is_the_public_hub_or_a_valid_address() {
    assert_eq!(endpoint(None).unwrap().as_str(), "https://huggingface.co/");
    assert_eq!(
        endpoint(Some("  ")).unwrap().as_str(),
        "https://huggingface.co/"
    );
    for good in [
        "https://mirror.example",
        "https://mirror.example/hf/",
        "http://127.0.0.1:8080",
        "http://10.1.2.3",
    ] {
        assert!(endpoint(Some(good)).is_ok(), "{good}");
    }
    for wrong in [
        "mirror.example",
        "http://mirror.example",
        "ftp://mirror.example",
        "file:///x",
        "https://me:hunter2@mirror.example",
        "https://mirror.example?x=hunter2",
        "https://mirror.example#x",
        "https://",
    ] {
        let error = endpoint(Some(wrong)).unwrap_err();
        assert_eq!(error.code, Code::ConfigInvalid, "{wrong}");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}

#[test]
fn a_mirror_may_have_a_path() {
    let web = Web::new(tierbar_fetch::WebOptions::default()).unwrap();
    let hub = |address| {
        Hub::new(
            web.clone(),
            std::sync::Arc::new(|_| None),
            endpoint(Some(address)).unwrap(),
        )
    };
    let repository = Repository::new("a/b").unwrap();
    for address in ["https://m.example/hf", "https://m.example/hf/"] {
        assert_eq!(
            hub(address)
                .file_url(&repository, "c0ffee", "x y/größe#1?.gguf")
                .as_str(),
            "https://m.example/hf/a/b/resolve/c0ffee/x%20y/gr%C3%B6%C3%9Fe%231%3F.gguf"
        );
    }
}

#[test]
fn the_token_goes_to_the_hubs_origin_alone() {
    let home = tempfile::tempdir().unwrap();
    let secrets = tierbar_secrets::Secrets::with(
        home.path(),
        std::sync::Arc::new(|name: &str| match name {
            "HF_TOKEN" => Some("hf_x".into()),
            "TIERBAR_SECRETS" => Some("file".into()),
            _ => None,
        }),
    );
    let tokens = tokens(secrets, &endpoint(Some("https://hub.example/hf")).unwrap());
    for (url, gets_token) in [
        ("https://hub.example/hf/a/b", true),
        ("https://hub.example/other", true),
        ("https://hub.example:8443/hf", false),
        ("http://hub.example/hf", false),
        ("https://cdn.hub.example/hf", false),
        ("https://hub.example.evil.example/", false),
        ("https://huggingface.co/", false),
    ] {
        assert_eq!(
            tokens(&Url::parse(url).unwrap()).is_some(),
            gets_token,
            "{url}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_keychain_prompt_does_not_block_other_tasks() {
    let home = tempfile::tempdir().unwrap();
    let (answer, prompt_answer) = std::sync::mpsc::channel();
    let prompt_answer = std::sync::Mutex::new(prompt_answer);
    let secrets = tierbar_secrets::Secrets::with(
        home.path(),
        std::sync::Arc::new(move |name: &str| {
            let hang = std::time::Duration::from_secs(60);
            (name == "HF_TOKEN").then(|| prompt_answer.lock().unwrap().recv_timeout(hang).unwrap())
        }),
    );
    let url = endpoint(None).unwrap();
    let tokens = tokens(secrets, &url);
    let waiting = tokio::spawn(async move {
        // On the same thread, and so after this one.
        tokio::spawn(async move { answer.send("hf_x".into()).unwrap() });
        tokens(&url)
    });
    assert!(waiting.await.unwrap().is_some());
}

#[test]
fn a_license_is_read_from_any_form_of_card() {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    let license = |card: &str| license_of_card(&raw(card));
    assert_eq!(license(r#"{"license": "mit"}"#).as_deref(), Some("mit"));
    assert_eq!(
        license(r#"{"license": ["gemma", "mit"]}"#).as_deref(),
        Some("gemma")
    );
    let long = format!("{{\"license\": \"{}\"}}", "x".repeat(101));
    for none in [
        "null",
        "[1]",
        "{}",
        r#"{"license": 7}"#,
        r#"{"license": []}"#,
        r#"{"license": "a\nb"}"#,
        &long,
    ] {
        assert_eq!(license(none), None, "{none}");
    }
    let gated = |text: &str| is_gated(Some(&raw(text)));
    assert!(!gated("false") && !is_gated(None));
    assert!(gated("\"auto\"") && gated("\"manual\"") && gated("true"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_name_on_disk_is_plain(path in prop_oneof![".{0,300}", "[a-zA-Z0-9./\\\\: _-]{0,300}"], taken: bool) {
        let path = format!("{path}.gguf");
        for name in [
            names(&[&path], &[]).remove(0),
            local::names(&repository(), "c0ffee", &[file(&path)], &|_| taken).remove(0),
        ] {
            prop_assert!(name.len() <= 200, "{name:?}");
            prop_assert!(name.ends_with(".gguf") && name.len() > 5, "{name:?}");
            prop_assert!(!name.starts_with(['.', '-', ' ']), "{name:?}");
            prop_assert!(!name.contains(['/', '\\', ':']), "{name:?}");
            prop_assert_eq!(path_problem(&name), None, "{:?}", name);
        }
    }

    #[test]
    fn grouping_loses_no_whole_model(count in 1_u16..5, missing in 0_u16..5, singles in prop::collection::hash_set("[a-z]{3,8}", 0..5)) {
        let mut files: Vec<HubFile> = (1..=count)
            .filter(|number| *number != missing)
            .map(|number| file(&format!("big-Q8_0-{number:05}-of-{count:05}.gguf")))
            .collect();
        files.extend(singles.iter().map(|name| file(&format!("single-{name}.gguf"))));
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let whole = !(1..=count).contains(&missing);
        let (quants, projectors) = quants::group(&repository(), files);
        prop_assert_eq!(quants.len(), singles.len() + usize::from(whole));
        prop_assert!(projectors.is_empty());
        let references: HashSet<_> = quants.iter().map(|quant| &quant.reference).collect();
        prop_assert_eq!(references.len(), quants.len());
    }
}
