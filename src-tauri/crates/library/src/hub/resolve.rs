//! Resolves a reference to files, with their URLs, sizes, hashes and local names.

use super::{Hub, HubFile, HubFiles, Quant, ResolvedProjector, local};
use crate::{
    reference::{Pick, Reference, Repository},
    remote,
};
use std::path::Path;
use tierbar_core::{
    Code, Error, ModelAccount,
    budget::CompanionModels,
    download::Include,
    fit::{ContextChoice, Instead, Machine, Offer, recommend},
};
use tierbar_fetch::{FileSpec, Url, display_url};

/// The quants whose headers are read first: common ones of medium size.
const USUAL: [&str; 5] = ["Q4_K_M", "UD-Q4_K_XL", "Q4_0", "Q8_0", "UD-IQ2_M"];

/// The machine and settings to choose a quant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantTarget {
    pub machine: Machine,
    pub context: ContextChoice,
}

/// The catalog's facts about one of its quants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedQuant {
    pub repository: Repository,
    /// The commit of the other facts, or `None` for the main branch.
    pub revision: Option<String>,
    pub quant: String,
    pub file: String,
    /// The size of all parts, in bytes.
    pub size: Option<u64>,
    /// In lower-case hex, for a model of one file.
    pub sha256: Option<String>,
    pub projector: Option<HubFile>,
}

/// A file to download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedFile {
    pub url: Url,
    /// In the repository; `None` for a URL.
    pub path: Option<String>,
    /// The file name in the models folder.
    pub name: String,
    pub size: Option<u64>,
    pub sha256: Option<String>,
}

/// A resolved reference: what a download would fetch.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedReference {
    /// The requested reference with the chosen quant.
    pub reference: String,
    /// `None` for a URL whose header could not be read.
    pub quant: Option<String>,
    pub repository: Option<String>,
    /// The commit.
    pub revision: Option<String>,
    pub files: Vec<ResolvedFile>,
    /// The contents of the header, scaled to all parts of a split model, or why it could not be read.
    pub account: Result<ModelAccount, Error>,
    /// Whether the account is extrapolated from one header.
    pub estimated: bool,
    /// The quants of the same repository.
    pub offers: Vec<Offer>,
    /// The media projector of the repository for this model; `None` if it has none, or why it cannot be used.
    pub projector: Result<Option<ResolvedProjector>, Error>,
}

impl ResolvedReference {
    /// Returns the size of the model's files, or `None` if a server does not give it.
    pub fn total_bytes(&self) -> Option<u64> {
        self.files.iter().map(|file| file.size).sum()
    }

    /// Returns the projector that can be used.
    pub fn usable_projector(&self) -> Option<&ResolvedProjector> {
        self.projector.as_ref().ok().and_then(Option::as_ref)
    }

    /// Returns the downloads into a models folder: the model's files, and then its projector's.
    pub fn specs(&self, models_dir: &Path, include: Include) -> Vec<FileSpec> {
        let projector = self.usable_projector().map(|projector| &projector.file);
        self.files
            .iter()
            .filter(|_| include != Include::Projector)
            .chain(projector.filter(|_| include != Include::Model))
            .map(|file| FileSpec {
                url: file.url.clone(),
                dest: models_dir.join(&file.name),
                size: file.size,
                sha256: file.sha256.clone(),
            })
            .collect()
    }

    /// Returns what is loaded beside the model if that much is downloaded.
    pub fn beside(&self, include: Include) -> CompanionModels<'_> {
        let projector = self.usable_projector();
        let projector = projector.filter(|_| include != Include::Model);
        CompanionModels::projector(projector.map(|projector| &projector.account))
    }
}

impl Hub {
    /// Resolves a repository, one of its files, or a URL. For models of the catalog, use [`Self::pinned`].
    ///
    /// `taken`: whether a file of that name in the models folder, in any case, belongs to another model than the reference
    /// and URL of each call.
    ///
    /// # Errors
    /// Those of [`Hub::repository`] and [`HubFiles::picked`]; for a URL those of [`remote::header`].
    pub async fn resolve(
        &self,
        reference: &Reference,
        suit: &QuantTarget,
        taken: &(dyn Fn(&str, &Url) -> bool + Sync),
    ) -> Result<ResolvedReference, Error> {
        match reference {
            Reference::Hub {
                repository,
                revision,
                pick,
            } => {
                let files = self.repository(repository, revision.as_deref()).await?;
                let quant = files.picked(pick)?;
                self.of_hub(&files, quant, suit, taken).await
            }
            Reference::Url(url) => self.of_url(url, taken).await,
            Reference::Catalog { id, .. } => Err(Error::new(
                Code::Internal,
                format!("the catalog entry {id} was not resolved first"),
            )),
        }
    }

