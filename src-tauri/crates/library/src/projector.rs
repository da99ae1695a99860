//! Which media projector belongs to which model.
//!
//! The width alone does not say, since many models share one: a projector that Tierbar downloaded is for models of its
//! repository, or of its name. A damaged projector stays with its model as an error, and the model answers text.

use crate::{entry::incomplete, folder::file_name, name, records};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};
use tierbar_core::{Code, Error, Modality, ModelAccount};
use tierbar_gguf::ProjectorAccount;

/// A media projector, with which a model takes images and sound, or a file that may be one.
#[derive(Debug, Clone, PartialEq)]
pub struct Projector {
    pub path: PathBuf,
    pub size_bytes: u64,
    /// The repository that it was downloaded from, with its server, if Tierbar did.
    pub origin: Option<String>,
    /// The contents of its header, or why the model cannot use it.
    pub account: Result<ProjectorAccount, Error>,
}

/// The model that a projector is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProjectorQuery<'a> {
    pub(crate) path: &'a Path,
    pub(crate) account: &'a ModelAccount,
    pub(crate) origin: Option<&'a str>,
    /// Whether its folder has no other model.
    pub(crate) alone: bool,
}

/// Candidates and the number of models, by folder.
#[derive(Debug, Default)]
pub(crate) struct Folders(HashMap<PathBuf, (Vec<Projector>, usize)>);

impl Folders {
    pub(crate) fn add(&mut self, candidate: Projector) {
        let folder = folder_of(&candidate.path);
        self.0.entry(folder).or_default().0.push(candidate);
    }

    pub(crate) fn count_model(&mut self, path: &Path) {
        self.0.entry(folder_of(path)).or_default().1 += 1;
    }

    pub(crate) fn projector_of(
        &self,
        model: &Path,
        account: &ModelAccount,
        origin: Option<&str>,
    ) -> Option<Projector> {
        let (candidates, models) = self.0.get(model.parent()?)?;
        let wanted = ProjectorQuery {
            path: model,
            account,
            origin,
            alone: *models == 1,
        };
        choose(wanted, candidates)
    }
}

