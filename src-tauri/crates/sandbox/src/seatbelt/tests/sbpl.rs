//! Reads a profile in the language of `sandbox-exec`, and decides as macOS does: of the rules that match, the last one holds. Only what
//! published profiles have is read, so that a misspelt operation is an error and not a rule that never matches.

use super::Profile;
use std::{collections::BTreeMap, path::Path};

/// The operations that Apple's own and other published profiles name, without those that they have for groups (`file-read*`).
const OPERATIONS: &str = "default appleevent-send authorization-right-obtain distributed-notification-post dynamic-code-generation \
    file-chroot file-clone file-ioctl file-issue-extension file-link file-map-executable file-mknod file-mount file-read-data \
    file-read-metadata file-read-xattr file-revoke file-search file-test-existence file-unmount file-write-acl file-write-create \
    file-write-data file-write-flags file-write-mode file-write-owner file-write-setugid file-write-times file-write-unlink \
    file-write-xattr generic-issue-extension hid-control iokit-get-properties iokit-issue-extension iokit-open-service \
    iokit-open-user-client iokit-set-properties ipc-posix-issue-extension ipc-posix-sem ipc-posix-shm-read-data \
    ipc-posix-shm-read-metadata ipc-posix-shm-write-create ipc-posix-shm-write-data ipc-posix-shm-write-unlink ipc-sysv-msg \
    ipc-sysv-sem ipc-sysv-shm job-creation lsopen mach-bootstrap mach-cross-domain-lookup mach-derive-port \
    mach-host-exception-port-set mach-host-special-port-set mach-issue-extension mach-lookup mach-priv-host-port mach-priv-task-port \
    mach-register mach-task-name mach-task-special-port-set network-bind network-inbound network-outbound nvram-get nvram-set \
    process-codesigning-status-get process-codesigning-status-set process-exec process-exec-interpreter process-fork \
    process-info-codesignature process-info-dirtycontrol process-info-listpids process-info-pidinfo process-info-rusage \
    process-info-setcontrol pseudo-tty signal socket-ioctl sysctl-read sysctl-write system-audit system-fsctl system-privilege \
    system-socket user-preference-read user-preference-write";

/// What a program does, and to what: a path, a name, an address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use<'a>(pub(super) &'a str, pub(super) &'a str);

#[derive(Debug)]
struct Rule {
    allows: bool,
    operations: Vec<String>,
    /// One of them must match; none: everything does.
    filters: Vec<Filter>,
}

#[derive(Debug)]
enum Filter {
    Literal(String),
    Subpath(String),
    /// Of a service, a semaphore, an address, a process or a kind of file, where the whole of it or its beginning is compared.
    Is(String),
    Begins(String),
}

#[derive(Debug)]
pub(super) struct Rules(Vec<Rule>);

#[derive(Debug)]
enum Form {
    Word(String),
    Text(String),
    List(Vec<Form>),
}

impl Rules {
    /// # Panics
    /// If the profile has something that no published one has, or lacks a parameter.
    pub(super) fn read(profile: &Profile) -> Self {
        let parameters = profile.parameters.iter();
        let parameters = parameters
            .map(|pair| pair.split_once('=').unwrap())
            .collect();
        let mut forms = forms(&profile.text).into_iter();
        let version = forms.next().unwrap();
        assert_eq!(words(&version), ["version", "1"]);
        Self(forms.map(|form| rule(&form, &parameters)).collect())
    }

    pub(super) fn allow(&self, Use(operation, object): Use<'_>) -> bool {
        assert!(is_known(operation), "{operation}");
        let mut rules = self.0.iter().rev();
        let last = rules.find(|rule| {
            let mut named = rule.operations.iter();
            let mut filters = rule.filters.iter();
            named.any(|pattern| covers(pattern, operation))
                && (rule.filters.is_empty() || filters.any(|filter| filter.matches(object)))
        });
        last.expect("a rule for everything else").allows
    }
}

impl Filter {
    fn matches(&self, object: &str) -> bool {
        match self {
            Self::Literal(path) | Self::Is(path) => object == path,
            Self::Subpath(path) => Path::new(object).starts_with(path),
            Self::Begins(name) => object.starts_with(name.as_str()),
        }
    }
}

/// Whether a rule for this pattern is about the operation.
fn covers(pattern: &str, operation: &str) -> bool {
    match pattern.strip_suffix('*') {
        _ if pattern == "default" => true,
        Some(group) => operation.starts_with(group),
        None => operation == pattern,
    }
}

fn is_known(pattern: &str) -> bool {
    OPERATIONS.split_whitespace().any(|operation| {
        pattern == operation || pattern.ends_with('*') && covers(pattern, operation)
    })
}

