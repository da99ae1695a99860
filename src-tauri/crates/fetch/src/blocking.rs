//! Work beside the tasks that serve requests: blocking work, and what goes on without its client.

use tierbar_core::{Code, Error};
use tokio::{sync::oneshot, task::spawn_blocking};

/// Runs blocking work. If it panics, the error says that `what` did not finish.
pub async fn blocking<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (done, mut result) = oneshot::channel();
    // Boxed: tokio's part of a task is compiled once, not for each kind of work.
    let work: Box<dyn FnOnce() + Send> = Box::new(move || drop(done.send(work())));
    let ended = spawn_blocking(work).await;
    result.try_recv().unwrap_or_else(|_| {
        let why = ended
            .err()
            .map_or_else(String::new, |ended| format!(": {ended}"));
        Err(Error::new(
            Code::Internal,
            format!("{what} did not finish{why}"),
        ))
    })
}

/// Runs work in a task of its own, which goes on if its client leaves. If it panics, the error says that `what` did not finish.
pub async fn detached<T: Send + 'static>(
    what: &str,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    tokio::spawn(work).await.unwrap_or_else(|ended| {
        let message = format!("{what} did not finish: {ended}");
        Err(Error::new(Code::Internal, message))
    })
}
