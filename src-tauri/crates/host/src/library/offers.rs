//! Models to download, from the catalog, the hub or any server, and how each would run here.

use super::{list::CatalogList, local::LocalModels};
use crate::models::companion_models;
use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};
use tierbar_core::{
    Code, Error, ModelId,
    catalog::HubRepository,
    config::{Choice, KvCache, Profile, TierConfig},
    download::{DownloadState, Include},
    fit::{ContextChoice, Machine, Verdict, verdict_with},
};
use tierbar_fetch::{Url, blocking};
use tierbar_inference::services::models::{CatalogAnswer, FitQuestion};
use tierbar_library::{
    Entry, Projector,
    catalog::{self, Catalog, catalog},
    hub::{Hub, HubFile, PinnedQuant, QuantTarget, ResolvedReference},
    is_projector, model_id,
    reference::{Pick, Reference, Repository},
};
use tierbar_telemetry::parse_size;

/// Finds models that can be downloaded, and judges them.
#[derive(Debug)]
pub(crate) struct Offers {
    pub(crate) local: Arc<LocalModels>,
    pub(crate) hub: Hub,
    pub(crate) list: CatalogList,
}

impl Offers {
    /// Returns the verdict on an installed model, or else on one to download.
    pub(crate) async fn fit(&self, question: FitQuestion) -> Result<Verdict, Error> {
        let (model, context) = (question.model, question.context);
        let profile: Option<Profile> = parsed(question.profile)?;
        let range = TierConfig::CONTEXT;
        if let Some(tokens) = context.filter(|tokens| !range.contains(tokens)) {
            let (least, most) = (range.start(), range.end());
            let message = format!("a context of {tokens} tokens is not between {least} and {most}");
            return Err(Error::new(Code::BadRequest, message));
        }
        let kv_cache: Option<KvCache> = parsed(question.kv_cache)?;
        let another = question.ram.as_deref().map(another_machine).transpose()?;
        let entries = self.local.readable().await;
        let machine = match another {
            Some(machine) => machine,
            None => self.local.machine_for(&entries).await,
        };
        let missing = match self.account_of(&model).await {
            Ok(local) => {
                let choice = requested_context(local.context, profile, context, kv_cache);
                let beside = companion_models(local.projector.as_ref(), local.draft.as_ref());
                let verdict = verdict_with(&local.account, beside, choice, &machine, &[]);
                return Ok(match another {
                    Some(_) => verdict,
                    None => self.local.with_measured(verdict, &local.id),
                });
            }
            Err(error)
                if error.code == Code::ModelMissing && !model.starts_with(['/', '~', '.']) =>
            {
                error
            }
            Err(error) => return Err(error),
        };
        let reference = parse(&model, missing)?;
        let suit = QuantTarget {
            machine,
            context: requested_context(ContextChoice::default(), profile, context, kv_cache),
        };
        let resolved = match self.resolve(&reference, &suit, &entries).await {
            Ok(resolved) => resolved,
            Err(error) => return of_catalog(&self.list.catalog(), &reference, &suit).ok_or(error),
        };
        let verdict = judge(&resolved, &suit, Include::All)?;
        Ok(match (another, resolved.files.first()) {
            (None, Some(file)) => self.local.with_measured(verdict, &model_id(&file.name)),
            _ => verdict,
        })
    }

    pub(crate) async fn catalog(&self) -> Result<CatalogAnswer, Error> {
        let entries = self.local.readable().await;
        let machine = self.local.machine_for(&entries).await;
        let catalog = self.list.catalog();
        let mut models = catalog.wire(&machine);
        for file in models.iter_mut().flat_map(|model| &mut model.quants) {
            let id = model_id(&file.file);
            let installed = |entry| is_installed(entry, &file.reference, &id, file.size_bytes);
            file.installed = entries.iter().any(installed);
            if let Some(fit) = file.fit.take() {
                file.fit = Some(self.local.with_measured(fit, &id));
            }
        }
        Ok(CatalogAnswer {
            version: catalog.version.to_string(),
            date: catalog.date.clone(),
            refreshed: self.list.refreshed(),
            models,
        })
    }