fn rule(form: &Form, parameters: &BTreeMap<&str, &str>) -> Rule {
    let Form::List(parts) = form else {
        panic!("{form:?} is no rule");
    };
    let mut parts = parts.iter();
    let allows = match parts.next() {
        Some(Form::Word(action)) if action == "allow" => true,
        Some(Form::Word(action)) if action == "deny" => false,
        other => panic!("{other:?} is no action"),
    };
    let (mut operations, mut filters) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Form::Word(operation) => {
                assert!(filters.is_empty() && is_known(operation), "{operation}");
                operations.push(operation.clone());
            }
            part => filters.push(filter(part, parameters)),
        }
    }
    assert!(!operations.is_empty(), "{form:?}");
    Rule {
        allows,
        operations,
        filters,
    }
}

fn filter(form: &Form, parameters: &BTreeMap<&str, &str>) -> Filter {
    let Form::List(parts) = form else {
        panic!("{form:?} is no filter");
    };
    match parts.as_slice() {
        [Form::Word(kind), object] if kind == "subpath" => {
            Filter::Subpath(text(object, parameters))
        }
        [Form::Word(kind), object] if kind == "literal" => {
            Filter::Literal(text(object, parameters))
        }
        [Form::Word(kind), object] if kind == "global-name" => Filter::Is(text(object, parameters)),
        [Form::Word(kind), object] if kind == "ipc-posix-name-prefix" => {
            Filter::Begins(text(object, parameters))
        }
        [Form::Word(remote), Form::Word(tcp), object] if remote == "remote" && tcp == "tcp" => {
            Filter::Is(text(object, parameters))
        }
        [Form::Word(kind), Form::Word(whom)] if kind == "target" && whom == "same-sandbox" => {
            Filter::Is(whom.clone())
        }
        [Form::Word(kind), Form::Word(vnode)] if kind == "vnode-type" => {
            assert!(vnode.ends_with("-DEVICE"), "{vnode}");
            Filter::Is(vnode.clone())
        }
        other => panic!("{other:?} is no known filter"),
    }
}

fn text(form: &Form, parameters: &BTreeMap<&str, &str>) -> String {
    match form {
        Form::Text(text) => text.clone(),
        Form::List(parts) => match parts.as_slice() {
            [Form::Word(param), Form::Text(name)] if param == "param" => (*parameters
                .get(name.as_str())
                .expect("the parameter is given"))
            .to_owned(),
            other => panic!("{other:?} is no text"),
        },
        Form::Word(word) => panic!("{word} is no text"),
    }
}

fn words(form: &Form) -> Vec<&str> {
    let Form::List(parts) = form else {
        return Vec::new();
    };
    let parts = parts.iter().filter_map(|part| match part {
        Form::Word(word) => Some(word.as_str()),
        _ => None,
    });
    parts.collect()
}

/// The forms of a text, which has texts in quotes without escapes.
fn forms(text: &str) -> Vec<Form> {
    let mut open: Vec<Vec<Form>> = vec![Vec::new()];
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '(' => {
                open.push(Vec::new());
                1
            }
            ')' => {
                let list = Form::List(open.pop().unwrap());
                open.last_mut().expect("a list is open").push(list);
                1
            }
            '"' => {
                let end = rest[1..].find('"').expect("the text ends");
                let text = rest[1..=end].to_owned();
                open.last_mut().unwrap().push(Form::Text(text));
                end + 2
            }
            _ => {
                let is_end = |letter: char| letter.is_whitespace() || "()\"".contains(letter);
                let end = rest.find(is_end).unwrap_or(rest.len());
                let word = rest[..end].to_owned();
                open.last_mut().unwrap().push(Form::Word(word));
                end
            }
        };
        rest = rest[length..].trim_start();
    }
    assert_eq!(open.len(), 1, "every list is closed");
    open.remove(0)
}

fn read(text: &str) -> Rules {
    let parameters = vec!["WORK=/work".to_owned()];
    Rules::read(&Profile {
        text: format!("(version 1)\n{text}"),
        parameters,
    })
}

#[test]
fn the_last_rule_that_matches_holds() {
    let rules = read(
        "(deny default) (allow file-read* (subpath (param \"WORK\")) (literal \"/etc\"))
         (deny file-read-data (subpath \"/work/secret\")) (allow mach-lookup (global-name \"a\"))",
    );
    for (operation, object, allowed) in [
        ("file-read-data", "/work/a", true),
        ("file-read-data", "/workshop/a", false),
        ("file-read-data", "/work/secret/a", false),
        ("file-read-metadata", "/work/secret/a", true),
        ("file-read-data", "/etc", true),
        ("file-read-data", "/etc/passwd", false),
        ("file-write-data", "/work/a", false),
        ("mach-lookup", "a", true),
        ("mach-lookup", "ab", false),
    ] {
        let object = Use(operation, object);
        assert_eq!(rules.allow(object), allowed, "{object:?}");
    }
}

#[test]
fn what_no_profile_has_is_an_error() {
    for wrong in [
        "(allow file-test-existance)",
        "(allow file-reads*)",
        "(allow file-read* (subpaths \"/a\"))",
        "(allow file-read* (subpath (param \"NONE\")))",
        "(permit file-read*)",
        "(allow (literal \"/a\"))",
        "(allow file-read*",
    ] {
        assert!(std::panic::catch_unwind(|| read(wrong)).is_err(), "{wrong}");
    }
}
