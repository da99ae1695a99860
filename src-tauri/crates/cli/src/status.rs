//! `tierbar status`: memory, speed and tiers of the running host.

use crate::{
    client::{Client, read_answer, read_field},
    experts, output,
};
use std::path::PathBuf;
use tierbar_core::{
    Error, Modality,
    budget::{LoadPlan, gib},
    chain::{ChainStatus, Gate, StepStatus},
    paging::PagingStatus,
    status::{Pressure, Status, TierStatus},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the status as JSON
    #[arg(long)]
    json: bool,
    /// Show the memory plan of each loaded tier
    #[arg(long)]
    plan: bool,
    /// Draw which experts of a model larger than memory are in memory, a line for each layer
    #[arg(long)]
    experts: bool,
}

pub(crate) async fn run(home: Option<PathBuf>, args: &Args) -> Result<(), Error> {
    let client = Client::running(home.as_ref())?;
    let mut body = client.get("/tierbar/v1/status").await?;
    let paging = client.get("/tierbar/v1/paging").await?;
    let mut chains = client.get("/tierbar/v1/chains").await?;
    if args.json {
        body["paging"] = paging;
        body["chains"] = chains["chains"].take();
        output::write_line(&body.to_string());
        return Ok(());
    }
    output::write(&render_status(
        &read_answer(body)?,
        &read_answer(paging)?,
        args,
    ));
    let chains: Vec<ChainStatus> = read_field(chains, "chains")?;
    if !chains.is_empty() {
        output::write("\n");
    }
    for chain in &chains {
        output::write(&chain_line(chain));
    }
    let folder = home.unwrap_or_else(tierbar_host::data_folder);
    let token_file = folder.join("token");
    output::write_line(&format!(
        "\nTo open the web interface, run `tierbar link`, or sign in with the token in {}",
        token_file.display()
    ));
    Ok(())
}

fn render_status(status: &Status, paging: &PagingStatus, args: &Args) -> String {
    let (ram, swap, speed) = (&status.ram, &status.swap, &status.speed);
    let used = ram.total_bytes.saturating_sub(ram.available_bytes);
    let pressure = match ram.pressure {
        Pressure::Normal => "",
        Pressure::Warning => ", under pressure",
        Pressure::Critical => ", under critical pressure",
    };
    let growth = match u64::try_from(swap.growth_bytes_per_minute) {
        Ok(growth) if growth > 0 => format!(", growing {}/min", gib(growth)),
        _ => String::new(),
    };
    let rate = |rate: Option<f64>| rate.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.1}"));
    let mut text = format!(
        "Tierbar {} on {}\n\nRAM      {} of {} in use{pressure}\nSwap     {}{growth}\nSpeed    {} tok/s decode, {} tok/s prefill\nBudget   {} of {} planned\n",
        status.version,
        status.url,
        gib(used),
        gib(ram.total_bytes),
        gib(swap.used_bytes),
        rate(speed.decode_tokens_per_second),
        rate(speed.prefill_tokens_per_second),
        gib(status.budget.planned_bytes),
        gib(status.budget.total_bytes),
    );
    if let Some(disk) = paging.disk.as_ref().filter(|_| !paging.tiers.is_empty()) {
        text += &format!("Disk     {}\n", experts::describe_disk(disk));
    }
    text.push('\n');
    if let Some(why) = &status.guard.why {
        text += &format!("{why}\n\n");
    }
    for tier in &status.tiers {
        text += &format!("{}\n", tier_line(tier));
        if let Some(plan) = tier.plan.as_ref().filter(|_| args.plan) {
            text += &plan_lines(plan);
        }
        if let Some(paged) = paging.tiers.iter().find(|paged| paged.tier == tier.id) {
            text += &format!("                   {}\n", experts::describe(paged));
            for layer in experts::picture(paged).iter().filter(|_| args.experts) {
                text += &format!("                   {layer}\n");
            }
        }
    }
    for notice in &status.notices {
        text += &format!("\nnote: {notice}\n");
    }
    text
}

fn chain_line(chain: &ChainStatus) -> String {
    let step = |step: &StepStatus| match step {
        StepStatus::Endpoint { step, gate, .. } if *gate != Gate::Open => {
            format!("{step} ({})", gate.as_str())
        }
        StepStatus::Endpoint { step, .. } => step.to_string(),
        StepStatus::Here { step } => step.to_string(),
    };
    let steps: Vec<_> = chain.steps.iter().map(step).collect();
    let triage = if chain.triage {
        ", greetings and FYI on this machine"
    } else {
        ""
    };
    let name = chain.name.as_str();
    format!("{name:<8} chain     {}{triage}\n", steps.join(" → "))
}

/// Describes a tier in one line, with the reason for its state in a second.
pub(crate) fn tier_line(tier: &TierStatus) -> String {
    let model = tier
        .model
        .as_ref()
        .map_or("no model chosen", |model| model.as_str());
    let process = match (tier.pid, tier.footprint_bytes) {
        (Some(pid), Some(bytes)) => format!("  pid {pid}, {}", gib(bytes)),
        (Some(pid), None) => format!("  pid {pid}"),
        _ => String::new(),
    };
    let planned = tier.plan.as_ref().map_or_else(String::new, |plan| {
        format!(" of {} planned", gib(plan.total_bytes()))
    });
    // Text goes without saying.
    let media = match tier.input_modalities.as_slice() {
        [] | [Modality::Text] => String::new(),
        more => format!(", takes {}", Modality::list(more)),
    };
    let (id, state) = (tier.id.as_str(), tier.state.to_string());
    let mut line = format!(
        "{id:<8} {state:<9} {model}, {} tokens{media}{process}{planned}",
        tier.context_tokens
    );
    if let Some(reason) = &tier.reason {
        line += &format!("\n                   {reason}");
    }
    line
}

