//! The examples at the end of each command's help.

use clap::Command;

/// Each is for the command that it calls, up to three for one. A test parses them.
const EXAMPLES: &[&str] = &[
    "tierbar serve",
    "tierbar serve --listen 127.0.0.1:0 --json",
    "tierbar service install",
    "sudo tierbar service install --before-login --yes",
    "tierbar chats",
    "tierbar chats list --json",
    "tierbar chats search lentil soup",
    "tierbar chats show 5f2b0c1e-8f1e-4a52-9a45-2f6f7a0c9d11 --reasoning",
    "tierbar chats export 5f2b0c1e-8f1e-4a52-9a45-2f6f7a0c9d11",
    "tierbar chats export --all --format json --output ~/Chats",
    "tierbar chats import ~/Downloads/conversations.json",
    "tierbar chats delete 5f2b0c1e-8f1e-4a52-9a45-2f6f7a0c9d11",
    "tierbar chats restore 5f2b0c1e-8f1e-4a52-9a45-2f6f7a0c9d11",
    "tierbar requests",
    "tierbar requests -n 100 --json",
    "tierbar link",
    "open \"$(tierbar link)\"",
    "tierbar service status",
    "tierbar service uninstall",
    "tierbar setup",
    "tierbar setup --dry-run --ram 24GiB",
    "tierbar setup --tiers fast,primary --yes",
    "tierbar status",
    "tierbar status --plan",
    "tierbar status --json | jq '.tiers[].state'",
    "tierbar log --follow",
    "tierbar log --tier heavy -n 20",
    "tierbar models",
    "tierbar models list --json",
    "tierbar models fit gemma-4-e4b",
    "tierbar models fit unsloth/Qwen3.5-4B-GGUF:Q4_K_M --context 32768 --ram 16GiB",
    "tierbar models pull gemma-4-e4b",
    "tierbar models pull unsloth/Qwen3.5-4B-GGUF:Q4_K_M --tier primary",
    "tierbar models pull gemma-4-e4b --no-media --to /Volumes/Models",
    "tierbar models import",
    "tierbar models import ~/Models",
    "tierbar models rm SmolLM2-135M-Instruct-Q4_1",
    "tierbar models verify",
    "tierbar models verify gemma-4-E4B-it-Q4_K_M",
    "tierbar models show",
    "tierbar models show gemma-4-e4b",
    "tierbar models show gemma-4-e4b --readme",
    "tierbar models refresh",
    "tierbar models search qwen3 coder",
    "tierbar mcp",
    "tierbar documents",
    "tierbar documents add ~/Papers",
    "tierbar documents add ~/Mail/offers --collection Offers",
    "tierbar documents list",
    "tierbar documents list --files 1",
    "tierbar documents search renewal of the lease",
    "tierbar documents ask when does the lease end",
    "tierbar documents ask what is new here --file 12 --whole",
    "tierbar documents rm 1",
    "tierbar documents pictures 1",
    "tierbar documents pictures 1 --off",
    "tierbar documents pause",
    "tierbar documents resume",
    "tierbar downloads",
    "tierbar downloads pause 3f2a",
    "tierbar downloads resume 3f2a",
    "tierbar downloads cancel 3f2a",
    "tierbar queue",
    "tierbar queue list --state failed -n 5",
    "tierbar queue show 3f2a",
    "tierbar queue cancel 3f2a",
    "tierbar queue secret",
    "tierbar secret",
    "tierbar secret set hugging-face",
    "tierbar secret set hugging-face < token.txt",
    "tierbar secret rm hugging-face",
    "tierbar secret list",
    "tierbar connect",
    "tierbar connect claude-code --write",
    "eval \"$(tierbar connect claude-code --env)\"",
    "tierbar origins",
    "tierbar origins allow http://localhost:3000",
    "tierbar origins revoke http://localhost:3000",
    "tierbar key",
    "tierbar key add laptop",
    "tierbar key add ci --requests-per-minute 60 --tokens-per-day 100000",
    "tierbar key list",
    "tierbar key revoke laptop",
    "tierbar sessions",
    "tierbar sessions list --json",
    "tierbar sessions end",
    "tierbar tier",
    "tierbar tier list --json",
    "tierbar tier use fast gemma-4-E2B-it-Q4_K_M",
    "tierbar tier use embedder nomic-embed-text-v1.5.Q8_0",
    "tierbar tier start fast",
    "tierbar tier stop heavy",
    "tierbar tier stop heavy --force",
    "tierbar pause",
    "tierbar pause --for 2h",
    "tierbar resume",
    "tierbar chat",
    "tierbar chat --agent --web duckduckgo",
    "tierbar chat --once \"What is the capital of France?\" --json",
    "tierbar triage mail.txt",
    "tierbar triage --json < mail.txt",
    "tierbar compress --words 100 report.txt",
    "tierbar summarize report.txt",
    "tierbar summarize --words 50 < notes.txt",
    "tierbar brief events.jsonl --email",
    "tierbar route What is the capital of France?",
    "tierbar route --classify \"Prove that the root of 2 is irrational\"",
    "tierbar contexts",
    "tierbar contexts list --json",
    "tierbar contexts list --store",
    "tierbar contexts save book --tier heavy",
    "tierbar contexts save book --replace",
    "tierbar contexts load book",
    "tierbar contexts push book",
    "tierbar contexts push book --replace",
    "tierbar contexts pull book",
    "tierbar contexts rm book",
    "tierbar contexts rm book --store",
    "tierbar agent",
    "tierbar agent --json",
    "tierbar agent measure",
    "tierbar agent measure fast --show",
    "tierbar agent grants",
    "tierbar agent revoke 5f2b0c1e-8f1e-4a52-9a45-2f6f7a0c9d11",
    "tierbar agent revoke --all",
    "tierbar agent undo",
    "tierbar agent undo --list",
    "tierbar grades",
    "tierbar grades list --json",
    "tierbar grades export --form pairs > pairs.jsonl",
    "tierbar grades export --form labels > labels.jsonl",
    "tierbar grades reset --yes",
    "tierbar costs",
    "tierbar costs --days 7",
    "tierbar costs requests --json",
    "tierbar costs tasks --days 7",
    "tierbar costs break-even --machine-price 600 --idle-watts 5 --busy-watts 35 --hours-on 24 --hours-busy 4 \
             --kwh-price 0.3 --cloud-input-price 2.5 --cloud-output-price 10 --local-share 0.5",
    "tierbar schedule",
    "tierbar schedule list",
    "tierbar schedule add nightly --at 02:00 --task brief --source ~/logs --to ~/briefs/{date}.md",
    "tierbar schedule add notes --at 07:00 --days mon,fri --task summarize --source ~/notes --to ~/notes.md",
    "tierbar schedule rm nightly",
    "tierbar schedule run nightly",
    "tierbar mcp-servers",
    "tierbar mcp-servers list --json",
    "tierbar mcp-servers add notes --folder ~/Notes --network -- npx -y @modelcontextprotocol/server-filesystem .",
    "tierbar mcp-servers add issues --url https://mcp.example.com/mcp --tools search,fetch",
    "tierbar mcp-servers add wiki --url https://wiki.example.com/mcp --anyway",
    "tierbar mcp-servers rm notes",
    "tierbar mcp-servers test notes",
    "tierbar bench --tier fast",
    "tierbar bench --tier fast --show --json",
    "tierbar tune --tier fast --dry-run",
    "tierbar config list",
    "tierbar config list notifications",
    "tierbar config get policy.home",
    "tierbar config get tiers.fast --json",
    "tierbar config set menu_bar.text memory",
    "tierbar config set notifications.downloads on",
    "tierbar config set library.folders ~/Models,/Volumes/Disk/Models",
    "tierbar config unset policy.quiet_hours",
    "tierbar config edit",
    "tierbar doctor",
    "tierbar diagnose > tierbar.txt",
    "source <(tierbar completions bash)",
    "source <(tierbar completions zsh)",
    "tierbar completions fish | source",
    "tierbar man > tierbar.1",
];

