//! The events of a turn, numbered from 1, for followers that come and go.
//!
//! Text is held once; an event of text is a range of it. So a follower that joins late gets all of it as one event, and an answer of any
//! length takes a few bytes per token beside its text.

use std::ops::Range;
use tierbar_chats::TurnEvent;
use tokio::sync::watch;

#[derive(Debug, Default)]
pub(super) struct Log(watch::Sender<LogEntries>);

#[derive(Debug, Default)]
struct LogEntries {
    text: String,
    reasoning: String,
    events: Vec<Entry>,
    ended: bool,
}

#[derive(Debug)]
enum Entry {
    Text(Piece),
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

impl Entry {
    fn is_continued_by(&self, next: &Self) -> bool {
        matches!(
            (self, next),
            (Self::Text(_), Self::Text(_)) | (Self::Reasoning(_), Self::Reasoning(_))
        )
    }
}

impl Piece {
    fn added(text: &mut String, words: &str, tokens: u32, decode_ms: u64) -> Self {
        let start = text.len();
        text.push_str(words);
        Self {
            bytes: start..text.len(),
            tokens,
            decode_ms,
        }
    }
}

impl Log {
    /// Adds an event. After the last one, which is `Finished` or `Failed`, nothing is added.
    pub(super) fn push(&self, event: TurnEvent) {
        self.0.send_if_modified(|kept| {
            if kept.ended {
                return false;
            }
            let entry = match event {
                TurnEvent::Text {
                    text,
                    tokens,
                    decode_ms,
                } => Entry::Text(Piece::added(&mut kept.text, &text, tokens, decode_ms)),
                TurnEvent::Reasoning {
                    text,
                    tokens,
                    decode_ms,
                } => Entry::Reasoning(Piece::added(&mut kept.reasoning, &text, tokens, decode_ms)),
                event => {
                    kept.ended =
                        matches!(event, TurnEvent::Finished { .. } | TurnEvent::Failed { .. });
                    Entry::Other(Box::new(event))
                }
            };
            kept.events.push(entry);
            true
        });
    }

    pub(super) fn size(&self) -> usize {
        let kept = self.0.borrow();
        kept.text.len() + kept.reasoning.len()
    }

    /// The text and the reasoning so far, from these bytes on.
    pub(super) fn content_from(&self, (text, reasoning): (usize, usize)) -> (String, String) {
        let kept = self.0.borrow();
        (
            kept.text[text..].to_owned(),
            kept.reasoning[reasoning..].to_owned(),
        )
    }

    pub(super) fn has_ended(&self) -> bool {
        self.0.borrow().ended
    }

    /// The events after the one with this number, neighbours of text joined, each with its number or its last one's; and whether these
    /// are all.
    pub(super) fn after(&self, number: u64) -> (Vec<(u64, TurnEvent)>, bool) {
        let kept = self.0.borrow();
        let start = usize::try_from(number).unwrap_or(usize::MAX);
        let new = kept.events.get(start..).unwrap_or_default();
        let mut last_number = number;
        let groups = new.chunk_by(Entry::is_continued_by).filter_map(|group| {
            last_number += group.len() as u64;
            let event = match (group.first()?, group.last()?) {
                (Entry::Text(first), Entry::Text(last)) => TurnEvent::Text {
                    text: kept.text[first.bytes.start..last.bytes.end].to_owned(),
                    tokens: last.tokens,
                    decode_ms: last.decode_ms,
                },
                (Entry::Reasoning(first), Entry::Reasoning(last)) => TurnEvent::Reasoning {
                    text: kept.reasoning[first.bytes.start..last.bytes.end].to_owned(),
                    tokens: last.tokens,
                    decode_ms: last.decode_ms,
                },
                (_, Entry::Other(event)) => TurnEvent::clone(event),
                // A group has entries of one kind.
                _ => return None,
            };
            Some((last_number, event))
        });
        (groups.collect(), kept.ended)
    }

    pub(super) async fn wait_after(&self, number: u64) {
        let has_more = |kept: &LogEntries| kept.events.len() as u64 > number || kept.ended;
        // The sender lives as long as this log.
        let _ended = self.0.subscribe().wait_for(has_more).await.is_ok();
    }

    pub(super) async fn wait_for_end(&self) {
        let _ended = self.0.subscribe().wait_for(|kept| kept.ended).await.is_ok();
    }
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
