//! Groups the files of a repository into quants, their parts, and projectors.

use super::{HubFile, HubFiles};
use crate::{
    name::without_extension,
    reference::{Pick, Repository},
};
use std::collections::BTreeMap;
use tierbar_core::{Code, Error};

/// The most names in a message.
const NAMED: usize = 12;

/// A quant of a model: one file, or all parts of a split one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quant {
    /// The name in capitals, such as `UD-Q4_K_XL`, or the file name if that contains none.
    pub name: String,
    /// The reference of this quant: `owner/repo:quant`, or the file if two files have the same quant.
    pub reference: String,
    /// The parts in order; never empty.
    pub files: Vec<HubFile>,
}

impl Quant {
    /// Returns the size of all parts, in bytes.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }
}

/// Returns the quants and projectors of a repository, each sorted by size. Incomplete split models are left out.
pub(super) fn group(repository: &Repository, files: Vec<HubFile>) -> (Vec<Quant>, Vec<HubFile>) {
    let (mut projectors, mut quants) = (Vec::new(), Vec::new());
    let mut splits: BTreeMap<(String, u16), Vec<HubFile>> = BTreeMap::new();
    for file in files {
        let name = file_name(&file.path).to_ascii_lowercase();
        if name.contains("mmproj") {
            projectors.push(file);
        } else if name.contains("imatrix") {
            // Statistics for quantization.
        } else if let Some(split) = tierbar_gguf::split_of(&file.path) {
            splits
                .entry((split.prefix, split.count))
                .or_default()
                .push(file);
        } else {
            quants.push(vec![file]);
        }
    }
    // The files come sorted by path, so the parts of each are in their order.
    splits.retain(|(_, count), parts| parts.len() == usize::from(*count));
    quants.extend(splits.into_values());
    let mut quants: Vec<Quant> = quants
        .into_iter()
        .map(|files| Quant {
            name: quant_of(&files[0].path),
            reference: format!("{repository}/{}", files[0].path),
            files,
        })
        .collect();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for quant in &quants {
        *counts.entry(quant.name.clone()).or_default() += 1;
    }
    for quant in &mut quants {
        if counts[&quant.name] == 1 && is_quant(quant.name.trim_start_matches("UD-")) {
            quant.reference = format!("{repository}:{}", quant.name);
        }
    }
    quants.sort_by(|a, b| (a.size(), &a.name).cmp(&(b.size(), &b.name)));
    projectors.sort_by(|a, b| (a.size, &a.path).cmp(&(b.size, &b.path)));
    (quants, projectors)
}

impl HubFiles {
    /// Returns the quant with the requested name or file, or `None` for [`Pick::Suiting`].
    ///
    /// # Errors
    /// [`Code::RepositoryUnknown`] with what there is, [`Code::BadRequest`] if the name means several.
    pub fn picked(&self, pick: &Pick) -> Result<Option<Quant>, Error> {
        if self.quants.is_empty() && !matches!(pick, Pick::File(_)) {
            return Err(Error::new(
                Code::RepositoryUnknown,
                format!("{} has no GGUF files", self.repository),
            )
            .hint("look for a repository of the same model with GGUF in its name"));
        }
        match pick {
            Pick::Suiting => Ok(None),
            Pick::Quant(name) => self.named(name).map(Some),
            Pick::File(path) => self.holding(path).map(Some),
        }
    }

    fn named(&self, name: &str) -> Result<Quant, Error> {
        let called = |wanted: &str| -> Vec<&Quant> {
            let same = |quant: &&Quant| quant.name.eq_ignore_ascii_case(wanted);
            self.quants.iter().filter(same).collect()
        };
        let mut found = called(name);
        if found.is_empty() {
            found = called(&format!("UD-{name}"));
        }
        match found[..] {
            [quant] => Ok(quant.clone()),
            [] => Err(self.unknown(
                &format!("no quant {name}"),
                self.quants.iter().map(|quant| quant.name.as_str()),
            )),
            _ => {
                let files: Vec<_> = found.iter().map(|quant| quant.reference.as_str()).collect();
                Err(Error::new(
                    Code::BadRequest,
                    format!(
                        "{} has {} models with the quant {name}",
                        self.repository,
                        files.len()
                    ),
                )
                .hint(format!("choose a file: {}", listed(files.into_iter()))))
            }
        }
    }