    /// Resolves a quant of the catalog. Where the catalog knows a hash, its facts are a check on what the hub says of the
    /// pinned commit. A hub that has that commit no more, or not its file, is believed for its main branch, as for any other
    /// repository; a file that was renamed there is found by its quant.
    ///
    /// # Errors
    /// As [`Self::resolve`]; [`Code::Corrupt`] if the hub names another hash or size for the pinned commit.
    pub async fn pinned(
        &self,
        pinned: &PinnedQuant,
        suit: &QuantTarget,
        taken: &(dyn Fn(&str, &Url) -> bool + Sync),
    ) -> Result<ResolvedReference, Error> {
        if let Some(commit) = pinned.revision.as_deref() {
            match self.at_commit(pinned, commit, suit, taken).await {
                Err(error) if error.code == Code::RepositoryUnknown => tracing::info!(
                    "{} is not at the pinned commit of {} anymore, so the main branch is used: {error}",
                    pinned.file,
                    pinned.repository
                ),
                resolved => return resolved,
            }
        }
        let files = self.repository(&pinned.repository, None).await?;
        let quant = files
            .picked(&Pick::File(pinned.file.clone()))
            .or_else(|gone| {
                let renamed = files.picked(&Pick::Quant(pinned.quant.clone()));
                renamed.map_err(|_| gone)
            })?;
        self.of_hub(&files, quant, suit, taken).await
    }

    async fn at_commit(
        &self,
        pinned: &PinnedQuant,
        commit: &str,
        suit: &QuantTarget,
        taken: &(dyn Fn(&str, &Url) -> bool + Sync),
    ) -> Result<ResolvedReference, Error> {
        let files = self.repository(&pinned.repository, Some(commit)).await?;
        let quant = files.picked(&Pick::File(pinned.file.clone()))?;
        if let Some(quant) = &quant {
            check_pin(pinned, quant, &files)?;
        }
        self.of_hub(&files, quant, suit, taken).await
    }

    async fn of_hub(
        &self,
        files: &HubFiles,
        quant: Option<Quant>,
        suit: &QuantTarget,
        taken: &(dyn Fn(&str, &Url) -> bool + Sync),
    ) -> Result<ResolvedReference, Error> {
        if files.gated && !self.has_token() {
            return Err(self.denied(&files.repository));
        }
        let offers = offers(files);
        let (quant, account) = match quant {
            Some(quant) => {
                let account = self.account(files, &quant).await;
                (quant, account)
            }
            None => self.suiting(files, suit, &offers, taken).await?,
        };
        let (account, estimated) = match account {
            Ok((account, estimated)) => (Ok(account), estimated),
            // It can be fetched, for another version of the engine or to be looked at.
            Err(error) if is_of_the_file(&error) => (Err(error), true),
            // A server that refuses the header refuses the file.
            Err(error) if error.code == Code::AccessDenied => {
                return Err(self.denied(&files.repository));
            }
            Err(error) => return Err(error),
        };
        let projector = match &account {
            Ok(account) => match self.projector(files, &quant, account, taken).await {
                Err(error) if !is_of_the_file(&error) => return Err(error),
                found => found,
            },
            Err(_) => Ok(None),
        };
        Ok(ResolvedReference {
            reference: quant.reference.clone(),
            quant: Some(quant.name),
            repository: Some(files.repository.to_string()),
            revision: Some(files.commit.clone()),
            files: self.resolved(files, &quant.files, taken),
            account,
            estimated,
            offers,
            projector,
        })
    }

    /// Returns the files of one model of a repository, with their names in the models folder.
    pub(super) fn resolved(
        &self,
        files: &HubFiles,
        chosen: &[HubFile],
        taken: &(dyn Fn(&str, &Url) -> bool + Sync),
    ) -> Vec<ResolvedFile> {
        let url = |file: &HubFile| self.file_url(&files.repository, &files.commit, &file.path);
        let first = url(&chosen[0]);
        let taken = |name: &str| taken(name, &first);
        let names = local::names(&files.repository, &files.commit, chosen, &taken);
        (chosen.iter().zip(names))
            .map(|(file, name)| ResolvedFile {
                url: url(file),
                path: Some(file.path.clone()),
                name,
                size: Some(file.size),
                sha256: file.sha256.clone(),
            })
            .collect()
    }

    /// Returns the recommended quant and its account. If none fits, this is the smallest, with a verdict that says so.
    async fn suiting(
        &self,
        files: &HubFiles,
        suit: &QuantTarget,
        offers: &[Offer],
        taken: &(dyn Fn(&str, &Url) -> bool + Sync),
    ) -> Result<(Quant, Result<(ModelAccount, bool), Error>), Error> {
        let usual = usual_quant(&files.quants).unwrap_or(&files.quants[0]);
        let account = self.account(files, usual).await;
        let Ok((read, _)) = &account else {
            return Ok((usual.clone(), account));
        };
        let projector = self.projector(files, usual, read, taken).await;
        let projector = projector.ok().flatten();
        let best = quant_for_target(read, projector.as_ref(), suit, offers);
        let best = best.map(|best| best.reference);
        let quant = (files.quants.iter())
            .find(|quant| best.as_ref() == Some(&quant.reference))
            .unwrap_or(&files.quants[0]);
        if quant == usual {
            return Ok((quant.clone(), account));
        }
        // Reads the header of the chosen quant, whose sizes were scaled until now.
        let own = match self.account(files, quant).await {
            Err(error) if error.code == Code::ModelUnsupported => {
                Ok((read.scaled_to(quant.size()), true))
            }
            own => own,
        };
        Ok((quant.clone(), own))
    }

