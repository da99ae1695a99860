//! The host's start, step by step, from nothing to a listening server.

mod parts;
mod server;

pub(crate) use server::Server;

use crate::{
    Host, HostKind, HostOptions, awake,
    documents::{DocumentIndex, Indexer},
    folder::{ASSIGNMENTS, CATALOG, Folder, SPEEDS},
    history::PastReadings,
    library::{Assignments, CatalogList, LocalModels, ModelService, Offers},
    live_config::LiveConfig,
    measure::Measurements,
    measured,
    notices::{Notices, Topic},
    notifications::publish_notifications,
    ollama, platform, room,
    schedules::{RunNow, Runner, Schedules},
    serve::{ClientLimits, ServeOptions, serve},
    services::Admin,
    status::StatusBoard,
    unused_memory,
    volume::Volume,
    worker,
};
use parking_lot::Mutex;
use parts::{DataFolder, FetchParts, Network, Readings, Workers};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tierbar_core::{Error, lease::BoxFuture, policy::Stance};
use tierbar_edge::{Edge, keys::Keys, sign_in::SignInCodes};
use tierbar_fetch::Remote;
use tierbar_gateway::{Gateway, Parts};
use tierbar_inference::{Inference, auto::Auto, dispatch, endpoints::EndpointStates};
use tierbar_jobs::{Jobs, tasks::scheduled};
use tierbar_library::hub;
use tierbar_routing::learned::LearnedLevels;
use tierbar_store::Store;
use tierbar_telemetry::Sampler;
use tokio::{
    sync::{Mutex as AsyncMutex, mpsc},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

pub(crate) async fn start(options: HostOptions) -> Result<Host, Error> {
    platform::run_at_full_speed();
    parts::warn_of_simulation().await?;
    let endpoint = hub::endpoint(std::env::var("HF_ENDPOINT").ok().as_deref())?;
    let data = DataFolder::open(options.home).await?;
    let program = worker::find("worker", options.worker)?;
    let network = Network::open(options.listen.as_deref(), &data).await?;
    let readings = Readings::begin().await?;
    let workers = Workers::start(&data, &readings, program).await?;
    let fetching = FetchParts::start(&data, &workers, endpoint)?;
    let (schedules, requests) = Schedules::new(
        data.in_force.subscribe(),
        data.store.clone(),
        // A command's host ends too soon for them.
        options.kind != HostKind::Cli,
    );
    let documents = DocumentIndex::new(data.store.clone(), Arc::new(workers.supervisor.clone()));
    let board = StatusBoard::new(
        network.url.clone(),
        workers.supervisor.clone(),
        Arc::clone(&workers.memory_guard),
        workers.speed.clone(),
        fetching.queue.watch(),
        &readings.first,
        PastReadings::new(data.store.clone()),
    );
    let config = live_config(&data, &network, &workers, &fetching, schedules, board);
    config.publish_notices(&data.configured);
    data.ownership.announce(&network.url, options.kind)?;

    tierbar_edge::sessions::trim_sessions(&data.store).await;
    let local = Arc::new(LocalModels {
        machine: Arc::clone(&workers.machine),
        speed: workers.speed.clone(),
        config: Arc::clone(&config),
    });
    let host = Assembly {
        kind: options.kind,
        admin: Arc::new(Admin {
            config: Arc::clone(&config),
            journal: Arc::clone(&workers.journal),
            local: Arc::clone(&local),
            kind: options.kind,
            begun: Instant::now(),
        }),
        models: Arc::new(ModelService {
            offers: Offers {
                local: Arc::clone(&local),
                hub: fetching.hub.clone(),
                list: CatalogList::open(data.folder.file(CATALOG)),
            },
            assignments: Arc::new(Assignments::open(data.folder.file(ASSIGNMENTS))),
            local,
        }),
        remote: Remote::new(Remote::SILENCE)?,
        learned: LearnedLevels::from_groups(&data.store.grade_groups().await?),
        keys: Arc::new(Keys::open(data.store.clone()).await?),
        closing: CancellationToken::new(),
        documents: Arc::new(documents),
        config,
        data,
        network,
        workers,
        fetching,
    };
    Ok(host.serve(readings.sampler, requests))
}

fn live_config(
    data: &DataFolder,
    network: &Network,
    workers: &Workers,
    fetching: &FetchParts,
    schedules: Arc<Schedules>,
    board: StatusBoard,
) -> Arc<LiveConfig> {
    let pins = (Topic::Pins, Vec::from_iter(workers.pins.clone()));
    let notices = Notices {
        started_with: Arc::clone(&data.configured),
        reached: network.notices(),
        unwatched: data.unwatched.clone(),
        schedules,
        reported: Mutex::new(BTreeMap::from([pins])),
    };
    Arc::new(LiveConfig {
        folder: data.folder.clone(),
        file: Arc::clone(&data.file),
        in_force: data.in_force.clone(),
        models: Arc::clone(&workers.models),
        watch: Arc::clone(&workers.watch),
        queue: fetching.queue.clone(),
        supervisor: workers.supervisor.clone(),
        memory_guard: Arc::clone(&workers.memory_guard),
        board: Arc::new(board),
        notices,
        applying: AsyncMutex::default(),
    })
}

/// All parts of a host before it serves.
struct Assembly {
    kind: HostKind,
    data: DataFolder,
    network: Network,
    workers: Workers,
    fetching: FetchParts,
    documents: Arc<DocumentIndex>,
    config: Arc<LiveConfig>,
    admin: Arc<Admin>,
    models: Arc<ModelService>,
    remote: Remote,
    keys: Arc<Keys>,
    /// From the grades of answers, as the host began.
    learned: LearnedLevels,
    closing: CancellationToken,
}

impl Assembly {
    fn serve(mut self, sampler: Sampler, requests: mpsc::Receiver<RunNow>) -> Host {
        let Parts {
            router,
            runner: queue,
            jobs,
        } = self.gateway().parts();
        let options = ServeOptions {
            router,
            tls: self.network.acceptor.take(),
            limits: ClientLimits::with(self.data.configured.server.requests_at_once),
            closing: self.closing.clone(),
        };
        let runner = self.schedule_runner(requests, Arc::clone(&jobs));
        tokio::spawn(runner.run(self.closing.clone()));
        self.spawn_indexer(Arc::clone(&jobs.inference));
        // Queued requests would end with a command's host.
        let queue = Some(queue).filter(|_| self.kind != HostKind::Cli);
        let served = self.spawn_servers(options, queue);
        self.spawn_upkeep(sampler);
        tracing::info!(url = %self.network.url, home = %self.config.home().display(), "Tierbar is serving");
        Host {
            kind: self.kind,
            config: self.config,
            admin: self.admin,
            server: Server {
                url: self.network.url,
                fingerprint: self.network.fingerprint,
                token: self.data.token,
                keys: self.keys,
                metrics: self.workers.metrics,
                store: self.data.store,
                closing: self.closing,
                running: AsyncMutex::new(Some((self.data.ownership, served))),
            },
        }
    }

    fn gateway(&self) -> Gateway {
        let measures = Measurements {
            host: Arc::clone(&self.config),
            running: Arc::default(),
        };
        let inference = Inference {
            tiers: Arc::new(self.workers.supervisor.clone()),
            services: Arc::clone(&self.admin) as _,
            models: Arc::clone(&self.models) as _,
            secrets: self.data.secrets.clone(),
            remote: self.remote.clone(),
            speed: self.workers.speed.clone(),
            auto: Auto::new(self.learned),
            endpoints: EndpointStates::default(),
            metrics: self.workers.metrics.clone(),
            closing: self.closing.clone(),
        };
        let edge = Edge {
            services: Arc::clone(&self.admin) as _,
            keys: Arc::clone(&self.keys),
            token: self.data.token.clone(),
            codes: SignInCodes::default(),
            store: self.data.store.clone(),
            address: self.network.address,
        };
        Gateway {
            inference: Arc::new(inference),
            edge: Arc::new(edge),
            measures: Arc::new(measures),
            schedules: Arc::clone(&self.config.notices.schedules) as _,
            documents: Arc::clone(&self.documents) as _,
            contexts: self.workers.contexts.clone(),
        }
    }

    fn schedule_runner(&self, requests: mpsc::Receiver<RunNow>, jobs: Arc<Jobs>) -> Runner {
        let memory_guard = Arc::clone(&self.workers.memory_guard);
        let config = Arc::clone(&self.config);
        Runner {
            schedules: Arc::clone(&self.config.notices.schedules),
            requests,
            undelivered: Mutex::default(),
            run_task: Box::new(move |schedule, text| -> BoxFuture<'static, _> {
                let jobs = Arc::clone(&jobs);
                let run = async move { scheduled::run(&jobs, &schedule, text).await };
                Box::pin(run.instrument(tracing::info_span!("schedule")))
            }),
            web: self.fetching.web.clone(),
            remote: self.remote.clone(),
            secrets: self.data.secrets.clone(),
            journal: Arc::clone(&self.workers.journal) as _,
            extract: worker::find("extract", None),
            paused: Box::new(move || memory_guard.status().stance == Stance::Paused),
            notice: Box::new(move || config.publish_notices(&config.models.config())),
        }
    }

    /// Reads documents until `closing`, but not in a command's host, which ends too soon.
    fn spawn_indexer(&self, inference: Arc<Inference>) {
        if self.kind == HostKind::Cli {
            return;
        }
        let answer = Box::new(move |path, fields| -> BoxFuture<'static, _> {
            let inference = Arc::clone(&inference);
            Box::pin(dispatch::fetch_uncounted(inference, path, fields))
        });
        let indexer = Indexer::new(&self.documents, answer, worker::find("extract", None));
        tokio::spawn(indexer.run(self.closing.clone()));
    }

    /// Serves Tierbar's address, and Ollama's while the configuration says so, until `closing`.
    fn spawn_servers(
        &mut self,
        options: ServeOptions,
        queue: Option<tierbar_jobs::queue::QueueRunner>,
    ) -> JoinHandle<()> {
        let config = Arc::clone(&self.config);
        let as_ollama = ServeOptions {
            router: tierbar_dialects::ollama::as_ollama(options.router.clone()),
            tls: None,
            ..options.clone()
        };
        let ollama = ollama::serve_as_ollama(
            ollama::ADDRESS,
            as_ollama,
            self.config.in_force.subscribe(),
            move |notice| config.report(Topic::Ollama, Vec::from_iter(notice)),
        );
        let listener = self.network.listener.take();
        let queue = queue.map(|runner| tokio::spawn(runner.run()));
        tokio::spawn(async move {
            let api = async {
                if let Some(listener) = listener {
                    serve(listener, options).await;
                }
            };
            tokio::join!(api, ollama);
            if let Some(queue) = queue
                && let Err(ended) = queue.await
            {
                tracing::error!("the queue has ended: {ended}");
            }
        })
    }

    /// The tasks that keep status, configuration, keys and speeds up to date until `closing`.
    fn spawn_upkeep(&mut self, sampler: Sampler) {
        let (closing, config) = (&self.closing, || Arc::clone(&self.config));
        tokio::spawn(Arc::clone(&self.config.board).run(sampler, closing.clone()));
        tokio::spawn(config().follow_models(closing.clone()));
        if let Some(watching) = self.data.watching.take() {
            tokio::spawn(config().follow_file(watching, closing.clone()));
        }
        tokio::spawn({
            let (keys, closing) = (Arc::clone(&self.keys), closing.clone());
            async move { keys.keep(closing).await }
        });
        tokio::spawn({
            let (metrics, closing) = (self.workers.metrics.clone(), closing.clone());
            let store = self.data.store.clone();
            async move { metrics.keep_ledger(store, closing).await }
        });
        let store = self.data.store.clone();
        tokio::spawn(room::keep_log_short(store.clone(), closing.clone()));
        let journal = Arc::clone(&self.workers.journal) as _;
        tokio::spawn(room::keep_room(config(), journal, closing.clone()));
        // A command's host ends too soon.
        if self.kind != HostKind::Cli {
            let folder = self.data.folder.clone();
            tokio::spawn(keep_copy(store.clone(), folder, closing.clone()));
        }
        let (speeds, speed) = (self.data.folder.file(SPEEDS), self.workers.speed.clone());
        tokio::spawn(measured::keep_speeds(speeds, speed, closing.clone()));
        tokio::spawn(awake::stay_awake_for_work(config(), closing.clone()));
        tokio::spawn(unused_memory::give_back(closing.clone()));
        let events = self.workers.journal.watch();
        tokio::spawn(publish_notifications(
            config(),
            events,
            store,
            closing.clone(),
        ));
        let (assignments, local) = (&self.models.assignments, &self.models.local);
        tokio::spawn(Arc::clone(assignments).follow(Arc::clone(local), closing.clone()));
    }
}

/// Keeps a copy of the database, of the last day, until `closing`.
async fn keep_copy(store: Store, folder: Folder, closing: CancellationToken) {
    const PERIOD: Duration = Duration::from_secs(60 * 60);
    loop {
        if let Err(error) = copy_database(&store, &folder).await {
            tracing::warn!("no copy of the database was made: {error}");
        }
        if timeout(PERIOD, closing.cancelled()).await.is_ok() {
            return;
        }
    }
}

async fn copy_database(store: &Store, folder: &Folder) -> Result<(), Error> {
    let bytes = std::fs::metadata(folder.database()).map_or(0, |file| file.len());
    Volume::of(folder.home())?.take(folder.home(), bytes)?;
    store.keep_copy().await.map(drop)
}
