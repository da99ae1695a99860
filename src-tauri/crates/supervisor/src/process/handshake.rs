//! The worker's first lines, which are not trusted.

use super::log::RecentOutput;
use std::{path::Path, time::Duration};
use tierbar_core::{
    Error,
    worker::{Handshake, PROTOCOL, WorkerReady},
};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt},
    net::UnixStream,
    time::{Instant, sleep_until},
};

/// A `ready` is a few hundred bytes; a `failed` carries an error's details.
const LONGEST: u64 = 64 << 10;
/// The most silences that a load may last in total.
const SILENCES: u32 = 10;

/// Why there is no worker to use.
#[derive(Debug)]
pub(crate) enum HandshakeFailure {
    /// The worker reported why it could not load the model.
    Reported(Error),
    /// It reported something impossible; the end of a sentence such as `says …`.
    Invalid(String),
    /// Its output ended without a line: most likely it is crashing.
    Closed,
    Silent,
}

/// Waits for the worker to be ready while it produces output, and accepts it only if its socket answers. `loading` gets the
/// percentage loaded.
pub(crate) async fn await_handshake(
    mut stdout: impl AsyncBufRead + Unpin,
    words: &RecentOutput,
    silence: Duration,
    pid: u32,
    socket: &Path,
    loading: impl Fn(u8),
) -> Result<WorkerReady, HandshakeFailure> {
    let mut end = Instant::now() + silence * SILENCES;
    let mut loaded = 0;
    let ready = loop {
        let line = next_line(&mut stdout);
        tokio::pin!(line);
        let mut patience = end.min(Instant::now() + silence);
        let line = loop {
            tokio::select! {
                line = &mut line => break line?,
                () = words.written.notified() => patience = end.min(Instant::now() + silence),
                () = sleep_until(patience) => return Err(HandshakeFailure::Silent),
            }
        };
        match parse_message(&line, pid)? {
            HandshakeMessage::Loading(percent) => {
                // A slow load continues as long as it makes progress.
                if percent > loaded {
                    end = Instant::now() + silence * SILENCES;
                    loaded = percent;
                }
                loading(percent.min(100));
            }
            HandshakeMessage::Ready(ready) => break ready,
        }
    };
    match UnixStream::connect(socket).await {
        Ok(_) => Ok(ready),
        Err(error) => Err(HandshakeFailure::Invalid(format!(
            "reported ready, but its socket does not answer ({error})"
        ))),
    }
}

async fn next_line(stdout: &mut (impl AsyncBufRead + Unpin)) -> Result<Vec<u8>, HandshakeFailure> {
    let mut line = Vec::new();
    let read = stdout.take(LONGEST).read_until(b'\n', &mut line).await;
    match (read, line.last()) {
        (Ok(_), Some(b'\n')) => Ok(line),
        (Ok(_), _) if line.len() as u64 == LONGEST => Err(HandshakeFailure::Invalid(format!(
            "wrote more than {} KiB without a handshake",
            LONGEST >> 10
        ))),
        _ => Err(HandshakeFailure::Closed),
    }
}

enum HandshakeMessage {
    Loading(u8),
    Ready(WorkerReady),
}

