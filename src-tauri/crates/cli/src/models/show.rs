//! `tierbar models show`: the models to choose from, and what is known of one.

use super::{installed, render_marks};
use crate::{
    client::{Client, admin_path, read_answer},
    output,
};
use serde::Deserialize;
use serde_json::json;
use tierbar_core::{
    Code, Error, Modality,
    budget::Placement,
    catalog::{CatalogModel, HubReadme, OfferedFile, PublishedSpeed},
    fit::{LibraryModel, QUALITY_SOURCE, QuantLoss},
    nearest::suggest,
    units::file_size,
};

#[derive(Debug, clap::Args)]
#[group(id = "show")]
pub(crate) struct Args {
    /// Name of a model of the list, or ID of one on this computer [default: list all]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print the maker's description from Hugging Face; also for owner/repo
    #[arg(long, requires = "name")]
    readme: bool,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

const UNTESTED: &str = "  Not tested yet: a judgment is tested once it is needed.\n";

#[derive(Debug, Deserialize)]
struct List {
    date: String,
    refreshed: Option<String>,
    models: Vec<CatalogModel>,
}

pub(super) async fn run(client: &Client, args: &Args) -> Result<(), Error> {
    let body = client.get("/tierbar/v1/catalog").await?;
    let Some(name) = &args.name else {
        return output::write_answer(args.json, body, |all| list(&all));
    };
    let List { models, .. } = read_answer(body)?;
    let found = models.iter().find(|model| is_called(model, name));
    if args.readme
        && let Some(repository) = found.map_or_else(
            || name.contains('/').then_some(name),
            |model| Some(&model.repository),
        )
    {
        return readme(client, repository, args.json).await;
    }
    let mut local = installed(client).await?;
    local.retain(|local| {
        let is_named = local.id.as_str().eq_ignore_ascii_case(name);
        is_named || found.is_some_and(|model| is_file_of(local, model))
    });
    if found.is_none() && !local.is_empty() {
        if args.json {
            output::write_json(&json!({"local": local}));
        } else {
            output::write(&render_local(&local));
        }
        return Ok(());
    }
    let model = found.ok_or_else(|| {
        let ids = models.iter().map(|model| model.id.as_str());
        let hint = suggest(name, ids, "see the list with `tierbar models show`");
        Error::new(Code::ModelUnknown, format!("the list has no model {name}")).hint(hint)
    })?;
    if args.json {
        let mut shown = json!(model);
        shown["local"] = json!(local);
        output::write_json(&shown);
    } else {
        output::write(&(render_details(model) + &render_local(&local)));
    }
    Ok(())
}

/// Whether a model on this computer was downloaded from the repository of one of the list.
fn is_file_of(local: &LibraryModel, model: &CatalogModel) -> bool {
    let reference = local.reference.as_deref().unwrap_or_default();
    let repository = reference.rsplit_once([':', '/']);
    repository.is_some_and(|(repository, _)| repository == model.repository)
}

/// Returns what models on this computer are trusted with.
fn render_local(local: &[LibraryModel]) -> String {
    let one = |model: &LibraryModel| {
        let marks = match &*model.marks {
            [] => UNTESTED.to_owned(),
            marks => render_marks(marks),
        };
        format!("\nOn this computer: {}\n{marks}", model.id)
    };
    local.iter().map(one).collect()
}

/// Prints what a repository says of its models.
async fn readme(client: &Client, repository: &str, as_json: bool) -> Result<(), Error> {
    let path = admin_path(&["hub", "readme"], &[("id", repository)]);
    let body = client.get(&path).await?;
    output::write_answer(as_json, body, |HubReadme { url, text, .. }| {
        format!("{text}\n\nFrom {url}\n")
    })
}

fn is_called(model: &CatalogModel, name: &str) -> bool {
    let mut names = [&model.id, &model.name, &model.repository]
        .into_iter()
        .chain(&model.aliases);
    names.any(|own| own.eq_ignore_ascii_case(name))
}

fn list(list: &List) -> String {
    let widest = list.models.iter().map(|model| model.id.len()).max();
    let width = widest.unwrap_or(0);
    let mut text = String::new();
    for model in &list.models {
        let chosen = model.quants.iter().find(|file| file.recommended);
        let size = chosen.and_then(|file| file.size_bytes).map(file_size);
        let fits = match chosen.and_then(|file| file.fit.as_ref()) {
            Some(fit) => describe_placement(fit.placement),
            None if model.quants.iter().any(|file| file.fit.is_some()) => "too large",
            None => "",
        };
        text += &format!(
            "{:<width$}  {:>8}  {fits:<15}  {}\n",
            model.id,
            size.unwrap_or_default(),
            model.about
        );
    }
    let updated = match &list.refreshed {
        Some(time) => format!("files updated on {}", day(time)),
        None => "update its files with `tierbar models refresh`".to_owned(),
    };
    text += &format!("\nList of {}; {updated}.\n", list.date);
    text
}

fn describe_placement(placement: Placement) -> &'static str {
    match placement {
        Placement::Resident => "fits",
        Placement::Refused => "too large",
        Placement::Mmap | Placement::Advise | Placement::Cache | Placement::Stream => {
            "reads from disk"
        }
    }
}

