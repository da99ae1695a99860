//! Shared by the tests of this crate: a gateway over tiers whose one worker is a real HTTP server on a socket.

mod endless;
mod home;
mod recorded_calls;
mod tiers;

pub(crate) use recorded_calls::RecordedCalls;

use crate::Gateway;
use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, Response, header},
};
use endless::Endless;
use home::Home;
use serde_json::Value;
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tempfile::TempDir;
use tierbar_contexts::Contexts;
use tierbar_core::{
    Config, Error, ModelId, TierId, TierState,
    config::{Dialect, Engine, TierConfig},
    lease::{Address, Endpoint, Foreign},
    status::{BudgetStatus, GuardStatus, Ram, Speed, Status, Swap, TierStatus},
};
use tierbar_edge::{Edge, keys::Keys, sign_in::SignInCodes, token::Token};
use tierbar_fetch::Remote;
use tierbar_http::reach::Reaches;
use tierbar_inference::{Inference, metrics::Metrics, speed::SpeedMeter};
use tierbar_jobs::queue::QueueRunner;
use tierbar_secrets::Secrets;
use tierbar_store::Store;
use tiers::{OneTier, Others};
use tokio::{
    net::{TcpListener, UnixListener},
    sync::{broadcast, watch},
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use utoipa::openapi::OpenApi;

pub(crate) fn tier(id: &str, model: Option<&str>, state: TierState) -> TierStatus {
    TierStatus {
        model: model.map(|model| ModelId(model.to_owned())),
        context_tokens: 4096,
        ..TierStatus::new(TierId::new(id).unwrap(), state)
    }
}

pub(crate) fn status() -> Status {
    Status {
        version: "0".to_owned(),
        url: "http://127.0.0.1:1".to_owned(),
        ram: Ram::default(),
        swap: Swap::default(),
        speed: Speed::default(),
        budget: BudgetStatus::default(),
        guard: GuardStatus::default(),
        tiers: vec![tier("fast", Some("small"), TierState::Ready)],
        downloads: Vec::new(),
        models_revision: 0,
        config_revision: 0,
        notices: Vec::new(),
        notifications: Vec::new(),
        refused_origins: Vec::new(),
    }
}

/// A gateway under test, and its controls.
pub(crate) struct Bench {
    pub(crate) router: Router,
    pub(crate) token: Token,
    pub(crate) keys: Arc<Keys>,
    /// How the tier's load went.
    pub(crate) loaded: watch::Sender<Option<Result<Endpoint, Error>>>,
    /// Why the worker has ended.
    pub(crate) ended: watch::Sender<Option<Error>>,
    /// Leases held now.
    pub(crate) leases: watch::Receiver<usize>,
    pub(crate) speed: SpeedMeter,
    pub(crate) metrics: Metrics,
    pub(crate) asked: RecordedCalls,
    /// The host's status.
    pub(crate) status: watch::Sender<Arc<Status>>,
    pub(crate) store: Store,
    pub(crate) contexts: Contexts,
    pub(crate) config: Arc<Mutex<Config>>,
    others: Others,
    pub(crate) closing: CancellationToken,
    pub(crate) reaches: Arc<Reaches>,
    /// The OpenAPI description of the routes.
    pub(crate) api: Option<OpenApi>,
    /// Not run by itself.
    pub(crate) runner: Option<QueueRunner>,
    pub(crate) inference: Arc<Inference>,
    sockets: TempDir,
}

/// Longer than a busy machine stalls.
const SILENCE: Duration = Duration::from_secs(60);

impl Bench {
    pub(crate) async fn new(address: &str) -> Self {
        Self::configured(address, |_| ()).await
    }

    pub(crate) async fn configured(address: &str, configure: impl FnOnce(&mut Config)) -> Self {
        Self::with(address, SILENCE, configure).await
    }

    /// `silence`: for so long a server elsewhere may say nothing.
    pub(crate) async fn with(
        address: &str,
        silence: Duration,
        configure: impl FnOnce(&mut Config),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let token = Token::open(&folder.path().join("token")).unwrap();
        let path = folder.path().join("chats.db");
        let store = tokio::task::spawn_blocking(move || Store::open(&path))
            .await
            .unwrap()
            .unwrap();
        let mut config = Config {
            allowed_origins: vec!["https://friend.example".to_owned()],
            ..Config::default()
        };
        configure(&mut config);
        let config = Arc::new(Mutex::new(config));
        let status = watch::Sender::new(Arc::new(status()));
        let (loaded, loading) = watch::channel(None);
        let (ended, ending) = watch::channel(None);
        let (leases, held) = watch::channel(0);
        let speed = SpeedMeter::default();
        let metrics = Metrics::default();
        let (asked, others) = (RecordedCalls::default(), Others::default());
        let home = folder.path().to_owned();
        let contexts = Contexts::new(home.join("contexts"));
        let closing = CancellationToken::new();
        let keys = Arc::new(Keys::open(store.clone()).await.unwrap());
        let services = Arc::new(Home {
            folder,
            status: status.clone(),
            log: broadcast::Sender::new(1),
            config: Arc::clone(&config),
        });
        let inference = Arc::new(Inference {
            models: Arc::new(asked.clone()),
            // No environment, so that the user's settings do not affect a test.
            secrets: Secrets::with(
                &home,
                Arc::new(|name: &str| (name == "TIERBAR_SECRETS").then(|| "file".into())),
            ),
            tiers: Arc::new(OneTier {
                loaded: loading,
                ended: ending,
                leases,
                asked: asked.clone(),
                others: Arc::clone(&others),
                status: status.clone(),
            }),
            remote: Remote::new(silence).unwrap(),
            services: Arc::clone(&services) as _,
            speed: speed.clone(),
            // What is played answers late only if the machine is busy.
            auto: tierbar_inference::auto::Auto::default()
                .with_triage_wait(std::time::Duration::from_secs(60)),
            endpoints: tierbar_inference::endpoints::EndpointStates::default(),
            metrics: metrics.clone(),
            closing: closing.clone(),
        });
        let edge = Edge {
            services,
            keys: Arc::clone(&keys),
            token: token.clone(),
            codes: SignInCodes::default(),
            store: store.clone(),
            address: address.parse().unwrap(),
        };
        let gateway = Gateway {
            inference: Arc::clone(&inference),
            edge: Arc::new(edge),
            measures: Arc::new(Endless::default()),
            schedules: Arc::new(asked.clone()),
            documents: Arc::new(asked.clone()),
            contexts: contexts.clone(),
        };
        let sockets = tempfile::tempdir().unwrap();
        let (parts, reaches, api) = gateway.described();
        Self {
            router: parts.router,
            inference,
            token,
            keys,
            loaded,
            ended,
            leases: held,
            speed,
            metrics,
            asked,
            status,
            store,
            contexts,
            config,
            others,
            closing,
            reaches,
            api: Some(api),
            runner: Some(parts.runner),
            sockets,
        }
    }

    /// Loads the tier: its worker answers as `routes` say.
    pub(crate) fn load(&self, routes: Router) {
        let socket = self.sockets.path().join("worker.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        self.loaded.send_replace(Some(Ok(Endpoint::Unix(socket))));
    }

    /// Changes the tiers.
    pub(crate) fn tiers(&self, change: impl FnOnce(&mut Vec<TierStatus>)) {
        self.status
            .send_modify(|status| change(&mut Arc::make_mut(status).tiers));
    }

    /// Another tier: an endpoint that answers as `routes` say. Gives its address.
    pub(crate) async fn endpoint(&self, name: &str, routes: Router) -> SocketAddr {
        self.endpoint_of(Dialect::default(), name, routes).await
    }

    /// The same in this dialect.
    pub(crate) async fn endpoint_of(
        &self,
        dialect: Dialect,
        name: &str,
        routes: Router,
    ) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let url = format!("http://{address}");
        let engine = serde_json::json!({"endpoint": url, "dialect": dialect});
        let engine = serde_json::from_value(engine).unwrap();
        let at = Address::Url(url);
        let endpoint = Endpoint::Foreign(Foreign {
            at,
            model: None,
            dialect,
        });
        self.other(name, Ok(endpoint), engine);
        address
    }

    /// Another tier that is configured so, and what its load comes to.
    pub(crate) fn other(&self, name: &str, loaded: Result<Endpoint, Error>, engine: Engine) {
        let tier = TierId::new(name).unwrap();
        self.others.lock().unwrap().insert(tier.clone(), loaded);
        let settings = TierConfig {
            engine,
            ..TierConfig::default()
        };
        self.config.lock().unwrap().tiers.insert(tier, settings);
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Body>) -> Response<Body> {
        let request = Request::post(path)
            .header(header::HOST, "localhost")
            .body(body.into())
            .unwrap();
        self.send(request).await
    }

    /// Asks with the token.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        body: impl Into<Body>,
    ) -> Response<Body> {
        let token = format!("Bearer {}", self.token.as_str());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, token);
        self.send(request.body(body.into()).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Response<Body> {
        self.ask("GET", path, Body::empty()).await
    }

    /// Waits until no lease is held.
    pub(crate) async fn released(&mut self) {
        self.leases.wait_for(|held| *held == 0).await.unwrap();
    }
}

pub(crate) async fn text(response: Response<Body>) -> String {
    String::from_utf8(
        to_bytes(response.into_body(), usize::MAX)
            .await
            .unwrap()
            .to_vec(),
    )
    .unwrap()
}

pub(crate) async fn json(response: Response<Body>) -> Value {
    serde_json::from_str(&text(response).await).unwrap()
}