/// Formats a plan. What is read from disk on demand comes last: the total does not include it.
fn plan_lines(plan: &LoadPlan) -> String {
    let (paged, held): (Vec<_>, Vec<_>) = plan.lines.iter().partition(|line| line.what.is_paged());
    let lines = held.into_iter().chain(paged);
    lines
        .map(|line| {
            format!(
                "                   {:<28} {:>9}\n",
                output::line_name(line.what),
                gib(line.bytes)
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tier_status;
    use serde_json::json;
    use tierbar_core::status::{BudgetStatus, Pressure, Ram, Swap};

    #[test]
    fn a_status_shows_memory_speed_and_tiers() {
        let plan = json!({"placement": "mmap", "context_tokens": 4096, "lines": [
            {"what": "dense_weights", "bytes": 94_371_840}, {"what": "paged_weights", "bytes": 3_221_225_472_u64},
            {"what": "kv_cache", "bytes": 47_185_920}]});
        let fast = json!({
            "id": "fast", "state": "ready", "model": "m", "pid": 7, "footprint_bytes": 104_857_600, "plan": plan,
        });
        let heavy = json!({
            "id": "heavy", "state": "failed", "context_tokens": 8192, "reason": "no model is chosen",
        });
        let status = Status {
            version: "0.1.0".to_owned(),
            url: "http://127.0.0.1:11435".to_owned(),
            ram: Ram {
                total_bytes: 16 << 30,
                available_bytes: 8 << 30,
                pressure: Pressure::Warning,
            },
            swap: Swap {
                used_bytes: 1 << 30,
                growth_bytes_per_minute: 50 << 20,
            },
            speed: serde_json::from_value(
                json!({"decode_tokens_per_second": 41.25, "prefill_tokens_per_second": null}),
            )
            .unwrap(),
            budget: BudgetStatus {
                total_bytes: 12 << 30,
                ..BudgetStatus::default()
            },
            tiers: vec![tier_status(&fast), tier_status(&heavy)],
            notices: vec!["a key is unknown".to_owned()],
            ..Status::default()
        };
        let mut args = Args {
            json: false,
            plan: false,
            experts: false,
        };
        let mut paging = PagingStatus::default();
        assert_eq!(
            render_status(&status, &paging, &args),
            "Tierbar 0.1.0 on http://127.0.0.1:11435\n\n\
             RAM      8.0 GiB of 16.0 GiB in use, under pressure\n\
             Swap     1.0 GiB, growing 50 MiB/min\n\
             Speed    41.2 tok/s decode, – tok/s prefill\n\
             Budget   0 MiB of 12.0 GiB planned\n\n\
             fast     ready     m, 4096 tokens  pid 7, 100 MiB of 135 MiB planned\n\
             heavy    failed    no model chosen, 8192 tokens\n                   no model is chosen\n\n\
             note: a key is unknown\n"
        );
        args.plan = true;
        let planned = render_status(&status, &paging, &args);
        assert!(
            planned.contains(
                "planned\n                   Dense weights                   90 MiB\n                   \
                 KV cache                        45 MiB\n                   \
                 Weights read from disk         3.0 GiB\nheavy "
            ),
            "{planned}"
        );
        paging = serde_json::from_value(json!({
            "tiers": [{"tier": "fast", "model": "m", "placement": "cache", "layers": ["9.", ".0"],
                "held_bytes": 1_073_741_824, "all_bytes": 2_147_483_648_u64, "hit_rate": 0.93,
                "read_bytes": 5, "wait_ms": 1.5}],
            "disk": {"read_bytes_per_second": 850_000_000, "written_bytes_per_second": 0,
                "written_bytes_per_day": null}
        }))
        .unwrap();
        (args.plan, args.experts) = (false, true);
        let paged = render_status(&status, &paging, &args);
        let lines = [
            "12.0 GiB planned\nDisk     850 MB/s read, 0 B/s written\n\nfast ",
            "                   2 of 4 experts in memory, 1.0 GiB of 2.0 GiB, 93 % found there\n",
            "                   █·\n                   ·░\nheavy ",
        ];
        for line in lines {
            assert!(paged.contains(line), "{line} is not in {paged}");
        }
    }

    #[test]
    fn a_chain_shows_its_steps_and_its_triage() {
        let chain = json!({"name": "nightly", "triage": true, "steps": [
            {"step": "sonnet", "server": "api.example.com", "gate": "cooling", "for_ms": 5},
            {"step": "other", "server": "other.example.com", "gate": "open"},
            {"step": "fast"}, {"step": "queue"}]});
        assert_eq!(
            chain_line(&serde_json::from_value(chain).unwrap()),
            "nightly  chain     sonnet (cooling) → other → fast → queue, greetings and FYI on this machine\n"
        );
    }
}