fn parse_message(line: &[u8], pid: u32) -> Result<HandshakeMessage, HandshakeFailure> {
    match serde_json::from_slice(line) {
        Ok(Handshake::Loading(percent)) => Ok(HandshakeMessage::Loading(percent)),
        Ok(Handshake::Ready(ready)) if ready.protocol != PROTOCOL => {
            Err(HandshakeFailure::Invalid(format!(
                "speaks protocol {}, but this host speaks {PROTOCOL}",
                ready.protocol
            )))
        }
        Ok(Handshake::Ready(ready)) if ready.pid != pid => Err(HandshakeFailure::Invalid(format!(
            "reported process {}, but is process {pid}",
            ready.pid
        ))),
        Ok(Handshake::Ready(ready)) => Ok(HandshakeMessage::Ready(ready)),
        Ok(Handshake::Failed(error)) => Err(HandshakeFailure::Reported(error)),
        Err(_) => {
            let start: String = String::from_utf8_lossy(line)
                .chars()
                .filter(|c| !c.is_control())
                .take(80)
                .collect();
            Err(HandshakeFailure::Invalid(format!(
                "wrote something other than a handshake: \"{start}\""
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::{Code, worker::Memory};

    fn ready(protocol: u32, pid: u32) -> Vec<u8> {
        let ready = WorkerReady {
            protocol,
            pid,
            context_tokens: 256,
            memory: Memory::default(),
        };
        serde_json::to_vec(&Handshake::Ready(ready)).unwrap()
    }

    fn lie(line: &[u8]) -> String {
        match parse_message(line, 7) {
            Err(HandshakeFailure::Invalid(lie)) => lie,
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("it is believed"),
        }
    }

    #[test]
    fn a_valid_handshake_is_accepted() {
        let message = parse_message(&ready(PROTOCOL, 7), 7);
        assert!(
            matches!(message, Ok(HandshakeMessage::Ready(ready)) if ready.context_tokens == 256)
        );
    }

    #[tokio::test]
    async fn a_load_reports_its_progress() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("w.sock");
        let _listener = tokio::net::UnixListener::bind(&socket).unwrap();
        let mut lines = b"{\"loading\":0}\n{\"loading\":50}\n{\"loading\":255}\n".to_vec();
        lines.extend(ready(PROTOCOL, 7));
        lines.push(b'\n');
        let reported = std::sync::Mutex::new(Vec::new());
        let words = RecentOutput::default();
        let silence = Duration::from_secs(60);
        let loading = |percent| reported.lock().unwrap().push(percent);
        let ready = await_handshake(&lines[..], &words, silence, 7, &socket, loading);
        assert_eq!(ready.await.unwrap().context_tokens, 256);
        assert_eq!(*reported.lock().unwrap(), [0, 50, 100]);
    }

    #[test]
    fn invalid_handshakes_are_quoted() {
        assert!(lie(&ready(PROTOCOL + 1, 7)).contains(&format!("protocol {}", PROTOCOL + 1)));
        assert!(lie(&ready(PROTOCOL, 8)).contains("process 8"));
        assert!(lie(b"llama_model_load: \xff hello\n").contains("hello"));
        assert!(lie(b"{\"ready\":{}}\n").contains("ready"));
        assert!(lie(b"\n").contains("something other"));
    }

    #[test]
    fn a_failed_load_passes_its_reason_on() {
        let error = Error::new(Code::ModelUnsupported, "unknown architecture");
        let line = serde_json::to_vec(&Handshake::Failed(error.clone())).unwrap();
        assert!(
            matches!(parse_message(&line, 7), Err(HandshakeFailure::Reported(reported)) if reported == error)
        );
    }

    #[tokio::test]
    async fn an_endless_line_is_cut_off() {
        let mut endless = tokio::io::BufReader::new(tokio::io::repeat(b'x'));
        assert!(matches!(
            next_line(&mut endless).await,
            Err(HandshakeFailure::Invalid(_))
        ));
        assert!(matches!(
            next_line(&mut &b"{\"ready\""[..]).await,
            Err(HandshakeFailure::Closed)
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn a_load_may_take_long_while_it_reports_progress() {
        let words = RecentOutput::default();
        let silence = Duration::from_secs(60);
        let (stdout, _held) = tokio::io::simplex(64);
        let began = Instant::now();
        let chatter = async {
            loop {
                tokio::time::sleep(silence / 2).await;
                words.written.notify_one();
            }
        };
        let stdout = tokio::io::BufReader::new(stdout);
        let shaken = tokio::select! {
            shaken = await_handshake(stdout, &words, silence, 7, Path::new("/nowhere"), |_| ()) => shaken,
            () = chatter => unreachable!(),
        };
        assert!(matches!(shaken, Err(HandshakeFailure::Silent)));
        assert_eq!(began.elapsed(), silence * SILENCES);
    }
}
