//! Shared by the tests of this crate: a gateway over tiers whose one worker is a real HTTP server on a socket.

mod endless;

use crate::Gateway;
use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, Response, header},
};
use endless::Endless;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};
use tempfile::TempDir;
use tierbar_contexts::Contexts;
use tierbar_core::{
    Code, Config, Error, ModelId, TierId, TierState,
    catalog::{CatalogRefresh, HubModel, HubReadme, HubRepository},
    config::{Dialect, Engine, McpServerConfig, TierConfig},
    documents::{DocumentSource, Documents},
    download::{DownloadState, DownloadStatus},
    fit::{LibraryModel, Verdict},
    history::{History, Point},
    journal::Entry,
    lease::{Address, BoxFuture, Endpoint, Foreign, KeepAlive, Lease, Tiers},
    paging::PagingStatus,
    policy::Stance,
    schedule::ScheduleStatus,
    setup::{FolderRoom, SetupPlan},
    status::{BudgetStatus, GuardStatus, Ram, RefusedOrigin, Speed, Status, Swap, TierStatus},
};
use tierbar_edge::{keys::Keys, token::Token};
use tierbar_fetch::Remote;
use tierbar_inference::{
    Inference,
    metrics::Metrics,
    services::{
        SandboxPlace, Services,
        documents::DocumentIndex,
        models::{self, DownloadChange, DownloadRequest, ModelList, ModelVerification, Models},
        schedules::Schedules,
    },
    speed::SpeedMeter,
};
use tierbar_jobs::queue::{JobQueue, QueueRunner};
use tierbar_measure::diagnosis::{HostFigures, MachineFigures};
use tierbar_secrets::Secrets;
use tierbar_store::Store;
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

/// One tier, `fast` with the model `small`, unless a test has others, which all have the same worker. A lease waits until `loaded`
/// says how the load went.
#[derive(Debug)]
pub(crate) struct OneTier {
    loaded: watch::Receiver<Option<Result<Endpoint, Error>>>,
    ended: watch::Receiver<Option<Error>>,
    leases: watch::Sender<usize>,
    asked: RecordedCalls,
    others: Others,
    status: watch::Sender<Arc<Status>>,
}

/// Tiers beside the one, each loaded or with what its load comes to.
type Others = Arc<Mutex<BTreeMap<TierId, Result<Endpoint, Error>>>>;

#[derive(Debug)]
struct OneLease {
    tier: TierId,
    model: ModelId,
    endpoint: Endpoint,
    ended: watch::Receiver<Option<Error>>,
    leases: watch::Sender<usize>,
    asked: RecordedCalls,
}

impl Drop for OneLease {
    fn drop(&mut self) {
        self.leases.send_modify(|held| *held -= 1);
    }
}

impl Lease for OneLease {
    fn tier(&self) -> &TierId {
        &self.tier
    }
    fn model(&self) -> &ModelId {
        &self.model
    }
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
    fn keep(&self, keep: KeepAlive) {
        self.asked.note(format!("keep {:?}", keep.length()));
    }
    fn ended(&self) -> BoxFuture<'_, Error> {
        let mut ended = self.ended.clone();
        Box::pin(async move {
            ended
                .wait_for(Option::is_some)
                .await
                .unwrap()
                .clone()
                .unwrap()
        })
    }
}

