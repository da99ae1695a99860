//! Which of a repository's media projectors is downloaded with a model.

use super::{Hub, HubFile, HubFiles, Quant, ResolvedFile, quants, resolve::is_of_the_file};
use crate::{catalog::catalog, projector, remote};
use tierbar_core::{Code, Error, ModelAccount, catalog::OfferedProjector};
use tierbar_fetch::Url;
use tierbar_gguf::ProjectorAccount;

/// The most headers that are read to find one that fits. More would be a collection of several models.
const MOST_READ: usize = 4;

/// A media projector to download with a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedProjector {
    pub file: ResolvedFile,
    pub account: ProjectorAccount,
}

impl ResolvedProjector {
    /// Returns it as the API offers it.
    pub fn offer(&self) -> OfferedProjector {
        OfferedProjector {
            file: self.file.path.clone().unwrap_or_default(),
            size_bytes: self.file.size,
            input_modalities: self.account.modalities(),
        }
    }
}

impl HubFiles {
    /// Returns the projectors in the order in which to take them: the catalog's first, then those in the quant's folder, then by
    /// precision.
    fn projectors_for(&self, quant: &Quant) -> Vec<&HubFile> {
        let repository = self.repository.to_string();
        let known = (catalog().models.iter()).find(|entry| entry.repository == repository);
        let wanted = known.and_then(|entry| entry.projector.as_ref());
        let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
        let home = folder(&quant.files[0].path);
        let mut found: Vec<_> = self.projectors.iter().collect();
        found.sort_by_key(|file| {
            let precision = quants::quant_in(quants::stem(&file.path)).unwrap_or_default();
            (
                wanted.is_none_or(|wanted| wanted.file != file.path),
                folder(&file.path) != home,
                projector::rank(&precision),
                &file.path,
            )
        });
        found
    }
}

impl Hub {
    /// Returns the projector of a model, or why the repository's cannot be used; `Ok(None)` if it has none.
    ///
    /// # Errors
    /// [`Code::ModelInvalid`] and [`Code::ModelUnsupported`] for projectors that are damaged or of another model; those of
    /// [`remote::projector`].
    pub(super) async fn projector(
        &self,
        files: &HubFiles,
        quant: &Quant,
        account: &ModelAccount,
        taken: &(dyn Fn(&str, &Url) -> bool + Sync),
    ) -> Result<Option<ResolvedProjector>, Error> {
        let mut first_problem = None;
        for file in files.projectors_for(quant).into_iter().take(MOST_READ) {
            let url = self.file_url(&files.repository, &files.commit, &file.path);
            let problem = match remote::projector(&self.web, &self.tokens, &url).await {
                Ok(read) if read.account.fits(account) => {
                    let file = self
                        .resolved(files, std::slice::from_ref(file), taken)
                        .pop();
                    let account = read.account;
                    return Ok(file.map(|file| ResolvedProjector { file, account }));
                }
                Ok(read) => foreign(files, file, &read.account, account),
                Err(error) if is_of_the_file(&error) => error,
                Err(error) => return Err(error),
            };
            first_problem.get_or_insert(problem);
        }
        first_problem.map_or(Ok(None), Err)
    }
}

fn foreign(
    files: &HubFiles,
    file: &HubFile,
    projector: &ProjectorAccount,
    model: &ModelAccount,
) -> Error {
    let width = projector.projection_dim.unwrap_or_default();
    Error::new(
        Code::ModelInvalid,
        format!(
            "{} in {} is the projector of another model: it produces {width} values for each token, and this model \
             takes {}",
            file.path, files.repository, model.embedding
        ),
    )
}