    fn holding(&self, path: &str) -> Result<Quant, Error> {
        let has = |quant: &&Quant| quant.files.iter().any(|file| file.path == path);
        if let Some(quant) = self.quants.iter().find(has) {
            return Ok(quant.clone());
        }
        if let Some(file) = self.projectors.iter().find(|file| file.path == path) {
            return Ok(Quant {
                name: quant_of(path),
                reference: format!("{}/{path}", self.repository),
                files: vec![file.clone()],
            });
        }
        let files = self.quants.iter().map(|quant| quant.files[0].path.as_str());
        Err(self.unknown(&format!("no file {path}"), files))
    }

    fn unknown<'a>(&self, what: &str, there: impl Iterator<Item = &'a str>) -> Error {
        Error::new(
            Code::RepositoryUnknown,
            format!("{} has {what}", self.repository),
        )
        .hint(format!("it has {}", listed(there)))
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    match names.split_at_checked(NAMED) {
        Some((shown, more @ [_, ..])) => format!("{} and {} more", shown.join(", "), more.len()),
        _ if names.is_empty() => "none".to_owned(),
        _ => names.join(", "),
    }
}

pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the quant in the file name, else in its folder's name, else the file name.
fn quant_of(path: &str) -> String {
    let stem = stem(path);
    let in_folder = || quant_in(file_name(path.rsplit_once('/')?.0));
    quant_in(stem)
        .or_else(in_folder)
        .unwrap_or_else(|| stem.to_owned())
}

/// A file's name less its ending and the numbers of its part.
pub(super) fn stem(path: &str) -> &str {
    let name = file_name(path);
    let stem = without_extension(name).unwrap_or(name);
    match tierbar_gguf::split_of(name) {
        Some(split) => stem.get(..split.prefix.len()).unwrap_or(stem),
        None => stem,
    }
}

/// Returns the last quant in a name, in capitals: `gemma-3-270m-q4_k_m` is `Q4_K_M`.
pub(super) fn quant_in(stem: &str) -> Option<String> {
    let words: Vec<String> = stem
        .split(['-', '.', ' '])
        .map(str::to_ascii_uppercase)
        .collect();
    let (at, quant) = words.iter().enumerate().rev().find_map(|(at, word)| {
        // `model_Q4_K_M`: what follows an underscore may be one.
        let starts = std::iter::once(0).chain(word.match_indices('_').map(|(at, _)| at + 1));
        let quant = starts
            .map(|start| &word[start..])
            .find(|rest| is_quant(rest))?;
        Some((at, quant))
    })?;
    let dynamic = at > 0 && words[at - 1] == "UD" && words[at] == quant;
    Some(if dynamic {
        format!("UD-{quant}")
    } else {
        quant.to_owned()
    })
}

/// ggml's types and llama.cpp's mixes of them: `Q8_0`, `IQ2_XXS`, `Q4_K_M`, `TQ1_0`, `MXFP4_MOE`, `BF16`.
fn is_quant(word: &str) -> bool {
    if matches!(
        word,
        "F16" | "F32" | "BF16" | "FP16" | "FP32" | "MXFP4" | "MXFP4_MOE" | "NVFP4"
    ) {
        return true;
    }
    let rest = ["IQ", "TQ", "Q"]
        .iter()
        .find_map(|family| word.strip_prefix(family));
    let mut parts = rest.unwrap_or_default().split('_');
    let bits = parts.next().unwrap_or_default();
    bits.len() == 1
        && bits.bytes().all(|byte| (b'1'..=b'8').contains(&byte))
        && parts.all(|part| {
            (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}
