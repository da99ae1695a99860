//! Webhooks: a signed notice of each ended request, sent again until its receiver accepts it.

use super::{now_ms, render, wait_until};
use crate::Jobs;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use data_encoding::HEXLOWER;
use futures_util::future::join_all;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use std::time::Duration;
use tierbar_core::{
    Code, Error,
    queue::{WebhookState, next_delivery},
};
use tierbar_fetch::{RemoteFailure, blocking};
use tierbar_secrets::Name;
use tierbar_store::Delivery;
use tokio::time::{sleep, timeout};

/// Deliveries at once.
const AT_ONCE: u32 = 8;
/// How long a server may take to say that it has heard.
const PATIENCE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(60);
/// Bytes. The receiver fetches a longer answer.
const LONGEST_RESULT: usize = 1 << 20;
static SIGNATURE: HeaderName = HeaderName::from_static("x-tierbar-signature");

/// Runs until the host ends.
pub(super) async fn deliver(jobs: &Jobs) {
    let closing = &jobs.inference.closing;
    while !closing.is_cancelled() {
        let round = closing.run_until_cancelled(round(jobs)).await;
        let wait = match round {
            None => return,
            Some(Ok(wait)) => wait,
            Some(Err(error)) => {
                tracing::error!("webhooks are paused: {error}");
                Some(AGAIN)
            }
        };
        tokio::select! {
            () = closing.cancelled() => return,
            () = jobs.queue.endings.notified() => {}
            () = sleep(wait.unwrap_or_default()), if wait.is_some() => {}
        }
    }
}

/// Tells what is due. How long nothing is, if anything will be.
async fn round(jobs: &Jobs) -> Result<Option<Duration>, Error> {
    let due = jobs.store.due_webhooks(AT_ONCE, now_ms()).await?;
    if !due.is_empty() {
        let secret = secret(jobs).await?;
        let rendered = due.iter().map(|delivery| send(jobs, &secret, delivery));
        for rendered in join_all(rendered).await {
            rendered?;
        }
    }
    let next = jobs.store.next_webhook_ms().await?;
    Ok(next.map(wait_until))
}

async fn send(jobs: &Jobs, secret: &SecretString, delivery: &Delivery) -> Result<(), Error> {
    let id = &delivery.id;
    let outcome = match jobs.store.job_outcome(id, true).await {
        Ok(outcome) => outcome,
        // Removed meanwhile: there is nothing to report.
        Err(error) if error.code == Code::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let body = render::outcome_json(&outcome, LONGEST_RESULT).to_string();
    let body = body.into_bytes();
    let signature = signature(secret, now_ms(), &body)?;
    let headers = HeaderMap::from_iter([(SIGNATURE.clone(), signature)]);
    let sending = jobs.inference.remote.post_to(&delivery.url, headers, body);
    let failure = match timeout(PATIENCE, sending).await {
        Ok(Ok(answer)) if answer.status().is_success() => None,
        Ok(Ok(answer)) => Some(format!("answered {}", answer.status())),
        Ok(Err(RemoteFailure::Server(why))) => Some(why),
        Ok(Err(RemoteFailure::Lack(lack))) => return Err(lack),
        Err(_) => Some(format!("did not answer within {} s", PATIENCE.as_secs())),
    };
    let again = || next_delivery(id, delivery.attempts + 1, delivery.ended_ms, now_ms());
    let due = failure.as_ref().and_then(|_| again());
    let state = match (failure, due) {
        (None, _) => WebhookState::Delivered,
        (Some(_), Some(_)) => WebhookState::Pending,
        (Some(why), None) => {
            // Its path and query may be a secret of the receiver's.
            tracing::warn!("the webhook of the queued request {id} {why}: given up");
            WebhookState::GivenUp
        }
    };
    jobs.store.settle_webhook(id, state, due).await
}

/// `t=MS,v1=HEX`: HMAC-SHA256 of `MS.BODY`, so that a body cannot be sent again as new.
fn signature(secret: &SecretString, at_ms: u64, body: &[u8]) -> Result<HeaderValue, Error> {
    let unusable =
        |why: String| Error::new(Code::Internal, format!("cannot sign a webhook: {why}"));
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes())
        .map_err(|error| unusable(error.to_string()))?;
    mac.update(format!("{at_ms}.").as_bytes());
    mac.update(body);
    let hash = HEXLOWER.encode(&mac.finalize().into_bytes());
    HeaderValue::try_from(format!("t={at_ms},v1={hash}"))
        .map_err(|error| unusable(error.to_string()))
}

/// What webhooks are signed with: kept where keys are, and made when it is first wanted.
pub async fn secret(jobs: &Jobs) -> Result<SecretString, Error> {
    // Two who find none would make two.
    let _one = jobs.queue.secret.lock().await;
    let secrets = jobs.inference.secrets.clone();
    blocking("the webhooks' secret", move || {
        if let Some(secret) = secrets.get(&Name::Webhooks)? {
            return Ok(secret);
        }
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|error| Error::new(Code::Internal, format!("no random bytes: {error}")))?;
        let secret = SecretString::from(HEXLOWER.encode(&bytes));
        secrets.set(&Name::Webhooks, &secret)?;
        Ok(secret)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_the_hmac_of_time_and_body() {
        let secret = SecretString::from("key".to_owned());
        let signed = signature(&secret, 12, b"{\"a\":1}").unwrap();
        // printf '12.{"a":1}' | openssl dgst -sha256 -hmac key
        let known = "7212380e67628554ba59ab20028b53b99d4c7716394eface6e2635bfa1665878";
        assert_eq!(signed.to_str().unwrap(), format!("t=12,v1={known}"));
    }
}
