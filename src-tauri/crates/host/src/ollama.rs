//! The second address, where clients look for Ollama: used only if no other program answers there.

use crate::{
    address,
    serve::{ServeOptions, serve},
};
use std::{
    net::{Ipv4Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};
use tierbar_core::{Config, Error};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};

/// Ollama's default address.
pub(crate) const ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 11434);
/// A program of this machine accepts at once.
const ACCEPTING: Duration = Duration::from_secs(1);

/// Serves there while configured, until `closing`, and reports why if it cannot.
pub(crate) async fn serve_as_ollama(
    address: SocketAddr,
    options: ServeOptions,
    mut config: watch::Receiver<Arc<Config>>,
    notify: impl Fn(Option<String>),
) {
    let closing = options.closing.clone();
    loop {
        let acts = config.borrow_and_update().server.act_as_ollama;
        let listener = match acts {
            true => bind_free_port(address).await.map(Some),
            false => Ok(None),
        };
        notify(listener.as_ref().err().map(notice));
        let ending = closing.child_token();
        let mut serving = pin!(async {
            let Ok(Some(listener)) = listener else {
                return ending.cancelled().await;
            };
            tracing::info!(%address, "acting as Ollama");
            let options = ServeOptions {
                closing: ending.clone(),
                ..options.clone()
            };
            serve(listener, options).await;
        });
        let changed = async {
            let changes = |config: &Arc<Config>| config.server.act_as_ollama != acts;
            config.wait_for(changes).await.is_ok()
        };
        tokio::select! {
            () = &mut serving => {}
            is_there = changed => {
                ending.cancel();
                serving.await;
                if !is_there {
                    return;
                }
            }
        }
        if closing.is_cancelled() {
            return;
        }
    }
}

/// # Errors
/// `PortTaken` with the program, and those of [`address::bind`].
async fn bind_free_port(address: SocketAddr) -> Result<TcpListener, Error> {
    // On macOS one address of a port can be bound while another program listens on all addresses.
    let answers = timeout(ACCEPTING, TcpStream::connect(address)).await;
    if answers.is_ok_and(|answers| answers.is_ok()) {
        return Err(address::port_taken_error(address).await);
    }
    address::bind(address).await
}

fn notice(error: &Error) -> String {
    format!(
        "Tierbar does not act as Ollama: {}. Quit that program and restart Tierbar, or set `act_as_ollama = false` in \
         [server] of config.toml",
        error.message
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::ClientLimits;
    use axum::{Router, routing::get};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        sync::mpsc,
        task::JoinHandle,
    };
    use tokio_util::sync::CancellationToken;

    struct TestAddress {
        address: SocketAddr,
        config: watch::Sender<Arc<Config>>,
        notices: mpsc::UnboundedReceiver<Option<String>>,
        closing: CancellationToken,
        task: JoinHandle<()>,
    }

    fn acting(address: SocketAddr, acts: bool) -> TestAddress {
        let config = watch::Sender::new(configured(acts));
        let (sender, notices) = mpsc::unbounded_channel();
        let closing = CancellationToken::new();
        let options = ServeOptions {
            router: Router::new().route("/", get(|| async { "Ollama is running" })),
            tls: None,
            limits: ClientLimits::default(),
            closing: closing.clone(),
        };
        let notify = move |notice| sender.send(notice).unwrap();
        let task = serve_as_ollama(address, options, config.subscribe(), notify);
        TestAddress {
            address,
            config,
            notices,
            closing,
            task: tokio::spawn(task),
        }
    }

    fn configured(acts: bool) -> Arc<Config> {
        let mut config = Config::default();
        config.server.act_as_ollama = acts;
        Arc::new(config)
    }

    /// An address that was free a moment ago.
    async fn free() -> SocketAddr {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        taken.local_addr().unwrap()
    }

    async fn greeting(address: SocketAddr) -> Option<String> {
        let mut stream = TcpStream::connect(address).await.ok()?;
        let ask = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(ask).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        Some(answer)
    }

    #[tokio::test]
    async fn the_address_is_served_while_configured() {
        let mut acting = acting(free().await, false);
        assert_eq!(acting.notices.recv().await, Some(None));
        assert_eq!(greeting(acting.address).await, None);
        for _ in 0..2 {
            acting.config.send_replace(configured(true));
            assert_eq!(acting.notices.recv().await, Some(None));
            let answer = greeting(acting.address).await.unwrap();
            assert!(answer.ends_with("Ollama is running"), "{answer}");
            acting.config.send_replace(configured(false));
            assert_eq!(acting.notices.recv().await, Some(None));
            assert_eq!(greeting(acting.address).await, None);
        }
        acting.closing.cancel();
        acting.task.await.unwrap();
    }

    #[tokio::test]
    async fn a_program_on_the_port_is_kept_and_named() {
        let theirs = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let mut acting = acting(theirs.local_addr().unwrap(), true);
        let notice = acting.notices.recv().await.unwrap().unwrap();
        assert!(notice.contains("does not act as Ollama: port "), "{notice}");
        assert!(
            notice.contains(&format!("(pid {})", std::process::id())),
            "{notice}"
        );
        acting.config.send_replace(configured(false));
        assert_eq!(
            acting.notices.recv().await,
            Some(None),
            "there is nothing more to say"
        );
        acting.closing.cancel();
        acting.task.await.unwrap();
    }
}