impl Tiers for OneTier {
    fn lease(&self, tier: &TierId) -> BoxFuture<'_, Result<Box<dyn Lease>, Error>> {
        let (tier, mut loaded) = (tier.clone(), self.loaded.clone());
        let other = self.others.lock().unwrap().get(&tier).cloned();
        Box::pin(async move {
            let loaded = async { loaded.wait_for(Option::is_some).await.unwrap().clone() };
            let endpoint = match other {
                Some(other) => other?,
                None => loaded.await.unwrap()?,
            };
            self.leases.send_modify(|held| *held += 1);
            Ok(Box::new(OneLease {
                tier,
                model: ModelId("small".to_owned()),
                endpoint,
                ended: self.ended.clone(),
                leases: self.leases.clone(),
                asked: self.asked.clone(),
            }) as Box<dyn Lease>)
        })
    }
    fn start(&self, tier: &TierId) -> BoxFuture<'_, Result<(), Error>> {
        let lease = self.lease(tier);
        Box::pin(async move { lease.await.map(drop) })
    }
    fn stop(&self, _: &TierId, _: bool) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }
    fn expect(&self, tier: &TierId) {
        self.asked.note(format!("expect {tier}"));
    }
    fn snapshot(&self) -> Vec<TierStatus> {
        self.status.borrow().tiers.clone()
    }
}

#[derive(Debug)]
struct Home {
    folder: TempDir,
    status: watch::Sender<Arc<Status>>,
    log: broadcast::Sender<Entry>,
    config: Arc<Mutex<Config>>,
}

impl Services for Home {
    fn status(&self) -> Arc<Status> {
        self.status.borrow().clone()
    }
    fn watch(&self) -> watch::Receiver<Arc<Status>> {
        self.status.subscribe()
    }
    fn history(&self, minutes: u64) -> BoxFuture<'_, Result<History, Error>> {
        let history = History {
            step_seconds: minutes,
            points: [60, 120]
                .map(|at| Point {
                    at,
                    ..Point::default()
                })
                .into(),
        };
        Box::pin(async move { Ok(history) })
    }
    fn paging(&self) -> BoxFuture<'_, PagingStatus> {
        Box::pin(async { PagingStatus::default() })
    }
    fn pause(&self, length: Option<Duration>) -> Arc<Status> {
        self.status.send_modify(|status| {
            let guard = &mut Arc::make_mut(status).guard;
            guard.stance = Stance::Paused;
            guard.why = Some(format!("{length:?}"));
        });
        self.status()
    }
    fn resume(&self) -> Arc<Status> {
        self.status
            .send_modify(|status| Arc::make_mut(status).guard = GuardStatus::default());
        self.status()
    }
    fn log(&self) -> broadcast::Receiver<Entry> {
        self.log.subscribe()
    }
    fn config(&self) -> Arc<Config> {
        Arc::new(self.config.lock().unwrap().clone())
    }
    fn config_path(&self) -> &Path {
        self.folder.path()
    }
    /// Fails for the MCP server `unwritable`.
    fn patch_config(&self, patch: Value) -> BoxFuture<'_, Result<Arc<Config>, Error>> {
        Box::pin(async move {
            if patch["mcp"].get("unwritable").is_some() {
                return Err(Error::new(Code::Storage, "the disk is full"));
            }
            let config = self.preview_config(patch).await?;
            *self.config.lock().unwrap() = Config::clone(&config);
            Ok(config)
        })
    }
    /// Of MCP servers alone; any other change is written down in its refusal.
    fn preview_config(&self, patch: Value) -> BoxFuture<'_, Result<Arc<Config>, Error>> {
        Box::pin(async move {
            let Some(servers) = patch.get("mcp") else {
                return Err(Error::new(Code::BadRequest, patch.to_string()));
            };
            let servers: BTreeMap<String, McpServerConfig> =
                serde_json::from_value(servers.clone()).unwrap();
            let mut config = self.config.lock().unwrap().clone();
            config.mcp.extend(servers);
            Ok(Arc::new(config))
        })
    }
    fn refuse_origin(&self, origin: &str) {
        self.status.send_modify(|status| {
            Arc::make_mut(status).refused_origins.push(RefusedOrigin {
                origin: origin.to_owned(),
                since_ms: 7,
            });
        });
    }
    fn set_origin(
        &self,
        origin: String,
        allowed: bool,
    ) -> BoxFuture<'_, Result<Arc<Config>, Error>> {
        self.status.send_modify(|status| {
            let refused = &mut Arc::make_mut(status).refused_origins;
            refused.retain(|refused| refused.origin != origin);
        });
        let origins = &mut self.config.lock().unwrap().allowed_origins;
        origins.retain(|other| *other != origin);
        origins.extend(Some(origin).filter(|_| allowed));
        let config = Config {
            allowed_origins: origins.clone(),
            ..Config::default()
        };
        Box::pin(async move { Ok(Arc::new(config)) })
    }
    fn found_clients(&self) -> BoxFuture<'_, Vec<&'static str>> {
        Box::pin(async { vec!["codex"] })
    }
    fn mcp_command(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async { vec!["/bin/tierbar".to_owned(), "mcp".to_owned()] })
    }
    fn sandbox(&self) -> Result<SandboxPlace, Error> {
        Ok(SandboxPlace {
            launcher: self.folder.path().join("tierbar-sandbox"),
            protected: vec![self.folder.path().to_owned()],
            own_ports: Vec::new(),
        })
    }
    fn figures(&self) -> BoxFuture<'_, (MachineFigures, HostFigures)> {
        Box::pin(async { (MachineFigures::default(), HostFigures::default()) })
    }
}

