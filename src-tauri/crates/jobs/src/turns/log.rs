//! The events of a turn, numbered from 1, for followers that come and go.
//!
//! Text is held once; an event of text is a range of it. So a follower that joins late gets all of it as one event, and an answer of any
//! length takes a few bytes per token beside its text.

use parking_lot::Mutex;
use std::ops::Range;
use tierbar_chats::TurnEvent;
use tokio::sync::watch;

#[derive(Debug, Default)]
pub(super) struct Log {
    kept: Mutex<LogEntries>,
    /// How many events there are, and whether that is all.
    length: watch::Sender<(u64, bool)>,
}

#[derive(Debug, Default)]
struct LogEntries {
    text: String,
    reasoning: String,
    events: Vec<Entry>,
    ended: bool,
}

#[derive(Debug)]
enum Entry {
    /// A piece of the text.
    Text(Piece),
    /// A piece of the reasoning.
    Reasoning(Piece),
    /// In a box, since nearly all entries are text.
    Other(Box<TurnEvent>),
}

#[derive(Debug)]
struct Piece {
    bytes: Range<usize>,
    tokens: u32,
    decode_ms: u64,
}

impl Log {
    /// Adds an event. After the last one, which is `Finished` or `Failed`, nothing is added.
    pub(super) fn push(&self, event: TurnEvent) {
        let (length, ended) = {
            let mut kept = self.kept.lock();
            if kept.ended {
                return;
            }
            let entry = match event {
                TurnEvent::Text {
                    text,
                    tokens,
                    decode_ms,
                } => Entry::Text(Piece {
                    bytes: append(&mut kept.text, &text),
                    tokens,
                    decode_ms,
                }),
                TurnEvent::Reasoning {
                    text,
                    tokens,
                    decode_ms,
                } => Entry::Reasoning(Piece {
                    bytes: append(&mut kept.reasoning, &text),
                    tokens,
                    decode_ms,
                }),
                event => {
                    kept.ended =
                        matches!(event, TurnEvent::Finished { .. } | TurnEvent::Failed { .. });
                    Entry::Other(Box::new(event))
                }
            };
            kept.events.push(entry);
            (kept.events.len() as u64, kept.ended)
        };
        self.length.send_replace((length, ended));
    }

    pub(super) fn size(&self) -> usize {
        let kept = self.kept.lock();
        kept.text.len() + kept.reasoning.len()
    }

    /// The text and the reasoning so far, from these bytes on.
    pub(super) fn content_from(&self, (text, reasoning): (usize, usize)) -> (String, String) {
        let kept = self.kept.lock();
        (
            kept.text[text..].to_owned(),
            kept.reasoning[reasoning..].to_owned(),
        )
    }

    pub(super) fn has_ended(&self) -> bool {
        self.kept.lock().ended
    }

    /// The events after the one with this number, neighbours of text joined, each with its number or its last one's; and whether these
    /// are all.
    pub(super) fn after(&self, number: u64) -> (Vec<(u64, TurnEvent)>, bool) {
        let kept = self.kept.lock();
        let start = usize::try_from(number).unwrap_or(usize::MAX);
        let mut events: Vec<(u64, TurnEvent)> = Vec::new();
        let new = kept.events.get(start..).unwrap_or_default();
        for (number, entry) in (number.saturating_add(1)..).zip(new) {
            let event = match entry {
                Entry::Text(piece) => TurnEvent::Text {
                    text: kept.text[piece.bytes.clone()].to_owned(),
                    tokens: piece.tokens,
                    decode_ms: piece.decode_ms,
                },
                Entry::Reasoning(piece) => TurnEvent::Reasoning {
                    text: kept.reasoning[piece.bytes.clone()].to_owned(),
                    tokens: piece.tokens,
                    decode_ms: piece.decode_ms,
                },
                Entry::Other(event) => TurnEvent::clone(event),
            };
            match (events.last_mut(), &event) {
                (
                    Some((
                        last,
                        TurnEvent::Text {
                            text: before,
                            tokens,
                            decode_ms,
                        },
                    )),
                    TurnEvent::Text {
                        text,
                        tokens: tokens_now,
                        decode_ms: decode_ms_now,
                    },
                )
                | (
                    Some((
                        last,
                        TurnEvent::Reasoning {
                            text: before,
                            tokens,
                            decode_ms,
                        },
                    )),
                    TurnEvent::Reasoning {
                        text,
                        tokens: tokens_now,
                        decode_ms: decode_ms_now,
                    },
                ) => {
                    *last = number;
                    before.push_str(text);
                    (*tokens, *decode_ms) = (*tokens_now, *decode_ms_now);
                }
                _ => events.push((number, event)),
            }
        }
        (events, kept.ended)
    }

    pub(super) async fn wait_after(&self, number: u64) {
        let mut length = self.length.subscribe();
        // The sender lives as long as this log.
        let _ended = length
            .wait_for(|(length, ended)| *length > number || *ended)
            .await;
    }

    pub(super) async fn wait_for_end(&self) {
        let mut length = self.length.subscribe();
        let _ended = length.wait_for(|(_, ended)| *ended).await;
    }
}

/// Where the text now has these words.
fn append(text: &mut String, words: &str) -> Range<usize> {
    let start = text.len();
    text.push_str(words);
    start..text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_chats::TurnStage;
    use tierbar_core::{Code, Error};

    fn text(text: &str, tokens: u32) -> TurnEvent {
        TurnEvent::Text {
            text: text.into(),
            tokens,
            decode_ms: u64::from(tokens) * 10,
        }
    }

    fn thought(text: &str, tokens: u32) -> TurnEvent {
        TurnEvent::Reasoning {
            text: text.into(),
            tokens,
            decode_ms: u64::from(tokens) * 10,
        }
    }

    const LOADING: TurnEvent = TurnEvent::Progress {
        stage: TurnStage::Load,
    };

    fn failed() -> TurnEvent {
        TurnEvent::failed(Error::new(Code::Internal, "gone"), None, None)
    }

    #[test]
    fn a_late_follower_gets_joined_text_events() {
        let log = Log::default();
        for event in [
            LOADING,
            thought("H", 1),
            thought("m", 2),
            text("Pa", 3),
            text("ri", 4),
            text("s", 5),
        ] {
            log.push(event);
        }
        let all = [(1, LOADING), (3, thought("Hm", 2)), (6, text("Paris", 5))];
        assert_eq!(log.after(0), (all.to_vec(), false));
        assert_eq!(log.after(4), (vec![(6, text("ris", 5))], false));
        assert_eq!(log.after(2).0[0], (3, thought("m", 2)));
        assert_eq!(log.after(6), (vec![], false));
        assert_eq!(log.after(u64::MAX), (vec![], false));
        assert_eq!(log.content_from((0, 0)), ("Paris".into(), "Hm".into()));
        assert_eq!(log.content_from((2, 2)), ("ris".into(), String::new()));
    }

    #[test]
    fn nothing_follows_the_last_event() {
        let log = Log::default();
        log.push(failed());
        log.push(text("more", 1));
        assert_eq!(log.after(0), (vec![(1, failed())], true));
        assert!(log.has_ended());
    }

    #[tokio::test]
    async fn followers_get_the_next_event_and_the_end() {
        let log = std::sync::Arc::new(Log::default());
        log.push(text("a", 1));
        log.wait_after(0).await;
        let waiting = tokio::spawn({
            let log = std::sync::Arc::clone(&log);
            async move { log.wait_after(1).await }
        });
        log.push(text("b", 2));
        waiting.await.unwrap();
        log.push(failed());
        log.wait_after(9).await;
        log.wait_for_end().await;
    }
}