    /// Notes the hub's figures of a file of the catalog whose hash was not known until it was downloaded.
    pub(crate) async fn pin(&self, resolved: &ResolvedReference) {
        let (Some(repository), Some(name)) = (&resolved.repository, &resolved.quant) else {
            return;
        };
        let catalog = self.list.catalog();
        if let Some((entry, quant)) = catalog.offered(repository, name)
            && quant.sha256.is_none()
        {
            self.list.pin(&entry.id, &quant.quant, resolved).await;
        }
    }

    pub(crate) async fn repository(&self, id: String) -> Result<HubRepository, Error> {
        let repository = Repository::new(&id)?;
        let entries = self.local.readable().await;
        let suit = QuantTarget {
            machine: self.local.machine_for(&entries).await,
            context: ContextChoice::default(),
        };
        let installed = |reference: &str| {
            entries
                .iter()
                .any(|entry| entry.reference() == Some(reference))
        };
        self.hub.offers(&repository, &suit, &installed).await
    }

    /// Resolves a reference to files, sizes, hashes and the model's header.
    pub(crate) async fn resolve(
        &self,
        reference: &Reference,
        suit: &QuantTarget,
        entries: &[Entry],
    ) -> Result<ResolvedReference, Error> {
        let library = self.local.config.models.library();
        let models_dir = library.models_dir().to_owned();
        let under_way = self.local.config.queue.watch().borrow().clone();
        let taken = |name: &str, url: &Url| {
            let here = entries.iter().any(|entry| {
                let named = |path: &PathBuf| {
                    let file = path.file_name().and_then(OsStr::to_str);
                    path.parent() == Some(&models_dir)
                        && file.is_some_and(|file| file.eq_ignore_ascii_case(name))
                };
                let recorded = entry.record.as_ref().and_then(|record| record.url.as_ref());
                entry.parts.iter().any(named)
                    && recorded.is_some_and(|recorded| is_elsewhere(recorded, url))
            });
            let coming = under_way.iter().any(|download| {
                let mut files = download.files.iter();
                download.state != DownloadState::Done
                    && files.any(|file| file.name.eq_ignore_ascii_case(name))
                    && !is_of(&download.reference, url)
            });
            // A projector is no entry of the list.
            let recorded = is_projector(Path::new(name))
                .then(|| library.recorded_url(&models_dir.join(name)))
                .flatten();
            here || coming || recorded.is_some_and(|recorded| is_elsewhere(&recorded, url))
        };
        let catalog = self.list.catalog();
        let (entry, resolved) = match reference {
            Reference::Catalog { id, quant } => {
                let entry = catalog.find(id).ok_or_else(|| {
                    let message = format!("the catalog does not list {id}");
                    Error::new(Code::ModelUnknown, message)
                })?;
                let resolved = if let Some(quant) = choose_quant(entry, quant.as_deref(), suit) {
                    let pinned = pinned(entry, quant)?;
                    self.hub.pinned(&pinned, suit, &taken).await
                } else {
                    // The repository may have more than the catalog lists.
                    let reference = Reference::Hub {
                        repository: Repository::new(&entry.repository)?,
                        revision: None,
                        pick: quant.clone().map_or(Pick::Suiting, Pick::Quant),
                    };
                    self.hub.resolve(&reference, suit, &taken).await
                };
                (Some(entry), resolved?)
            }
            // As the list names its files: what it knows of them counts.
            Reference::Hub {
                repository,
                revision: None,
                pick: Pick::Quant(name),
            } if let Some((entry, quant)) = catalog.offered(&repository.to_string(), name) => {
                let pinned = pinned(entry, quant)?;
                let resolved = self.hub.pinned(&pinned, suit, &taken).await;
                (Some(entry), resolved?)
            }
            _ => (None, self.hub.resolve(reference, suit, &taken).await?),
        };
        Ok(match entry {
            Some(entry) => as_listed(entry, resolved),
            None => resolved,
        })
    }