/// Writes down what it is asked, and refuses it; only a download is begun, and it is new once, and models are listed if there
/// are any.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordedCalls(Arc<Mutex<Vec<String>>>, Arc<Mutex<Vec<LibraryModel>>>);

impl RecordedCalls {
    pub(crate) fn keep(&self, models: Vec<LibraryModel>) {
        *self.1.lock().unwrap() = models;
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn note(&self, asked: String) {
        self.0.lock().unwrap().push(asked);
    }

    fn refuse<T: Send + 'static>(&self, asked: String) -> BoxFuture<'static, Result<T, Error>> {
        self.note(asked);
        Box::pin(async { Err(Error::new(Code::ModelInUse, "fast has it loaded")) })
    }
}

impl Models for RecordedCalls {
    fn list(&self) -> BoxFuture<'_, Result<ModelList, Error>> {
        let models = self.1.lock().unwrap().clone();
        if models.is_empty() {
            return self.refuse("list".to_owned());
        }
        let models_dir = PathBuf::from("/models");
        let disks = Vec::new();
        Box::pin(async move {
            Ok(ModelList {
                models_dir,
                disks,
                models,
            })
        })
    }
    fn fit(&self, question: models::FitQuestion) -> BoxFuture<'_, Result<Verdict, Error>> {
        self.refuse(format!("{question:?}"))
    }
    fn remove(&self, model: String, permanently: bool) -> BoxFuture<'_, Result<bool, Error>> {
        self.refuse(format!("remove {model} {permanently}"))
    }
    fn verify(&self, model: String) -> BoxFuture<'_, Result<ModelVerification, Error>> {
        self.refuse(format!("verify {model}"))
    }
    fn import(&self, path: String) -> BoxFuture<'_, Result<Vec<LibraryModel>, Error>> {
        self.refuse(format!("import {path}"))
    }
    fn catalog(&self) -> BoxFuture<'_, Result<models::CatalogAnswer, Error>> {
        self.refuse("catalog".to_owned())
    }
    fn refresh_catalog(&self) -> BoxFuture<'_, Result<CatalogRefresh, Error>> {
        self.refuse("refresh catalog".to_owned())
    }
    fn plan_setup(&self, ram: Option<String>) -> BoxFuture<'_, Result<SetupPlan, Error>> {
        self.refuse(format!("plan setup {ram:?}"))
    }
    fn folder_room(&self, path: String) -> BoxFuture<'_, Result<FolderRoom, Error>> {
        self.refuse(format!("room in {path}"))
    }
    fn search(&self, words: String) -> BoxFuture<'_, Result<Vec<HubModel>, Error>> {
        self.refuse(format!("search {words}"))
    }
    fn repository(&self, id: String) -> BoxFuture<'_, Result<HubRepository, Error>> {
        self.refuse(format!("repository {id}"))
    }
    fn readme(&self, id: String) -> BoxFuture<'_, Result<HubReadme, Error>> {
        self.refuse(format!("readme {id}"))
    }
    fn downloads(&self) -> Vec<DownloadStatus> {
        Vec::new()
    }
    fn download(
        &self,
        pull: DownloadRequest,
    ) -> BoxFuture<'_, Result<(DownloadStatus, bool), Error>> {
        let mut asked = self.0.lock().unwrap();
        let status = DownloadStatus {
            id: "1".to_owned(),
            reference: pull.reference.clone(),
            file: "m.gguf".to_owned(),
            files: Vec::new(),
            state: DownloadState::Queued,
            priority: pull.priority,
            received_bytes: 0,
            total_bytes: None,
            bytes_per_second: 0,
            eta_seconds: None,
            reason: None,
            warnings: Vec::new(),
        };
        let wanted = format!("{pull:?}");
        let new = !asked.contains(&wanted);
        asked.push(wanted);
        Box::pin(async move { Ok((status, new)) })
    }
    fn change_download(
        &self,
        id: String,
        change: DownloadChange,
    ) -> BoxFuture<'_, Result<DownloadStatus, Error>> {
        self.refuse(format!("{id} {change:?}"))
    }
    fn remove_download(&self, id: String) -> BoxFuture<'_, Result<(), Error>> {
        self.refuse(format!("remove download {id}"))
    }
}

