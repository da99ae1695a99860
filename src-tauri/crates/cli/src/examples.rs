//! The examples at the end of each command's help.

use clap::Command;

/// By command. A test parses each example.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "serve",
        &["tierbar serve", "tierbar serve --listen 127.0.0.1:0 --json"],
    ),
    (
        "service install",
        &[
            "tierbar service install",
            "sudo tierbar service install --before-login --yes",
        ],
    ),
    ("chats", &["tierbar chats"]),
    ("chats list", &["tierbar chats list --json"]),
    ("chats search", &["tierbar chats search lentil soup"]),
    (
        "chats show",
        &["tierbar chats show 5f2b0c1e-8f1e-4a52-9a45-2f6f7a0c9d11 --reasoning"],
    ),
    (
        "chats export",
        &[
            "tierbar chats export 5f2b0c1e-8f1e-4a52-9a45-2f6f7a0c9d11",
            "tierbar chats export --all --format json --output ~/Chats",
        ],
    ),
    (
        "chats import",
        &["tierbar chats import ~/Downloads/conversations.json"],
    ),
    (
        "chats delete",
        &["tierbar chats delete 5f2b0c1e-8f1e-4a52-9a45-2f6f7a0c9d11"],
    ),
    (
        "chats restore",
        &["tierbar chats restore 5f2b0c1e-8f1e-4a52-9a45-2f6f7a0c9d11"],
    ),
    (
        "requests",
        &["tierbar requests", "tierbar requests -n 100 --json"],
    ),
    ("link", &["tierbar link", "open \"$(tierbar link)\""]),
    ("service status", &["tierbar service status"]),
    ("service uninstall", &["tierbar service uninstall"]),
    (
        "setup",
        &[
            "tierbar setup",
            "tierbar setup --dry-run --ram 24GiB",
            "tierbar setup --tiers fast,primary --yes",
        ],
    ),
    (
        "status",
        &[
            "tierbar status",
            "tierbar status --plan",
            "tierbar status --json | jq '.tiers[].state'",
        ],
    ),
    (
        "log",
        &["tierbar log --follow", "tierbar log --tier heavy -n 20"],
    ),
    ("models", &["tierbar models"]),
    ("models list", &["tierbar models list --json"]),
    (
        "models fit",
        &[
            "tierbar models fit gemma-4-e4b",
            "tierbar models fit unsloth/Qwen3.5-4B-GGUF:Q4_K_M --context 32768 --ram 16GiB",
        ],
    ),
    (
        "models pull",
        &[
            "tierbar models pull gemma-4-e4b",
            "tierbar models pull unsloth/Qwen3.5-4B-GGUF:Q4_K_M --tier primary",
            "tierbar models pull gemma-4-e4b --no-media --to /Volumes/Models",
        ],
    ),
    (
        "models import",
        &["tierbar models import", "tierbar models import ~/Models"],
    ),
    (
        "models use",
        &[
            "tierbar models use gemma-4-E4B-it-Q4_K_M primary",
            "tierbar models use nomic-embed-text-v1.5.Q8_0",
        ],
    ),
    (
        "models rm",
        &["tierbar models rm SmolLM2-135M-Instruct-Q4_1"],
    ),
    (
        "models verify",
        &[
            "tierbar models verify",
            "tierbar models verify gemma-4-E4B-it-Q4_K_M",
        ],
    ),
    (
        "models show",
        &[
            "tierbar models show",
            "tierbar models show gemma-4-e4b",
            "tierbar models show gemma-4-e4b --readme",
        ],
    ),
    ("models refresh", &["tierbar models refresh"]),
    ("models search", &["tierbar models search qwen3 coder"]),
    ("mcp", &["tierbar mcp"]),
    ("documents", &["tierbar documents"]),
    (
        "documents add",
        &[
            "tierbar documents add ~/Papers",
            "tierbar documents add ~/Mail/offers --collection Offers",
        ],
    ),
    (
        "documents list",
        &["tierbar documents list", "tierbar documents list --files 1"],
    ),
    (
        "documents search",
        &["tierbar documents search renewal of the lease"],
    ),
    (
        "documents ask",
        &[
            "tierbar documents ask when does the lease end",
            "tierbar documents ask what is new here --file 12 --whole",
        ],
    ),
    ("documents rm", &["tierbar documents rm 1"]),
    (
        "documents pictures",
        &[
            "tierbar documents pictures 1",
            "tierbar documents pictures 1 --off",
        ],
    ),
    ("documents pause", &["tierbar documents pause"]),
    ("documents resume", &["tierbar documents resume"]),
    ("downloads", &["tierbar downloads"]),
    ("downloads pause", &["tierbar downloads pause 3f2a"]),
    ("downloads resume", &["tierbar downloads resume 3f2a"]),
    ("downloads cancel", &["tierbar downloads cancel 3f2a"]),
    ("queue", &["tierbar queue"]),
    ("queue list", &["tierbar queue list --state failed -n 5"]),
    ("queue show", &["tierbar queue show 3f2a"]),
    ("queue cancel", &["tierbar queue cancel 3f2a"]),
    ("queue secret", &["tierbar queue secret"]),
    ("secret", &["tierbar secret"]),
    (
        "secret set",
        &[
            "tierbar secret set hugging-face",
            "tierbar secret set hugging-face < token.txt",
        ],
    ),
    ("secret rm", &["tierbar secret rm hugging-face"]),
    ("secret list", &["tierbar secret list"]),
    (
        "connect",
        &[
            "tierbar connect",
            "tierbar connect claude-code --write",
            "eval \"$(tierbar connect claude-code --env)\"",
        ],
    ),
    ("origins", &["tierbar origins"]),
    (
        "origins allow",
        &["tierbar origins allow http://localhost:3000"],
    ),
    (
        "origins revoke",
        &["tierbar origins revoke http://localhost:3000"],
    ),
    ("key", &["tierbar key"]),
    (
        "key add",
        &[
            "tierbar key add laptop",
            "tierbar key add ci --requests-per-minute 60 --tokens-per-day 100000",
        ],
    ),
    ("key list", &["tierbar key list"]),
    ("key revoke", &["tierbar key revoke laptop"]),
    ("sessions", &["tierbar sessions"]),
    ("sessions list", &["tierbar sessions list --json"]),
    ("sessions end", &["tierbar sessions end"]),
    ("tier", &["tierbar tier"]),
    ("tier list", &["tierbar tier list --json"]),
    (
        "tier use",
        &[
            "tierbar tier use fast gemma-4-E2B-it-Q4_K_M",
            "tierbar tier use embedder nomic-embed-text-v1.5.Q8_0",
        ],
    ),
    ("tier start", &["tierbar tier start fast"]),
    (
        "tier stop",
        &["tierbar tier stop heavy", "tierbar tier stop heavy --force"],
    ),
    ("pause", &["tierbar pause", "tierbar pause --for 2h"]),
    ("resume", &["tierbar resume"]),
    (
        "chat",
        &[
            "tierbar chat",
            "tierbar chat --agent --web duckduckgo",
            "tierbar chat --once \"What is the capital of France?\" --json",
        ],
    ),
    (
        "triage",
        &[
            "tierbar triage mail.txt",
            "tierbar triage --json < mail.txt",
        ],
    ),
    ("compress", &["tierbar compress --words 100 report.txt"]),
    (
        "summarize",
        &[
            "tierbar summarize report.txt",
            "tierbar summarize --words 50 < notes.txt",
        ],
    ),
    ("brief", &["tierbar brief events.jsonl --email"]),
    (
        "route",
        &[
            "tierbar route What is the capital of France?",
            "tierbar route --classify \"Prove that the root of 2 is irrational\"",
        ],
    ),
    ("contexts", &["tierbar contexts"]),
    (
        "contexts list",
        &[
            "tierbar contexts list --json",
            "tierbar contexts list --store",
        ],
    ),
    (
        "contexts save",
        &[
            "tierbar contexts save book --tier heavy",
            "tierbar contexts save book --replace",
        ],
    ),
    ("contexts load", &["tierbar contexts load book"]),
    (
        "contexts push",
        &[
            "tierbar contexts push book",
            "tierbar contexts push book --replace",
        ],
    ),
    ("contexts pull", &["tierbar contexts pull book"]),
    (
        "contexts rm",
        &[
            "tierbar contexts rm book",
            "tierbar contexts rm book --store",
        ],
    ),
    ("agent", &["tierbar agent", "tierbar agent --json"]),
    (
        "agent measure",
        &["tierbar agent measure", "tierbar agent measure fast --show"],
    ),
    ("agent grants", &["tierbar agent grants"]),
    (
        "agent revoke",
        &[
            "tierbar agent revoke 5f2b0c1e-8f1e-4a52-9a45-2f6f7a0c9d11",
            "tierbar agent revoke --all",
        ],
    ),
    (
        "agent undo",
        &["tierbar agent undo", "tierbar agent undo --list"],
    ),
    ("grades", &["tierbar grades"]),
    ("grades list", &["tierbar grades list --json"]),
    (
        "grades export",
        &[
            "tierbar grades export --form pairs > pairs.jsonl",
            "tierbar grades export --form labels > labels.jsonl",
        ],
    ),
    ("grades reset", &["tierbar grades reset --yes"]),
    ("costs", &["tierbar costs", "tierbar costs --days 7"]),
    ("costs requests", &["tierbar costs requests --json"]),
    ("costs tasks", &["tierbar costs tasks --days 7"]),
    (
        "costs break-even",
        &[
            "tierbar costs break-even --machine-price 600 --idle-watts 5 --busy-watts 35 --hours-on 24 --hours-busy 4 \
             --kwh-price 0.3 --cloud-input-price 2.5 --cloud-output-price 10 --local-share 0.5",
        ],
    ),
    ("schedule", &["tierbar schedule"]),
    ("schedule list", &["tierbar schedule list"]),
    (
        "schedule add",
        &[
            "tierbar schedule add nightly --at 02:00 --task brief --source ~/logs --to ~/briefs/{date}.md",
            "tierbar schedule add notes --at 07:00 --days mon,fri --task summarize --source ~/notes --to ~/notes.md",
        ],
    ),
    ("schedule rm", &["tierbar schedule rm nightly"]),
    ("schedule run", &["tierbar schedule run nightly"]),
    ("mcp-servers", &["tierbar mcp-servers"]),
    ("mcp-servers list", &["tierbar mcp-servers list --json"]),
    (
        "mcp-servers add",
        &[
            "tierbar mcp-servers add notes --folder ~/Notes --network -- npx -y @modelcontextprotocol/server-filesystem .",
            "tierbar mcp-servers add issues --url https://mcp.example.com/mcp --tools search,fetch",
            "tierbar mcp-servers add wiki --url https://wiki.example.com/mcp --anyway",
        ],
    ),
    ("mcp-servers rm", &["tierbar mcp-servers rm notes"]),
    ("mcp-servers test", &["tierbar mcp-servers test notes"]),
    (
        "bench",
        &[
            "tierbar bench --tier fast",
            "tierbar bench --tier fast --show --json",
        ],
    ),
    ("tune", &["tierbar tune --tier fast --dry-run"]),
    (
        "config list",
        &["tierbar config list", "tierbar config list notifications"],
    ),
    (
        "config get",
        &[
            "tierbar config get policy.home",
            "tierbar config get tiers.fast --json",
        ],
    ),
    (
        "config set",
        &[
            "tierbar config set menu_bar.text memory",
            "tierbar config set notifications.downloads on",
            "tierbar config set library.folders ~/Models,/Volumes/Disk/Models",
        ],
    ),
    ("config unset", &["tierbar config unset policy.quiet_hours"]),
    ("config edit", &["tierbar config edit"]),
    ("doctor", &["tierbar doctor"]),
    ("diagnose", &["tierbar diagnose > tierbar.txt"]),
    (
        "completions",
        &[
            "source <(tierbar completions bash)",
            "source <(tierbar completions zsh)",
            "tierbar completions fish | source",
        ],
    ),
    ("man", &["tierbar man > tierbar.1"]),
];