    async fn account_of(&self, model: &str) -> Result<Local, Error> {
        let (library, model) = (self.local.config.models.library(), model.to_owned());
        let (path, account, projector, id) = blocking("reading the model", move || {
            let path = library.resolve(&model)?;
            let account = library.account(&path)?;
            let projector = library.projector(&path, &account);
            Ok((path, account, projector, model_id(&model)))
        })
        .await?;
        let tiers = self.local.tiers_by_path().await;
        let config = self.local.config.models.config();
        let used_by = tiers.get(&path).and_then(|tiers| tiers.first());
        let tier = used_by.and_then(|tier| config.tiers.get(tier));
        let mut drafts = self.local.draft_models(Arc::clone(&config)).await;
        Ok(Local {
            id,
            account,
            projector,
            draft: used_by.and_then(|tier| drafts.remove(tier)),
            context: tier.map(ContextChoice::from).unwrap_or_default(),
        })
    }
}

struct Local {
    id: ModelId,
    account: tierbar_core::ModelAccount,
    projector: Option<Projector>,
    /// Those of the tier that loads it.
    draft: Option<tierbar_core::ModelAccount>,
    context: ContextChoice,
}

fn parsed<T: FromStr<Err = String>>(name: Option<String>) -> Result<Option<T>, Error> {
    let parsed = name.map(|name| name.parse()).transpose();
    parsed.map_err(|wrong| Error::new(Code::BadRequest, wrong))
}

/// Returns a choice of context with what a request says in place of its own.
fn requested_context(
    own: ContextChoice,
    profile: Option<Profile>,
    context: Option<u32>,
    kv_cache: Option<KvCache>,
) -> ContextChoice {
    let own = profile.map_or(own, |profile| own.with_profile(profile));
    ContextChoice {
        context: context.map_or(own.context, Choice::Fixed),
        kv_cache: kv_cache.map_or(own.kv_cache, Choice::Fixed),
        ..own
    }
}

/// Parses a reference; `missing` is the error for an unknown bare name.
pub(crate) fn parse(text: &str, missing: Error) -> Result<Reference, Error> {
    Reference::parse(text, |name| Some(catalog().find(name)?.id.clone())).map_err(|error| {
        if error.code == Code::ModelUnknown {
            missing
        } else {
            error
        }
    })
}

/// # Errors
/// Why the header could not be read.
pub(crate) fn judge(
    resolved: &ResolvedReference,
    suit: &QuantTarget,
    include: Include,
) -> Result<Verdict, Error> {
    let account = resolved.account.as_ref().map_err(Error::clone)?;
    let mut verdict = verdict_with(
        account,
        resolved.beside(include),
        suit.context,
        &suit.machine,
        &resolved.offers,
    );
    verdict.estimated = resolved.estimated;
    Ok(verdict)
}

/// Returns the catalog's estimate, for when the hub is unreachable.
fn of_catalog(catalog: &Catalog, reference: &Reference, suit: &QuantTarget) -> Option<Verdict> {
    let Reference::Catalog { id, quant } = reference else {
        return None;
    };
    let entry = catalog.find(id)?;
    let account = entry.account(choose_quant(entry, quant.as_deref(), suit)?)?;
    let mut verdict = verdict_with(&account, entry.beside(), suit.context, &suit.machine, &[]);
    verdict.estimated = true;
    Some(verdict)
}

/// Returns the requested quant, or else the recommended one, or else the smallest; `None` if the catalog does not have it.
fn choose_quant<'a>(
    entry: &'a catalog::Entry,
    quant: Option<&str>,
    suit: &QuantTarget,
) -> Option<&'a catalog::Quant> {
    match quant {
        Some(name) => entry.quant(name),
        None => entry
            .recommended(suit.context.profile, &suit.machine)
            .or(entry.quants.first()),
    }
}

fn pinned(entry: &catalog::Entry, quant: &catalog::Quant) -> Result<PinnedQuant, Error> {
    Ok(PinnedQuant {
        repository: Repository::new(&entry.repository)?,
        revision: entry.revision(quant).map(str::to_owned),
        quant: quant.quant.clone(),
        file: quant.file.clone(),
        size: quant.size_bytes,
        sha256: quant.sha256.clone(),
        projector: entry.projector.as_ref().map(|known| HubFile {
            path: known.file.clone(),
            size: known.size_bytes,
            sha256: Some(known.sha256.clone()),
        }),
    })
}

