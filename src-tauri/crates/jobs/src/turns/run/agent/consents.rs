//! The way of a person's answer to the agent that waits for it.

use parking_lot::Mutex;
use tierbar_agent::agent::MisplacedInput;
use tierbar_chats::agent::ConsentAnswer;
use tierbar_core::{Code, Error, bad_request};
use tokio::sync::{mpsc, oneshot};

pub(super) type ConsentDelivery = (ConsentAnswer, oneshot::Sender<Result<(), Error>>);

/// The way from a person's answer to the agent that waits for it.
#[derive(Debug, Default)]
pub(in crate::turns) struct Consents(Mutex<Option<mpsc::Sender<ConsentDelivery>>>);

impl Consents {
    pub(super) fn open(&self) -> mpsc::Receiver<ConsentDelivery> {
        let (sender, receiver) = mpsc::channel(1);
        *self.0.lock() = Some(sender);
        receiver
    }

    pub(super) fn close(&self) {
        *self.0.lock() = None;
    }

    /// Answers the open question.
    ///
    /// # Errors
    /// `Conflict` if no question is open, or another one; `BadRequest` for a scope that it does not offer.
    pub(in crate::turns) async fn answer(&self, answer: ConsentAnswer) -> Result<(), Error> {
        let not_open = || {
            let error = Error::new(Code::Conflict, "this turn has no open question");
            error.hint("follow the turn's events; it may have been answered already")
        };
        let sender = self.0.lock().clone();
        let sender = sender.ok_or_else(not_open)?;
        let (reply, replied) = oneshot::channel();
        let sent = sender.send((answer, reply)).await;
        sent.map_err(|_| not_open())?;
        replied.await.map_err(|_| not_open())?
    }
}

pub(super) fn misplaced(error: &MisplacedInput) -> Error {
    match error {
        MisplacedInput::Answer(invalid) => bad_request(invalid.to_string())
            .hint("answer the last question of the turn's events, in one of its scopes"),
        MisplacedInput::NotOpen => Error::new(Code::Conflict, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tierbar_chats::agent::ConsentScope;

    fn answer(id: &str) -> ConsentAnswer {
        ConsentAnswer {
            id: id.to_owned(),
            allow: Some(ConsentScope::Once),
        }
    }

    #[tokio::test]
    async fn an_answer_without_a_question_is_a_conflict() {
        let consents = Consents::default();
        let error = consents.answer(answer("a")).await.unwrap_err();
        assert_eq!(error.code, Code::Conflict);
        // The waiter is gone.
        drop(consents.open());
        assert!(consents.answer(answer("a")).await.is_err());
        let _answers = consents.open();
        consents.close();
        assert!(consents.answer(answer("a")).await.is_err());
    }

    #[tokio::test]
    async fn an_answer_reaches_the_agent_and_its_reply_returns() {
        let consents = Arc::new(Consents::default());
        let mut answers = consents.open();
        let sent = tokio::spawn({
            let consents = Arc::clone(&consents);
            async move { consents.answer(answer("a")).await }
        });
        let (received, reply) = answers.recv().await.unwrap();
        assert_eq!(received.id, "a");
        assert_eq!(received.allow, Some(ConsentScope::Once));
        reply
            .send(Err(misplaced(&MisplacedInput::NotOpen)))
            .unwrap();
        assert_eq!(sent.await.unwrap().unwrap_err().code, Code::Conflict);
    }
}
