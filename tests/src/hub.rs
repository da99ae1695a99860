//! A model hub on loopback, as far as downloads need one: Hugging Face's API for a few repositories, and a second server
//! with the large files.
//!
//! Shapes are those of <https://huggingface.co/api> and of `huggingface_hub`'s `hf_api.py`, `file_download.py` and
//! `utils/_http.py`: large files are answered with a redirect to a signed URL of another server that expires, with the
//! content's size and sha256 beside it; refusals carry `X-Error-Code`.

mod api;
mod limit;
mod repository;
mod storage;

pub use repository::{Content, GATED, GEMMA, HubFile, HubRepository, PUBLIC, SMOLLM2};

use limit::Limit;
use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{net::TcpListener, task::AbortHandle};

/// The access token that the stand-in knows.
pub const TOKEN: &str = "hf_StandInToken0123456789";

/// How the stand-in behaves from its start.
#[derive(Debug, Clone)]
pub struct Options {
    /// Of the hub; 0 for any.
    pub port: u16,
    /// Bytes per second of all bodies together; 0 for as many as go.
    pub rate: u64,
    /// Before each answer.
    pub latency: Duration,
    /// Entries of a tree on one page.
    pub page: usize,
    /// How long the address of a large file is good for.
    pub lifetime: Duration,
    pub repositories: Vec<HubRepository>,
}

impl Default for Options {
    /// Fast, with the two test models in a public and a gated repository.
    fn default() -> Self {
        Self {
            port: 0,
            rate: 0,
            latency: Duration::ZERO,
            page: 1000,
            lifetime: Duration::from_secs(3600),
            repositories: vec![HubRepository::tests_models(), HubRepository::gated()],
        }
    }
}

/// A fault in one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection breaks after so many bytes of the body.
    CutAfter(u64),
    /// The whole file, whatever range was requested.
    IgnoreRange,
    /// A sign-in page, as a hotel's network returns for everything.
    WebPage,
    Status {
        status: u16,
        retry_after: Option<u64>,
    },
}

/// Which of the two servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Server {
    Hub,
    Storage,
}

/// A received request.
#[derive(Debug, Clone)]
pub struct Seen {
    pub server: Server,
    pub method: String,
    pub path: String,
    pub query: Option<String>,
    pub range: Option<String>,
    pub if_range: Option<String>,
    /// The `Authorization` header.
    pub authorization: Option<String>,
    pub cookie: bool,
    sent: Arc<AtomicU64>,
}

impl Seen {
    /// Bytes of the body that were given to the connection so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

/// The running stand-in; dropping it ends it.
#[derive(Debug)]
pub struct HubStandIn {
    state: Arc<State>,
    tasks: Vec<AbortHandle>,
}

#[derive(Debug)]
struct State {
    hub: SocketAddr,
    storage: SocketAddr,
    repositories: Mutex<Vec<HubRepository>>,
    page: usize,
    lifetime: Duration,
    limit: Limit,
    seen: Mutex<Vec<Seen>>,
    hub_faults: Mutex<VecDeque<Fault>>,
    storage_faults: Mutex<VecDeque<Fault>>,
}

impl HubStandIn {
    /// Starts both servers.
    ///
    /// # Panics
    /// If the port is taken or a test model is missing.
    pub async fn start(options: Options) -> Self {
        let hub = TcpListener::bind(("127.0.0.1", options.port))
            .await
            .expect("the hub's port");
        // Another host where the system has one: only Linux answers on all of 127/8.
        let storage = match TcpListener::bind("127.0.0.2:0").await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind("127.0.0.1:0").await.expect("a port"),
        };
        let state = Arc::new(State {
            hub: hub.local_addr().expect("an address"),
            storage: storage.local_addr().expect("an address"),
            repositories: Mutex::new(options.repositories),
            page: options.page,
            lifetime: options.lifetime,
            limit: Limit::new(options.rate, options.latency),
            seen: Mutex::default(),
            hub_faults: Mutex::default(),
            storage_faults: Mutex::default(),
        });
        let serve = |listener, routes: axum::Router| {
            tokio::spawn(async move { axum::serve(listener, routes).await }).abort_handle()
        };
        let tasks = vec![
            serve(hub, api::routes(Arc::clone(&state))),
            serve(storage, storage::routes(Arc::clone(&state))),
        ];
        Self { state, tasks }
    }

    /// For `HF_ENDPOINT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.state.hub)
    }

    #[must_use]
    pub fn storage_url(&self) -> String {
        format!("http://{}", self.state.storage)
    }

    /// Returns all requests so far, in order of arrival.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        locked(&self.state.seen).clone()
    }

    /// Bodies' bytes that were given to connections so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.seen().iter().map(Seen::sent).sum()
    }

    /// Sets the rate from now on; 0 for no limit.
    pub fn set_rate(&self, bytes_per_second: u64) {
        self.state.limit.set_rate(bytes_per_second);
    }

    /// Makes the server's next answers fail like this, in order.
    pub fn fail(&self, server: Server, faults: impl IntoIterator<Item = Fault>) {
        locked(self.state.faults(server)).extend(faults);
    }

    /// Changes what a repository holds; its commit changes with it.
    ///
    /// # Panics
    /// If there is none of that name.
    pub fn change(&self, id: &str, change: impl FnOnce(&mut HubRepository)) {
        let mut repositories = locked(&self.state.repositories);
        let found = repositories
            .iter_mut()
            .find(|repository| repository.id == id);
        change(found.expect("the repository"));
    }
}

impl Drop for HubStandIn {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl State {
    fn faults(&self, server: Server) -> &Mutex<VecDeque<Fault>> {
        match server {
            Server::Hub => &self.hub_faults,
            Server::Storage => &self.storage_faults,
        }
    }

    /// Records the request, waits for the latency, and returns the fault for its answer.
    async fn arrived(
        &self,
        server: Server,
        request: &axum::http::request::Parts,
    ) -> (Arc<AtomicU64>, Option<Fault>) {
        let header = |name| {
            let value = request.headers.get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let sent = Arc::new(AtomicU64::new(0));
        locked(&self.seen).push(Seen {
            server,
            method: request.method.to_string(),
            path: request.uri.path().to_owned(),
            query: request.uri.query().map(str::to_owned),
            range: header("range"),
            if_range: header("if-range"),
            authorization: header("authorization"),
            cookie: request.headers.contains_key("cookie"),
            sent: Arc::clone(&sent),
        });
        let fault = locked(self.faults(server)).pop_front();
        self.limit.latency().await;
        (sent, fault)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
