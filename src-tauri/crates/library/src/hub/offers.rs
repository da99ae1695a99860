//! A repository as it is offered: every quant with its verdict.

use super::{
    Hub, Quant, QuantTarget,
    resolve::{offers, quant_for_target, usual_quant},
};
use crate::reference::Repository;
use tierbar_core::{
    Error,
    budget::CompanionModels,
    catalog::{HubRepository, OfferedFile},
    fit::{Instead, QuantLoss, Verdict, verdict_with},
};

impl Hub {
    /// A repository's models with their verdicts, which stand on one header, scaled to each quant's size.
    ///
    /// # Errors
    /// Those of [`Hub::repository`].
    pub async fn offers(
        &self,
        repository: &Repository,
        suit: &QuantTarget,
        installed: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<HubRepository, Error> {
        let files = self.repository(repository, None).await?;
        let offers = offers(&files);
        let read = usual_quant(&files.quants);
        let (mut account, mut projector) = (None, None);
        if let Some(quant) = read
            && let Ok(read) = self.account(&files, quant).await
        {
            let found = self.projector(&files, quant, &read.0, &|_, _| false);
            projector = found.await.ok().flatten();
            account = Some(read);
        }
        let best = account
            .as_ref()
            .and_then(|(account, _)| quant_for_target(account, projector.as_ref(), suit, &offers));
        let beside =
            CompanionModels::projector(projector.as_ref().map(|projector| &projector.account));
        let files_offered = files
            .quants
            .iter()
            .map(|quant| {
                let fit = account.as_ref().map(|(account, estimated)| {
                    let scaled = account.scaled_to(quant.size());
                    let mut fit =
                        verdict_with(&scaled, beside, suit.context, &suit.machine, &offers);
                    fit.estimated = *estimated || read != Some(quant);
                    fit
                });
                let best = best
                    .as_ref()
                    .filter(|best| best.reference == quant.reference);
                offered(quant, fit, best, installed)
            })
            .collect();
        Ok(HubRepository {
            repository: repository.to_string(),
            revision: files.commit,
            licence: files.licence,
            gated: files.gated,
            files: files_offered,
            projector: projector.map(|projector| projector.offer()),
        })
    }
}

fn offered(
    quant: &Quant,
    fit: Option<Verdict>,
    best: Option<&Instead>,
    installed: &(dyn Fn(&str) -> bool + Sync),
) -> OfferedFile {
    let first = &quant.files[0];
    OfferedFile {
        quant: quant.name.clone(),
        reference: quant.reference.clone(),
        file: first.path.clone(),
        parts: u32::try_from(quant.files.len()).unwrap_or(u32::MAX),
        size_bytes: Some(quant.size()),
        sha256: first.sha256.clone().filter(|_| quant.files.len() == 1),
        loss: QuantLoss::of(&quant.name),
        recommended: best.is_some(),
        reason: best.map(|best| best.reason.clone()),
        grounds: best.and_then(|best| best.grounds.clone()),
        installed: installed(&quant.reference),
        fit,
    }
}