    /// The model's account from its first file, and whether that is an estimate: of a split model only the first part's
    /// tensors are known, so all are scaled to the size of the whole.
    pub(super) async fn account(
        &self,
        files: &HubFiles,
        quant: &Quant,
    ) -> Result<(ModelAccount, bool), Error> {
        let url = self.file_url(&files.repository, &files.commit, &quant.files[0].path);
        let read = remote::header(&self.web, &self.tokens, &url).await?;
        if quant.files.len() == 1 {
            return Ok((read.account, false));
        }
        if read.account.parameters == 0 {
            return Err(Error::new(
                Code::ModelUnsupported,
                format!(
                    "the first part of {} does not describe the model's tensors",
                    quant.reference
                ),
            ));
        }
        Ok((read.account.scaled_to(quant.size()), true))
    }

    async fn of_url(
        &self,
        url: &Url,
        taken: &(dyn Fn(&str, &Url) -> bool + Sync),
    ) -> Result<ResolvedReference, Error> {
        let read = remote::header(&self.web, &self.tokens, url).await?;
        if read.account.parts > 1 {
            return Err(Error::new(
                Code::ModelUnsupported,
                format!(
                    "{} is one of {} parts of a model",
                    display_url(url),
                    read.account.parts
                ),
            )
            .hint("use owner/repo instead, so that all parts are found"));
        }
        Ok(ResolvedReference {
            reference: Reference::Url(url.clone()).to_string(),
            quant: Some(read.account.quant.clone()),
            repository: None,
            revision: None,
            files: vec![ResolvedFile {
                url: url.clone(),
                path: None,
                name: local::name_of_url(url, &|name: &str| taken(name, url)),
                size: Some(read.size),
                sha256: read.sha256,
            }],
            account: Ok(read.account),
            estimated: false,
            offers: Vec::new(),
            projector: Ok(None),
        })
    }
}

/// Compares the catalog's facts with the hub's.
fn check_pin(pinned: &PinnedQuant, quant: &Quant, files: &HubFiles) -> Result<(), Error> {
    // A size without a hash may be of another commit.
    if let Some(sha256) = &pinned.sha256 {
        let first = &quant.files[0];
        let published = HubFile {
            path: first.path.clone(),
            size: quant.size(),
            sha256: (first.sha256.clone()).filter(|_| quant.files.len() == 1),
        };
        let known = HubFile {
            path: pinned.file.clone(),
            size: pinned.size.unwrap_or(published.size),
            sha256: Some(sha256.clone()),
        };
        compare(pinned, &known, &published)?;
    }
    if let Some(known) = &pinned.projector
        && let Some(file) = (files.projectors.iter()).find(|file| file.path == known.path)
    {
        compare(pinned, known, file)?;
    }
    Ok(())
}

/// Compares sizes, and hashes as far as they are known.
fn compare(pinned: &PinnedQuant, known: &HubFile, published: &HubFile) -> Result<(), Error> {
    let (what, here, there) = match (&known.sha256, &published.sha256) {
        _ if known.size != published.size => {
            ("size", known.size.to_string(), published.size.to_string())
        }
        (Some(here), Some(there)) if !here.eq_ignore_ascii_case(there) => {
            ("sha256", here.clone(), there.clone())
        }
        _ => return Ok(()),
    };
    let message = format!(
        "the {what} of {} in {} differs from the catalog: {there} instead of {here}",
        known.path, pinned.repository
    );
    Err(Error::new(Code::Corrupt, message)
        .hint("nothing was downloaded; to use the file anyway, name it as owner/repo/file"))
}

/// Returns whether the file is what cannot be used, rather than its server.
pub(super) fn is_of_the_file(error: &Error) -> bool {
    matches!(error.code, Code::ModelInvalid | Code::ModelUnsupported)
}

pub(super) fn offers(files: &HubFiles) -> Vec<Offer> {
    files
        .quants
        .iter()
        .map(|quant| Offer {
            quant: quant.name.clone(),
            reference: quant.reference.clone(),
            size_bytes: quant.size(),
        })
        .collect()
}

pub(super) fn quant_for_target(
    account: &ModelAccount,
    projector: Option<&ResolvedProjector>,
    suit: &QuantTarget,
    offers: &[Offer],
) -> Option<Instead> {
    let beside = CompanionModels::projector(projector.map(|projector| &projector.account));
    recommend(account, beside, suit.context, &suit.machine, offers)
}

/// Returns the quant whose header represents its repository.
pub(super) fn usual_quant(quants: &[Quant]) -> Option<&Quant> {
    let whole = || quants.iter().filter(|quant| quant.files.len() == 1);
    USUAL
        .iter()
        .find_map(|name| whole().find(|quant| quant.name == *name))
        .or_else(|| whole().next())
        .or_else(|| quants.first())
}