impl DocumentIndex for RecordedCalls {
    fn status(&self) -> BoxFuture<'_, Result<Documents, Error>> {
        self.note("documents".to_owned());
        Box::pin(async { Ok(Documents::default()) })
    }
    fn add(
        &self,
        path: String,
        collection: Option<String>,
    ) -> BoxFuture<'_, Result<DocumentSource, Error>> {
        self.refuse(format!("add {path} {collection:?}"))
    }
    fn remove(&self, source: u64) -> BoxFuture<'_, Result<(), Error>> {
        self.refuse(format!("remove source {source}"))
    }
    fn read_pictures(&self, source: u64, read: bool) -> BoxFuture<'_, Result<(), Error>> {
        self.refuse(format!("read pictures of source {source}: {read}"))
    }
    fn set_paused(&self, paused: bool) {
        self.note(format!("documents paused: {paused}"));
    }
}

impl Schedules for RecordedCalls {
    fn list(&self) -> BoxFuture<'_, Result<Vec<ScheduleStatus>, Error>> {
        self.note("schedules".to_owned());
        Box::pin(async { Ok(Vec::new()) })
    }
    fn run(&self, name: String) -> BoxFuture<'_, Result<String, Error>> {
        self.note(format!("run schedule {name}"));
        Box::pin(async { Ok("wrote /tmp/a.md".to_owned()) })
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
        let gateway = Gateway {
            models: Arc::new(asked.clone()),
            measures: Arc::new(Endless::default()),
            schedules: Arc::new(asked.clone()),
            documents: Arc::new(asked.clone()),
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
            services: Arc::new(Home {
                folder,
                status: status.clone(),
                log: broadcast::Sender::new(1),
                config: Arc::clone(&config),
            }),
            store: store.clone(),
            queue: JobQueue::default(),
            contexts: contexts.clone(),
            speed: speed.clone(),
            auto: tierbar_inference::auto::Auto::default(),
            endpoints: tierbar_inference::endpoints::EndpointStates::default(),
            metrics: metrics.clone(),
            token: token.clone(),
            keys: Arc::clone(&keys),
            address: address.parse().unwrap(),
            closing: closing.clone(),
        };
        let sockets = tempfile::tempdir().unwrap();
        let (parts, api) = gateway.described();
        Self {
            router: parts.router,
            inference: Arc::clone(&parts.jobs.inference),
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
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let url = format!("http://{address}");
        let engine = serde_json::from_value(serde_json::json!({"endpoint": url})).unwrap();
        let at = Address::Url(url);
        let endpoint = Endpoint::Foreign(Foreign {
            at,
            model: None,
            dialect: Dialect::default(),
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