/// Ends the help of a command with its examples.
pub(crate) fn add(command: Command, name: &str) -> Command {
    let call = format!("tierbar {name}");
    let call = call.trim_end();
    let is_own = |example: &&str| {
        example.split_once(call).is_some_and(|(_, rest)| {
            let mut words = rest.split([' ', ')']);
            let is_whole = words.next() == Some("");
            let below = words.next().and_then(|word| command.find_subcommand(word));
            is_whole && below.is_none()
        })
    };
    let own: Vec<_> = EXAMPLES.iter().copied().filter(is_own).collect();
    match own.as_slice() {
        [] => command,
        own => command.after_help(format!("Examples:\n  {}", own.join("\n  "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::each_command;
    use std::collections::BTreeMap;

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
        let mut by_command = BTreeMap::<String, Vec<&str>>::new();
        for example in EXAMPLES {
            match parsed(example) {
                Ok(command) => by_command.entry(command).or_default().push(example),
                Err(error) => panic!("{example}: {error}"),
            }
        }
        each_command(&mut |name, command| {
            let examples = by_command
                .remove(name)
                .unwrap_or_else(|| panic!("{name} has no example in examples.rs"));
            assert!((1..=3).contains(&examples.len()), "{name}");
            let help = command.get_after_help().unwrap().to_string();
            assert_eq!(help, format!("Examples:\n  {}", examples.join("\n  ")));
        });
        assert!(by_command.is_empty(), "{by_command:?}");
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