/// Returns a resolved model of the catalog: its header cannot be used if it is another model's, and a listed projector is missed.
fn as_listed(entry: &catalog::Entry, mut resolved: ResolvedReference) -> ResolvedReference {
    let Ok(account) = &resolved.account else {
        return resolved;
    };
    if let Some(error) = entry.mismatch(account) {
        resolved.account = Err(error);
        resolved.projector = Ok(None);
    } else if entry.projector.is_some() && matches!(resolved.projector, Ok(None)) {
        let message = "its repository no longer has a media projector";
        resolved.projector = Err(Error::new(Code::RepositoryUnknown, message)
            .hint("this model takes text only; choose another one for images and sound"));
    }
    resolved
}

/// By its record, since one that was downloaded before the hub's file changed or was renamed is the same model; or by name and size.
pub(super) fn is_installed(
    entry: &Entry,
    reference: &str,
    id: &ModelId,
    size: Option<u64>,
) -> bool {
    entry.reference() == Some(reference)
        || entry.id == *id && size.is_none_or(|size| size == entry.size_bytes)
}

pub(super) fn another_machine(ram: &str) -> Result<Machine, Error> {
    let bytes = parse_size(ram).map_err(|wrong| Error::new(Code::BadRequest, wrong))?;
    Ok(Machine::mac(bytes))
}

/// Returns whether a file comes from another source. For a file of unknown origin, the transfer compares the bytes.
fn is_elsewhere(recorded: &str, url: &Url) -> bool {
    Url::parse(recorded).is_ok_and(|recorded| source_of_url(&recorded) != source_of_url(url))
}

/// Returns a URL's server and path, without the commit.
fn source_of_url(url: &Url) -> (String, Vec<&str>) {
    let mut parts: Vec<_> = url.path_segments().into_iter().flatten().collect();
    if parts.get(2) == Some(&"resolve") && parts.len() > 4 {
        parts.drain(2..4);
    }
    (url.origin().ascii_serialization(), parts)
}

/// Returns whether the reference of a download may mean the file at the URL.
fn is_of(reference: &str, url: &Url) -> bool {
    if reference.contains("://") {
        return Url::parse(reference)
            .is_ok_and(|reference| source_of_url(&reference) == source_of_url(url));
    }
    let mut parts = reference.split(['/', ':']);
    match (parts.next(), parts.next(), url.path_segments()) {
        (Some(owner), Some(name), Some(mut path)) => {
            path.next() == Some(owner) && path.next() == Some(name)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_of_two_commits_has_one_place() {
        let url = |text: &str| Url::parse(text).unwrap();
        let same = |a: &str, b: &str| source_of_url(&url(a)) == source_of_url(&url(b));
        assert!(same(
            "https://hub/a/b/resolve/111/x/m.gguf",
            "https://hub/a/b/resolve/222/x/m.gguf?download=true"
        ));
        for other in [
            "https://hub/a/b/resolve/111/m.gguf",
            "https://hub/c/b/resolve/111/x/m.gguf",
            "https://other/a/b/resolve/111/x/m.gguf",
        ] {
            assert!(
                !same("https://hub/a/b/resolve/111/x/m.gguf", other),
                "{other}"
            );
        }
    }

    #[test]
    fn downloads_of_two_repositories_are_distinguished() {
        let url = Url::parse("https://hub/a/b/resolve/111/m-Q4_0.gguf").unwrap();
        assert!(is_of("a/b:Q4_0", &url));
        assert!(is_of("a/b/m-Q4_0.gguf", &url));
        assert!(!is_of("c/b:Q4_0", &url));
        assert!(is_of("https://hub/a/b/resolve/222/m-Q4_0.gguf", &url));
        assert!(!is_of("https://elsewhere/m-Q4_0.gguf", &url));
    }

    #[test]
    fn a_machine_given_by_its_memory_is_a_mac() {
        let machine = another_machine("16GiB").unwrap();
        assert_eq!(machine.ram_bytes, 16 << 30);
        assert!(machine.gpu_limit.is_some() && machine.memory_bandwidth.is_none());
        assert_eq!(another_machine("lots").unwrap_err().code, Code::BadRequest);
    }
}
