use super::*;
use proptest::prelude::*;

/// Two models, one of them under Ollama's names too.
fn catalog(name: &str) -> Option<String> {
    match name {
        "gemma-4-e4b" | "gemma4" | "gemma4:e4b" => Some("gemma-4-e4b".to_owned()),
        "smollm2" => Some("smollm2-135m".to_owned()),
        _ => None,
    }
}

fn parse(text: &str) -> Result<Reference, Error> {
    Reference::parse(text, catalog)
}

fn hub(repository: &str, revision: Option<&str>, pick: Pick) -> Reference {
    Reference::Hub {
        repository: Repository::new(repository).unwrap(),
        revision: revision.map(str::to_owned),
        pick,
    }
}

fn quant(quant: &str) -> Pick {
    Pick::Quant(quant.to_owned())
}

fn file(path: &str) -> Pick {
    Pick::File(path.to_owned())
}

#[test]
fn references_name_repositories_quants_and_files() {
    for (text, expected) in [
        (
            "unsloth/gemma-4-E4B-it-GGUF",
            hub("unsloth/gemma-4-E4B-it-GGUF", None, Pick::Suiting),
        ),
        (" a/b\n", hub("a/b", None, Pick::Suiting)),
        ("a/b:Q4_K_M", hub("a/b", None, quant("Q4_K_M"))),
        ("a/b:UD-IQ2_M", hub("a/b", None, quant("UD-IQ2_M"))),
        ("a/b:latest", hub("a/b", None, Pick::Suiting)),
        ("a/b/c.gguf", hub("a/b", None, file("c.gguf"))),
        (
            "a/b/Q8 0/größe.GGUF",
            hub("a/b", None, file("Q8 0/größe.GGUF")),
        ),
        ("hf.co/a/b:q8_0", hub("a/b", None, quant("q8_0"))),
        ("HuggingFace.co/a/b", hub("a/b", None, Pick::Suiting)),
        (
            "huggingface.co/a/b/blob/main/c.gguf",
            hub("a/b", None, file("c.gguf")),
        ),
        ("a.b_c/d-e.f", hub("a.b_c/d-e.f", None, Pick::Suiting)),
    ] {
        assert_eq!(parse(text), Ok(expected), "{text:?}");
    }
}

#[test]
fn hub_pages_are_references() {
    for (text, expected) in [
        (
            "https://huggingface.co/a/b",
            hub("a/b", None, Pick::Suiting),
        ),
        ("https://hf.co/a/b/", hub("a/b", None, Pick::Suiting)),
        (
            "https://huggingface.co/a/b/tree/main",
            hub("a/b", None, Pick::Suiting),
        ),
        (
            "https://huggingface.co/a/b/tree/v2",
            hub("a/b", Some("v2"), Pick::Suiting),
        ),
        (
            "https://huggingface.co/a/b/resolve/main/c.gguf?download=true#x",
            hub("a/b", None, file("c.gguf")),
        ),
        (
            "https://huggingface.co/a/b/blob/0123abc/UD%20x/c-00001-of-00002.gguf",
            hub("a/b", Some("0123abc"), file("UD x/c-00001-of-00002.gguf")),
        ),
    ] {
        assert_eq!(parse(text), Ok(expected), "{text:?}");
    }
    for wrong in [
        "https://huggingface.co/",
        "https://huggingface.co/a",
        "https://huggingface.co/a/b/resolve/main",
        "https://huggingface.co/a/b/resolve/main/README.md",
        "https://huggingface.co/a/b/resolve/main/%2e%2e%2fc.gguf",
        "https://huggingface.co/a/b/resolve/main/a%00.gguf",
        "https://huggingface.co/a/b/resolve/refs%2Fpr%2F1/c.gguf",
        "https://huggingface.co/datasets/a/b/resolve/main/c.gguf",
        "https://huggingface.co/a/b/discussions",
    ] {
        assert_eq!(parse(wrong).unwrap_err().code, Code::BadRequest, "{wrong}");
    }
}

#[test]
fn other_servers_need_https_and_local_ones_http() {
    for url in [
        "https://example.org/models/a.gguf",
        "https://example.org:8443/a.GGUF?sig=x",
        "http://127.0.0.1:8080/a.gguf",
        "http://192.168.1.5/a.gguf",
        "http://[::1]:1/a.gguf",
        "http://nas.local/a.gguf",
        "http://localhost/a.gguf",
    ] {
        assert_eq!(parse(url), Ok(Reference::Url(Url::parse(url).unwrap())));
    }
    for wrong in [
        "http://example.org/a.gguf",
        "http://127.0.0.1.example.org/a.gguf",
        "ftp://example.org/a.gguf",
        "file:///etc/a.gguf",
        "https://example.org/a.zip",
        "https://example.org/",
        "https://",
        "https://example.org/a%2Fb.gguf",
    ] {
        assert_eq!(parse(wrong).unwrap_err().code, Code::BadRequest, "{wrong}");
    }
    assert_eq!(
        parse("https://h.example/a.gguf?Signature=secret")
            .unwrap()
            .to_string(),
        "https://h.example/a.gguf"
    );
}