/// Ends the help of each command with its examples.
pub(crate) fn add(command: Command) -> Command {
    add_below(command, "")
}

fn add_below(command: Command, name: &str) -> Command {
    let own = EXAMPLES.iter().find(|(of, _)| *of == name);
    let command = match own {
        Some((_, examples)) => {
            command.after_help(format!("Examples:\n  {}", examples.join("\n  ")))
        }
        None => command,
    };
    command.mut_subcommands(|below| {
        let name = format!("{name} {}", below.get_name());
        add_below(below, name.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::each_command;
    use std::collections::BTreeSet;

    /// Returns the words that a shell gives to `tierbar`.
    fn words(example: &str) -> Vec<String> {
        let begins = example.find("tierbar ").unwrap();
        let call = example[begins..].split([')', '|', '<', '>']).next();
        let mut words = Vec::new();
        for (at, part) in call.unwrap().split('"').enumerate() {
            if at % 2 == 1 {
                words.push(part.to_owned());
            } else {
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        words
    }

    /// Returns the name of the command that an example runs.
    fn parsed(example: &str) -> Result<String, clap::Error> {
        let matches = crate::command().try_get_matches_from(words(example))?;
        let (mut names, mut at) = (Vec::new(), &matches);
        while let Some((name, below)) = at.subcommand() {
            names.push(name);
            at = below;
        }
        Ok(names.join(" "))
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        let mut named = BTreeSet::new();
        each_command(&mut |name, _| {
            let (_, examples) = EXAMPLES
                .iter()
                .find(|(of, _)| *of == name)
                .unwrap_or_else(|| panic!("{name} has no example in examples.rs"));
            assert!((1..=3).contains(&examples.len()), "{name}");
            for example in *examples {
                match parsed(example) {
                    Ok(command) => assert_eq!(command, name, "{example}"),
                    Err(error) => panic!("{example}: {error}"),
                }
            }
            named.insert(name.to_owned());
        });
        for (name, _) in EXAMPLES {
            assert!(named.contains(*name), "there is no command {name}");
        }
    }

    #[test]
    fn help_ends_with_the_examples() {
        let mut command = crate::command();
        let key = command.find_subcommand_mut("key").unwrap();
        let add = key.find_subcommand_mut("add").unwrap();
        let help = add.render_help().to_string();
        assert!(
            help.contains("Examples:\n  tierbar key add laptop\n"),
            "{help}"
        );
    }
}
