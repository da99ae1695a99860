use super::*;
use files::{Record, Records, Target};
use std::{fs, os::unix::fs::PermissionsExt};
use tierbar_connect::table;

fn client() -> &'static Client {
    find("claude-code").unwrap()
}

#[test]
fn the_documents_list_every_client() {
    let docs = include_str!("../../../../../docs/clients.md");
    let table = table();
    assert!(
        docs.contains(&table),
        "docs/clients.md should have this table:\n\n{table}"
    );
}

#[test]
fn an_unknown_client_is_met_with_a_near_one() {
    let hint = |id: &str| unknown(id).hint.unwrap();
    assert!(hint("claude").contains("did you mean claude-"));
    assert!(hint("LiteLLM").contains("did you mean litellm?"));
    assert!(hint("cluade-code").contains("did you mean claude-code?"));
    assert!(hint("emacs").contains("the settings of `openai`"));
}

#[test]
fn a_file_is_found_read_and_replaced() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name).display().to_string();
    let (first, second) = (at("none/a.json"), at("b.json"));
    let paths = [first.as_str(), second.as_str()];
    let new = Target::find(client(), &paths).unwrap();
    assert_eq!(
        (new.path.display().to_string(), new.text.as_deref()),
        (second.clone(), None)
    );
    new.write(Some("{}\n")).unwrap();
    let found = Target::find(client(), &paths).unwrap();
    assert_eq!(found.text.as_deref(), Some("{}\n"));
    let missing = Target::find(client(), &[first.as_str()]).unwrap_err();
    assert_eq!(missing.code, Code::NotFound);
    assert!(missing.hint.unwrap().contains("start Claude Code once"));
}

#[test]
fn a_file_that_its_app_writes_meanwhile_is_left() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.json");
    let new = Target::read(path.clone()).unwrap();
    new.check_unchanged().unwrap();
    fs::write(&path, "{}").unwrap();
    assert_eq!(new.check_unchanged().unwrap_err().code, Code::Conflict);
    let read = Target::read(path.clone()).unwrap();
    read.check_unchanged().unwrap();
    fs::write(&path, "[]").unwrap();
    assert_eq!(read.check_unchanged().unwrap_err().code, Code::Conflict);
    fs::remove_file(&path).unwrap();
    assert_eq!(read.check_unchanged().unwrap_err().code, Code::Conflict);
}

#[test]
fn a_link_stays_a_link_and_what_cannot_be_written_is_named() {
    let home = tempfile::tempdir().unwrap();
    let (real, link) = (home.path().join("real.json"), home.path().join("link.json"));
    fs::write(&real, "{}").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    Target::read(link.clone())
        .unwrap()
        .write(Some("[]"))
        .unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "[]");
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o640
    );
    let message = |path: &std::path::Path| Target::read(path.to_owned()).unwrap_err().message;
    fs::set_permissions(&real, fs::Permissions::from_mode(0o440)).unwrap();
    assert!(message(&link).ends_with("is read-only"));
    fs::remove_file(&real).unwrap();
    assert!(message(&link).ends_with("is a link to a file that does not exist"));
    assert!(message(home.path()).ends_with("is not a file"));
    fs::write(&real, [0xff, 0xfe]).unwrap();
    assert!(message(&real).contains("cannot be read"));
}

#[test]
fn a_record_is_kept_for_its_owner_and_removed() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().join("data");
    let records = Records::new(Some(&home), client());
    assert!(records.read().unwrap().is_none());
    let record = Record {
        path: "/a".into(),
        form: tierbar_connect::Form::Json,
        before: Some("old".to_owned()),
        after: "new".to_owned(),
        changes: Vec::new(),
        key: None,
    };
    records.write(&record).unwrap();
    assert_eq!(fs::read_to_string(records.backup()).unwrap(), "old");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o077;
    assert_eq!(
        (mode(&home.join("connect")), mode(&records.backup())),
        (0, 0)
    );
    assert_eq!(records.read().unwrap().unwrap().after, "new");
    fs::write(home.join("connect/claude-code.json"), "{").unwrap();
    assert_eq!(records.read().unwrap_err().code, Code::Storage);
    records.forget().unwrap();
    assert!(records.read().unwrap().is_none() && records.backup().exists());
    records.remove().unwrap();
    assert!(!records.backup().exists());
}

#[test]
fn the_environment_is_printed_alone() {
    let server = ClientServer {
        url: "http://127.0.0.1:11435".to_owned(),
        key_required: false,
        tiers: Vec::new(),
        embedder: None,
        mcp_command: Vec::new(),
    };
    let lines = environment(&render(client(), &server, None, None)).unwrap();
    assert!(
        lines
            .lines()
            .all(|line| line.starts_with("export ANTHROPIC_")
                || line.starts_with("export CLAUDE_CODE_MAX_"))
    );
    let none = environment(&render(find("zed").unwrap(), &server, None, None));
    assert_eq!(none.unwrap_err().code, Code::BadRequest);
    let all = render_settings(client(), &render(client(), &server, None, None));
    assert!(all.contains("Warning: no tier has a model yet"), "{all}");
    assert!(all.contains("In ~/.claude/settings.json:"), "{all}");
    assert!(
        all.ends_with("tierbar connect claude-code --write\n"),
        "{all}"
    );
}