#[test]
fn a_password_in_an_address_is_refused_and_not_repeated() {
    let error = parse("https://user:hunter2@example.org/a.gguf").unwrap_err();
    assert_eq!(error.code, Code::BadRequest);
    assert!(!format!("{error:?}").contains("hunter2"));
    let error = parse("https://example.org/a.zip?Signature=hunter2").unwrap_err();
    assert!(!format!("{error:?}").contains("hunter2"));
}

#[test]
fn catalog_names_may_have_a_quant() {
    let entry = |id: &str, quant: Option<&str>| {
        Ok(Reference::Catalog {
            id: id.to_owned(),
            quant: quant.map(str::to_owned),
        })
    };
    assert_eq!(parse("gemma-4-e4b"), entry("gemma-4-e4b", None));
    assert_eq!(
        parse("gemma-4-e4b:Q4_K_M"),
        entry("gemma-4-e4b", Some("Q4_K_M"))
    );
    assert_eq!(parse("gemma4:e4b"), entry("gemma-4-e4b", None));
    assert_eq!(parse("gemma4:latest"), entry("gemma-4-e4b", None));
    assert_eq!(
        parse("gemma4:e4b:Q5_K_M"),
        entry("gemma-4-e4b", Some("Q5_K_M"))
    );
    assert_eq!(parse("smollm2"), entry("smollm2-135m", None));
    assert_eq!(parse("llama9:70b").unwrap_err().code, Code::ModelUnknown);
    assert_eq!(parse("nothing").unwrap_err().code, Code::ModelUnknown);
    assert_eq!(parse("gemma-4-e4b:").unwrap_err().code, Code::BadRequest);
    assert_eq!(
        parse("gemma-4-e4b:../x").unwrap_err().code,
        Code::BadRequest
    );
}

#[test]
fn hostile_names_get_a_printable_reason() {
    let long = format!("a/{}", "b".repeat(300));
    let long_file = format!("a/b/{}.gguf", "c".repeat(300));
    let longest = "a".repeat(10_000);
    for text in [
        "",
        "   ",
        "/",
        "//",
        "a/",
        "/b",
        "a//",
        "a/b/",
        "/etc/passwd",
        "~/model.gguf",
        "./a/b",
        "../a/b",
        "a/..",
        "../..",
        "a/b/../c.gguf",
        "a/b//c.gguf",
        "a/b/./c.gguf",
        "a/b//etc/x.gguf",
        "a/b/c.gguf/..",
        "a/b/c.txt",
        "a/b/.gguf",
        "a/b\0",
        "a/b/c\0.gguf",
        "a/b/c\u{202e}fugg.gguf",
        "a/b/c\u{61c}fugg.gguf",
        "a/b/c\u{2028}d.gguf",
        "a\n/b",
        "a b/c",
        "ä/b",
        "a/b:",
        "a/b:c:d",
        "a/b:q/../x",
        "a/b:q q",
        "-a/b",
        "a-/b",
        ".a/b",
        "a/b.",
        "a--b/c",
        "a/b..c",
        "C:\\models\\a.gguf",
        "a/b/c\\d.gguf",
        "a/b@x",
        "a/b?x",
        "hf.co/a",
        "hf.co/",
        "hf.co//b",
        &long,
        &long_file,
        &longest,
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.code, Code::BadRequest, "{text:?}");
        assert!(error.hint.is_some(), "{text:?}");
        assert!(
            error.message.chars().all(|c| !is_unprintable(c)),
            "{text:?}"
        );
        assert!(error.message.len() < 1200, "{text:?}");
    }
}

#[test]
fn a_local_path_gets_its_own_hint() {
    let hint = parse("/Users/me/model.gguf").unwrap_err().hint.unwrap();
    assert!(hint.contains("models import"), "{hint}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_accepted_reference_is_safe_and_reads_back(
        text in prop_oneof![
            ".{0,60}",
            "[a-zA-Z0-9._/:%~@ \\\\-]{0,40}",
            "(hf.co/|huggingface.co/|https://huggingface.co/|https://x.example/|)[a-z.-]{1,5}/[a-z0-9.-]{1,5}(:[A-Z0-9_]{1,5}|/[a-z./%0-9ä ]{0,12}\\.gguf|)",
            "https://(hf.co|a.example)/[a-z]{1,3}/[a-z]{1,3}/(resolve|blob|tree)/[a-z0-9.%]{1,6}/?[a-z./%0-9]{0,12}(\\.gguf)?",
        ]
    ) {
        let Ok(reference) = parse(&text) else { return Ok(()) };
        let shown = reference.to_string();
        prop_assert!(!shown.chars().any(is_unprintable), "{shown:?}");
        let with_query = matches!(&reference, Reference::Url(url) if url.query().is_some());
        if !with_query {
            prop_assert_eq!(parse(&shown), Ok(reference.clone()), "{:?}", shown);
        }
        if let Reference::Hub { repository, pick, .. } = &reference {
            prop_assert!(Repository::new(&repository.to_string()).is_ok());
            if let Pick::File(path) = pick {
                prop_assert!(path_problem(path).is_none() && is_gguf(path), "{path:?}");
            }
        }
    }
}