/// Of an RFC 3339 time.
fn day(time: &str) -> &str {
    time.get(..10).unwrap_or(time)
}

fn render_details(model: &CatalogModel) -> String {
    let mut text = format!("{}\n{}\n\n", model.name, model.about);
    let mut row = |what: &str, value: &str| text += &format!("  {what:<12} {value}\n");
    row("ID", &model.id);
    if !model.maker.is_empty() {
        row("Developer", &model.maker);
    }
    if let Some(languages) = &model.languages {
        row("Languages", languages);
    }
    row("Repository", &model.repository);
    row("License", &model.licence);
    row("Input", &Modality::list(&model.capabilities.inputs));
    let abilities = [
        model.capabilities.thinking.then_some("thinking"),
        model.capabilities.tools.then_some("tools"),
    ];
    let abilities: Vec<_> = abilities.into_iter().flatten().collect();
    if !abilities.is_empty() {
        row("Supports", &abilities.join(", "));
    }
    if let Some(tokens) = model.context_train {
        row("Context", &format!("up to {tokens} tokens"));
    }
    text += "\nFiles\n";
    for file in &model.quants {
        text += &format!("  {}\n", render_file(file));
    }
    if model.quants.iter().any(|file| file.loss.is_some()) {
        text += &format!("  Quality as published for Llama 3 8B: {QUALITY_SOURCE}\n");
    }
    if !model.speeds.is_empty() {
        text += "\nPublished speeds (measured by others, not on this machine)\n";
        for speed in &model.speeds {
            text += &format!("  {}\n    {}\n", render_speed(speed), speed.source);
        }
    }
    if !model.scores.is_empty() {
        text += "\nPublished benchmarks (by its maker, before quantization)\n";
        for of_one in model.scores.chunk_by(|a, b| a.source == b.source) {
            for score in of_one {
                text += &format!("  {:<18} {:>5.1} %\n", score.benchmark, score.score);
            }
            text += &format!("    {}\n", of_one[0].source);
        }
    }
    text
}

fn render_file(file: &OfferedFile) -> String {
    let fit = file.fit.as_ref();
    let facts = [
        file.loss.map(QuantLoss::words),
        fit.map(|fit| describe_placement(fit.placement)),
        file.recommended.then_some("recommended"),
        file.installed.then_some("installed"),
        Some(match file.sha256 {
            Some(_) => "checksum known",
            None => "checksum from Hugging Face at the first download",
        }),
    ];
    let facts: Vec<_> = facts.into_iter().flatten().collect();
    let size = file.size_bytes.map_or("?".to_owned(), file_size);
    format!("{:<12} {size:>8}  {}", file.quant, facts.join(", "))
}

