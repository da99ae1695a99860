//! `tierbar models fit`: whether a model fits, line by line.

use crate::{
    client::{Client, admin_path},
    output,
};
use tierbar_core::{
    Error,
    budget::{Placement, gib},
    config::Paging,
    fit::Verdict,
    units::file_size,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Model ID, path, owner/repo[:quant], URL or catalog name
    #[arg(value_name = "MODEL")]
    model: String,
    /// Context length, in tokens
    #[arg(long, value_name = "N")]
    context: Option<u32>,
    /// KV cache type: f16, q8_0 or q4_0
    #[arg(long, value_name = "TYPE")]
    kv_cache: Option<String>,
    /// Purpose: balanced, long_context, agent or paged [default: the tier's, or balanced]
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// RAM of the machine to check for, such as 16GiB [default: this machine's]
    #[arg(long, value_name = "SIZE")]
    ram: Option<String>,
    /// Print the verdict as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(client: &Client, args: &Args) -> Result<(), Error> {
    let context = args.context.map(|tokens| tokens.to_string());
    let model = super::absolute_if_path(&args.model);
    let mut query = vec![("model", model.as_str())];
    query.extend(context.as_deref().map(|context| ("context", context)));
    query.extend(args.kv_cache.as_deref().map(|kv| ("kv_cache", kv)));
    query.extend(args.profile.as_deref().map(|name| ("profile", name)));
    query.extend(args.ram.as_deref().map(|ram| ("ram", ram)));
    let body = client.get(&admin_path(&["models", "fit"], &query)).await?;
    output::write_answer(args.json, body, |verdict| render_verdict(&verdict))
}

fn render_verdict(verdict: &Verdict) -> String {
    let mut text = format!("{}\n", verdict.summary);
    if let Some(warning) = &verdict.warning {
        text += &format!("{warning}\n");
    }
    text.push('\n');
    let mut row = |what: &str, figure: String| {
        text += &format!("  {what:<32} {figure:>10}\n");
    };
    let (counted, paged): (Vec<_>, Vec<_>) =
        verdict.lines.iter().partition(|line| !line.what.is_paged());
    for line in counted {
        row(output::line_name(line.what), gib(line.bytes));
    }
    row("Total", gib(verdict.total_bytes));
    row(
        &format!("Budget with {} of RAM", gib(verdict.ram_bytes)),
        gib(verdict.budget_bytes),
    );
    for line in paged {
        row(output::line_name(line.what), gib(line.bytes));
    }
    let kv = verdict.kv_cache.as_str();
    row(
        &format!("Context, {kv} KV cache"),
        format!("{} tokens", verdict.context_tokens),
    );
    if let Some(tokens) = verdict.largest_context_tokens {
        row("Largest context that fits", format!("{tokens} tokens"));
    }
    if let Some(gpu) = verdict.gpu {
        row(
            &format!("On the GPU (limit {})", gib(gpu.limit_bytes)),
            format!("{} of {} layers", gpu.layers, gpu.layers_all),
        );
        if gpu.without_experts {
            let what = if verdict.placement == Placement::Stream {
                "Feed-forward matrices"
            } else {
                "Experts"
            };
            row(what, "on the CPU".to_owned());
        }
    }
    if let Some(speed) = verdict.speed {
        row("Expected speed", output::speed_range(speed.low, speed.high));
        if let Some(measured) = speed.measured {
            row("Measured speed", format!("{measured:.1} tok/s"));
        }
        if let Some(error) = speed.error {
            row("Estimate error", format!("{:+.0} %", error * 100.0));
        }
    }
    for way in &verdict.paging_speeds {
        let what = match way.paging {
            Paging::Cache => "Speed with a cache of experts",
            Paging::Advise => "Speed with experts read ahead",
            Paging::AdviseGpu => "Speed with experts read ahead, prompts on the GPU",
            Paging::Stream => "Speed with layers read from disk",
            Paging::Mmap | Paging::Auto | Paging::Off => "Speed if left to the system",
        };
        row(what, output::speed_range(way.low, way.high));
    }
    if let Some(instead) = &verdict.instead {
        text += &format!(
            "\nBetter choice: {} ({}). {}\n  tierbar models pull {}\n",
            instead.quant,
            file_size(instead.size_bytes),
            instead.reason,
            instead.reference
        );
    }
    if verdict.estimated {
        text +=
            "\nThis is an estimate from published figures; the model's header has not been read.\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_verdict_lists_lines_total_and_budget() {
        let verdict = serde_json::from_value(json!({
            "placement": "mmap", "summary": "It runs.", "warning": "But slowly.",
            "lines": [{"what": "dense_weights", "bytes": 2_147_483_648_u64},
                      {"what": "resident_experts", "bytes": 8_589_934_592_u64},
                      {"what": "paged_experts", "bytes": 1_073_741_824},
                      {"what": "kv_cache", "bytes": 104_857_600}],
            "total_bytes": 10_842_275_840_u64, "budget_bytes": 12_884_901_888_u64, "ram_bytes": 17_179_869_184_u64,
            "context_tokens": 4096, "kv_cache": "q8_0", "largest_context_tokens": 8192,
            "gpu": {"layers": 30, "layers_all": 41, "bytes": 1, "limit_bytes": 11_811_160_064_u64, "without_experts": true},
            "speed": {"low": 4.0, "high": 12.25, "active_bytes": 1, "paged_bytes": 1, "measured": 3.6, "error": -0.1},
            "instead": {"quant": "IQ2_M", "reference": "a/b:IQ2_M", "size_bytes": 1_073_741_824, "placement": "resident", "reason": "It fits."},
            "estimated": true
        }))
        .unwrap();
        assert_eq!(
            render_verdict(&verdict),
            "It runs.\nBut slowly.\n\n\
            \x20 Dense weights                       2.0 GiB\n\
            \x20 Experts in memory                   8.0 GiB\n\
            \x20 KV cache                            100 MiB\n\
            \x20 Total                              10.1 GiB\n\
            \x20 Budget with 16.0 GiB of RAM        12.0 GiB\n\
            \x20 Experts read from disk              1.0 GiB\n\
            \x20 Context, q8_0 KV cache           4096 tokens\n\
            \x20 Largest context that fits        8192 tokens\n\
            \x20 On the GPU (limit 11.0 GiB)      30 of 41 layers\n\
            \x20 Experts                          on the CPU\n\
            \x20 Expected speed                   4.0–12 tok/s\n\
            \x20 Measured speed                    3.6 tok/s\n\
            \x20 Estimate error                        -10 %\n\n\
            Better choice: IQ2_M (1.1 GB). It fits.\n  tierbar models pull a/b:IQ2_M\n\n\
            This is an estimate from published figures; the model's header has not been read.\n"
        );
    }
}