fn folder_of(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

/// Returns the projector that fits the model: of several, that of its repository, then one of its name, then the one in
/// the precision that GPUs compute in. Without any, returns one that was meant for it, with what is wrong.
pub(crate) fn choose(model: ProjectorQuery<'_>, candidates: &[Projector]) -> Option<Projector> {
    let fitting = candidates.iter().filter_map(|candidate| {
        let account = candidate.account.as_ref().ok()?;
        let fits = account.fits(model.account) && candidate.may_serve(account, model);
        fits.then_some((candidate, account))
    });
    let best = fitting.min_by_key(|(candidate, account)| {
        (
            !candidate.is_of(model.origin),
            !has_name_of(account, model.account),
            rank(&account.quant),
            candidate.path.clone(),
        )
    });
    if let Some((candidate, _)) = best {
        return Some(candidate.clone());
    }
    let meant = candidates.iter().filter(|candidate| {
        model.alone || candidate.is_of(model.origin) || is_named_after(&candidate.path, model.path)
    });
    let meant = meant.min_by(|one, other| one.path.cmp(&other.path))?;
    Some(Projector {
        account: Err(meant.problem(model.account)),
        ..meant.clone()
    })
}

impl Projector {
    /// Returns what the model takes with it.
    pub fn input_modalities(&self) -> Vec<Modality> {
        let account = self.account.as_ref();
        account.map_or_else(|_| vec![Modality::Text], ProjectorAccount::modalities)
    }

    fn is_of(&self, origin: Option<&str>) -> bool {
        self.origin.is_some() && self.origin.as_deref() == origin
    }

    /// Many models share a width, so a projector of known origin is for models of its repository or its name.
    fn may_serve(&self, account: &ProjectorAccount, model: ProjectorQuery<'_>) -> bool {
        self.origin.is_none() || self.is_of(model.origin) || has_name_of(account, model.account)
    }

    fn problem(&self, model: &ModelAccount) -> Error {
        let file = file_name(&self.path);
        let account = match &self.account {
            Ok(account) => account,
            Err(error) => {
                return incomplete(&file, self.size_bytes, error.clone())
                    .hint("download the projector again, or delete the file");
            }
        };
        let why = match (account.projection_dim, &self.origin) {
            (Some(width), _) if width != model.embedding => format!(
                "it produces {width} values for each token, and this model takes {}",
                model.embedding
            ),
            (_, Some(origin)) => format!("it was downloaded from {origin}"),
            _ => "its header does not fit".to_owned(),
        };
        let message = format!("{file} is the projector of another model: {why}");
        Error::new(Code::ModelInvalid, message)
            .hint("download the projector of this model, or move the file to another folder")
    }
}

/// The order of preference among precisions: F16 is what every GPU computes in, BF16 is as exact but slow on older Macs,
/// Q8_0 is smaller and less exact, and F32 only larger.
pub(crate) fn rank(quant: &str) -> usize {
    const ORDER: [&str; 4] = ["F16", "BF16", "Q8_0", "F32"];
    let place = ORDER.iter().position(|name| *name == quant);
    place.unwrap_or(ORDER.len())
}

fn has_name_of(projector: &ProjectorAccount, model: &ModelAccount) -> bool {
    match (&projector.name, &model.name) {
        (Some(one), Some(other)) => {
            let (one, other) = (letters(one), letters(other));
            !one.is_empty() && one == other
        }
        _ => false,
    }
}

/// Returns whether the model's file name begins with the projector's, without `mmproj` and the precision.
fn is_named_after(projector: &Path, model: &Path) -> bool {
    let stem = |path: &Path| {
        let name = file_name(path).to_ascii_lowercase();
        name::without_extension(&name).unwrap_or(&name).to_owned()
    };
    let of_projector = stem(projector);
    let words = of_projector.split(['-', '_', '.', ' ']);
    let own: String = words
        .filter(|word| {
            !matches!(
                *word,
                "mmproj" | "f16" | "bf16" | "f32" | "q8" | "0" | "model"
            )
        })
        .collect();
    !own.is_empty() && letters(&stem(model)).starts_with(&letters(&own))
}

fn letters(name: &str) -> String {
    let kept = name.chars().filter(|c| c.is_alphanumeric());
    kept.flat_map(char::to_lowercase).collect()
}

/// Returns whether the file is named like a projector.
pub fn is_named(path: &Path) -> bool {
    file_name(path).to_ascii_lowercase().contains("mmproj")
}

/// Returns whether the file may be a projector with another name, since it is not a loadable model.
pub(crate) fn may_be(account: &Result<ModelAccount, Error>) -> bool {
    matches!(account, Err(error) if error.code == Code::ModelUnsupported)
}

/// Returns the repository in the URL of a record, with its server.
pub(crate) fn origin(record: &records::Record) -> Option<String> {
    let url = url::Url::parse(record.url.as_deref()?).ok()?;
    let mut parts = url.path_segments()?;
    let (owner, name) = (parts.next()?, parts.next()?);
    let server = url.host_str()?;
    (parts.next()? == "resolve").then(|| format!("{server}/{owner}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_projector_is_named_after_its_model() {
        let named =
            |projector: &str, model: &str| is_named_after(Path::new(projector), Path::new(model));
        for (projector, model) in [
            (
                "mmproj-gemma-4-E4B-it-BF16.gguf",
                "gemma-4-E4B-it-Q4_K_M.gguf",
            ),
            (
                "gemma-4-E4B-it.mmproj-Q8_0.gguf",
                "Gemma_4-E4B-it-UD-Q4_K_XL.gguf",
            ),
            ("mmproj-model-tiny-f16.gguf", "tiny.gguf"),
        ] {
            assert!(named(projector, model), "{projector} {model}");
        }
        for (projector, model) in [
            ("mmproj-BF16.gguf", "gemma.gguf"),
            ("mmproj-model-f16.gguf", "gemma.gguf"),
            (
                "mmproj-gemma-4-E2B-it-BF16.gguf",
                "gemma-4-E4B-it-Q4_K_M.gguf",
            ),
        ] {
            assert!(!named(projector, model), "{projector} {model}");
        }
    }

    #[test]
    fn f16_comes_before_bf16_q8_0_and_f32() {
        let mut quants = ["F32", "Q4_0", "BF16", "Q8_0", "F16"];
        quants.sort_by_key(|quant| rank(quant));
        assert_eq!(quants, ["F16", "BF16", "Q8_0", "F32", "Q4_0"]);
    }

    #[test]
    fn the_origin_of_a_file_is_its_repository() {
        let record = |url: &str| records::Record {
            url: Some(url.to_owned()),
            ..records::Record::default()
        };
        let of = |url| origin(&record(url));
        assert_eq!(
            of("https://huggingface.co/a/b/resolve/0123/x/m.gguf").as_deref(),
            Some("huggingface.co/a/b")
        );
        assert_eq!(of("https://example.com/m.gguf"), None);
        assert_eq!(origin(&records::Record::default()), None);
    }
}