fn render_speed(speed: &PublishedSpeed) -> String {
    let machine = match speed.ram_gb {
        Some(ram) => format!("{}, {ram} GB", speed.chip),
        None => speed.chip.clone(),
    };
    let with = match &speed.quant {
        Some(quant) => format!("{quant}, {}", speed.engine),
        None => speed.engine.clone(),
    };
    format!("{:>6.1} tok/s  {machine}; {with}", speed.tokens_per_second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn model() -> CatalogModel {
        serde_json::from_value(json!({
            "id": "big", "name": "Big 9B", "about": "Hard questions.", "aliases": ["big:9b"],
            "capabilities": {"inputs": ["text", "image"], "thinking": true, "tools": false},
            "context_train": 40_960, "tier": null, "default": false, "kind": "chat", "maker": "Example Labs",
            "languages": "English and German", "repository": "o/Big-GGUF",
            "licence": "MIT", "context_tokens": 4096, "kv_cache": "f16",
            "speeds": [{"chip": "Apple M4", "ram_gb": null, "tokens_per_second": 20.87, "quant": "Q4_K_M",
                        "engine": "llama.cpp", "source": "https://a"}],
            "scores": [{"benchmark": "MMLU-Pro", "score": 48.3, "source": "https://b"}],
            "quants": [
                {"quant": "Q4_K_M", "reference": "o/Big-GGUF:Q4_K_M", "file": "b.gguf", "parts": 1,
                 "size_bytes": 5_000_000_000_u64, "sha256": "ab", "loss": "slight", "recommended": true, "installed": true, "fit": null},
                {"quant": "Q8_0", "reference": "o/Big-GGUF:Q8_0", "file": "c.gguf", "parts": 1,
                 "size_bytes": null, "sha256": null, "recommended": false, "installed": false, "fit": null},
            ],
        }))
        .unwrap()
    }

    #[test]
    fn published_figures_are_named_as_such() {
        assert_eq!(
            render_details(&model()),
            "Big 9B\nHard questions.\n\n\
            \x20 ID           big\n\
            \x20 Developer    Example Labs\n\
            \x20 Languages    English and German\n\
            \x20 Repository   o/Big-GGUF\n\
            \x20 License      MIT\n\
            \x20 Input        text and images\n\
            \x20 Supports     thinking\n\
            \x20 Context      up to 40960 tokens\n\n\
            Files\n\
            \x20 Q4_K_M           5 GB  slight loss, recommended, installed, checksum known\n\
            \x20 Q8_0                ?  checksum from Hugging Face at the first download\n\
            \x20 Quality as published for Llama 3 8B: https://github.com/ggml-org/llama.cpp/blob/master/tools/perplexity/README.md\n\n\
            Published speeds (measured by others, not on this machine)\n\
            \x20   20.9 tok/s  Apple M4; Q4_K_M, llama.cpp\n    https://a\n\n\
            Published benchmarks (by its maker, before quantization)\n\
            \x20 MMLU-Pro            48.3 %\n    https://b\n"
        );
    }

    #[test]
    fn each_judgment_of_a_model_here_has_its_state() {
        let local = |marks: &[Value]| -> LibraryModel {
            serde_json::from_value(json!({
                "id": "b-Q4", "path": "/models/b-Q4.gguf", "size_bytes": 1, "keeper": "tierbar", "account": null, "error": null,
                "reference": "o/Big-GGUF:Q4_K_M", "tiers": [], "input_modalities": [], "marks": marks,
            }))
            .unwrap()
        };
        let mark = |judgment, right, passed| {
            json!({
                "judgment": judgment, "version": "1", "taken_at": "2026-11-26T12:00:00Z", "model": "b-Q4", "size_bytes": 1,
                "sha256": null, "right": right, "of": 16, "passed": passed, "milliseconds": null,
            })
        };
        let marks = [mark("triage", 7, false), mark("routing", 14, true)];
        assert!(is_file_of(&local(&marks), &model()));
        assert_eq!(
            render_local(&[local(&marks), local(&[])]),
            "\nOn this computer: b-Q4\n\
            \x20 Triage           Off: 7 of 16 correct. A rule stands in.\n\
            \x20 Auto             On: 14 of 16 correct.\n\
            \nOn this computer: b-Q4\n\
            \x20 Not tested yet: a judgment is tested once it is needed.\n"
        );
    }

    #[test]
    fn a_model_is_found_by_any_of_its_names() {
        for name in ["big", "BIG:9B", "Big 9B", "o/Big-GGUF"] {
            assert!(is_called(&model(), name), "{name}");
        }
        assert!(!is_called(&model(), "small"));
    }

    #[test]
    fn the_list_has_its_date() {
        let text = list(&List {
            date: "2026-11-26".to_owned(),
            refreshed: Some("2027-01-02T03:04:05Z".to_owned()),
            models: vec![model()],
        });
        assert!(text.starts_with("big      5 GB "), "{text}");
        assert!(
            text.ends_with("List of 2026-11-26; files updated on 2027-01-02.\n"),
            "{text}"
        );
    }
}
