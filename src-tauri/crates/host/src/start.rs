//! The host's start, step by step, from nothing to a listening server.

mod parts;
mod server;

pub(crate) use server::Server;

use crate::{
    Host, HostKind, HostOptions, awake,
    documents::{DocumentIndex, Inbox as DocumentInbox, Indexer},
    figures::Figures,
    folder::Folder,
    history::PastReadings,
    library::{Assignments, CatalogList, Downloads, LocalModels, ModelService, Offers},
    live_config::LiveConfig,
    measure::{HostParts, Measurements},
    measured,
    notices::Notices,
    notifications::Notifications,
    ollama,
    paging::PagingBoard,
    platform, room,
    schedules::{Inbox, Runner, Schedules},
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
    sync::Arc,
    time::{Duration, Instant},
};
use tierbar_core::{Error, lease::BoxFuture, policy::Stance};
use tierbar_edge::keys::Keys;
use tierbar_fetch::Remote;
use tierbar_gateway::{Gateway, Parts};
use tierbar_inference::{Inference, auto::Auto, dispatch, endpoints::EndpointStates};
use tierbar_jobs::{Jobs, tasks::scheduled};
use tierbar_library::hub;
use tierbar_routing::learned::LearnedLevels;
use tierbar_store::Store;
use tokio::{sync::Mutex as AsyncMutex, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

pub(crate) async fn start(options: HostOptions) -> Result<Host, Error> {
    platform::run_at_full_speed();
    parts::warn_of_simulation().await?;
    let endpoint = hub::endpoint(std::env::var("HF_ENDPOINT").ok().as_deref())?;
    let data = DataFolder::open(options.home).await?;
    let program = worker::find(options.worker)?;
    let network = Network::open(options.listen.as_deref(), &data).await?;
    let readings = Readings::begin().await?;
    let workers = Workers::start(&data, &readings, program).await?;
    let fetching = FetchParts::start(&data, &workers, endpoint)?;
    let (schedules, inbox) = Schedules::new(
        data.in_force.subscribe(),
        data.store.clone(),
        // A command's host ends too soon for them.
        options.kind != HostKind::Cli,
    );
    let schedules = Arc::new(schedules);
    let (documents, document_inbox) =
        DocumentIndex::new(data.store.clone(), Arc::new(workers.supervisor.clone()));
    let board = status_board(&data, &network, &readings, &workers, &fetching);
    let config = live_config(
        &data,
        &network,
        &workers,
        &fetching,
        &schedules,
        Arc::clone(&board),
    );
    config.publish_notices(&data.configured);
    data.ownership.announce(&network.url, options.kind)?;

    tierbar_edge::sessions::trim_sessions(&data.store).await;
    let models = models(&data, &config, &workers, &fetching);
    let host = Assembly {
        kind: options.kind,
        admin: admin(
            options.kind,
            &data,
            &config,
            &board,
            &workers,
            Arc::clone(&models.local),
        ),
        models,
        remote: Remote::new(Remote::SILENCE)?,
        learned: LearnedLevels::of(&data.store.grade_groups().await?),
        keys: Arc::new(Keys::open(data.store.clone()).await?),
        closing: CancellationToken::new(),
        schedules,
        documents: Arc::new(documents),
        board,
        config,
        data,
        network,
        workers,
        fetching,
    };
    Ok(host.serve(readings, inbox, document_inbox))
}

fn status_board(
    data: &DataFolder,
    network: &Network,
    readings: &Readings,
    workers: &Workers,
    fetching: &FetchParts,
) -> Arc<StatusBoard> {
    Arc::new(StatusBoard::new(
        network.url.clone(),
        workers.supervisor.clone(),
        Arc::clone(&workers.memory_guard),
        workers.speed.clone(),
        fetching.queue.watch(),
        &readings.first,
        PastReadings::new(data.store.clone()),
    ))
}

fn live_config(
    data: &DataFolder,
    network: &Network,
    workers: &Workers,
    fetching: &FetchParts,
    schedules: &Arc<Schedules>,
    board: Arc<StatusBoard>,
) -> Arc<LiveConfig> {
    let notices = Notices {
        file: Arc::clone(&data.file),
        started_with: Arc::clone(&data.configured),
        reached: network.notices(),
        unwatched: data.unwatched.clone(),
        schedules: Arc::clone(schedules),
        supervisor: workers.supervisor.clone(),
        queue: fetching.queue.clone(),
        watch: Arc::clone(&workers.watch),
        ollama: Mutex::default(),
        pins: Mutex::new(workers.pins.clone()),
        assignments: Mutex::default(),
        disks: Mutex::default(),
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
        board,
        notices,
        applying: AsyncMutex::default(),
    })
}

fn admin(
    kind: HostKind,
    data: &DataFolder,
    config: &Arc<LiveConfig>,
    board: &Arc<StatusBoard>,
    workers: &Workers,
    local: Arc<LocalModels>,
) -> Arc<Admin> {
    Arc::new(Admin {
        config: Arc::clone(config),
        board: Arc::clone(board),
        memory_guard: Arc::clone(&workers.memory_guard),
        journal: Arc::clone(&workers.journal),
        figures: Figures {
            kind,
            begun: Instant::now(),
            home: data.folder.home().to_owned(),
            local,
        },
        paging: PagingBoard {
            supervisor: workers.supervisor.clone(),
            board: Arc::clone(board),
        },
    })
}

fn models(
    data: &DataFolder,
    config: &Arc<LiveConfig>,
    workers: &Workers,
    fetching: &FetchParts,
) -> Arc<ModelService> {
    let local = Arc::new(LocalModels {
        models: Arc::clone(&workers.models),
        watch: Arc::clone(&workers.watch),
        machine: Arc::clone(&workers.machine),
        speed: workers.speed.clone(),
        supervisor: workers.supervisor.clone(),
        config: Arc::clone(config),
    });
    let offers = Arc::new(Offers {
        local: Arc::clone(&local),
        hub: fetching.hub(),
        list: CatalogList::open(data.folder.catalog()),
        queue: fetching.queue.clone(),
    });
    let downloads = Downloads {
        local: Arc::clone(&local),
        offers: Arc::clone(&offers),
        queue: fetching.queue.clone(),
        assignments: Arc::new(Assignments::open(data.folder.assignments())),
    };
    Arc::new(ModelService {
        local,
        offers,
        downloads,
    })
}

/// All parts of a host before it serves.
struct Assembly {
    kind: HostKind,
    data: DataFolder,
    network: Network,
    workers: Workers,
    fetching: FetchParts,
    schedules: Arc<Schedules>,
    documents: Arc<DocumentIndex>,
    board: Arc<StatusBoard>,
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
    fn serve(mut self, readings: Readings, inbox: Inbox, documents: DocumentInbox) -> Host {
        let Parts {
            router,
            runner: queue,
            jobs,
        } = self.gateway().parts();
        let options = ServeOptions {
            router,
            tls: self.network.acceptor(),
            limits: ClientLimits::with(self.data.configured.server.requests_at_once),
            closing: self.closing.clone(),
        };
        tokio::spawn(
            self.schedule_runner(inbox, Arc::clone(&jobs))
                .run(self.closing.clone()),
        );
        self.spawn_indexer(documents, Arc::clone(&jobs.inference));
        // Queued requests would end with a command's host.
        let queue = Some(queue).filter(|_| self.kind != HostKind::Cli);
        let served = self.spawn_servers(options, queue);
        self.spawn_upkeep(readings);
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
        let parts = HostParts {
            config: Arc::clone(&self.config),
            board: Arc::clone(&self.board),
        };
        Gateway {
            tiers: Arc::new(self.workers.supervisor.clone()),
            services: Arc::clone(&self.admin) as _,
            models: Arc::clone(&self.models) as _,
            measures: Arc::new(Measurements::new(Arc::new(parts))),
            schedules: Arc::clone(&self.schedules) as _,
            documents: Arc::clone(&self.documents) as _,
            secrets: self.data.secrets.clone(),
            remote: self.remote.clone(),
            store: self.data.store.clone(),
            queue: tierbar_jobs::queue::JobQueue::default(),
            contexts: self.workers.contexts.clone(),
            speed: self.workers.speed.clone(),
            auto: Auto::new(self.learned),
            endpoints: EndpointStates::default(),
            metrics: self.workers.metrics.clone(),
            token: self.data.token.clone(),
            keys: Arc::clone(&self.keys),
            address: self.network.address,
            closing: self.closing.clone(),
        }
    }

    fn schedule_runner(&self, inbox: Inbox, jobs: Arc<Jobs>) -> Runner {
        let memory_guard = Arc::clone(&self.workers.memory_guard);
        let config = Arc::clone(&self.config);
        Runner {
            inbox,
            run_task: Box::new(move |schedule, text| -> BoxFuture<'static, _> {
                let jobs = Arc::clone(&jobs);
                let run = async move { scheduled::run(&jobs, &schedule, text).await };
                Box::pin(run.instrument(tracing::info_span!("schedule")))
            }),
            web: self.fetching.web.clone(),
            remote: self.remote.clone(),
            secrets: self.data.secrets.clone(),
            journal: Arc::clone(&self.workers.journal) as _,
            extract: worker::extract(),
            paused: Box::new(move || memory_guard.status().stance == Stance::Paused),
            notice: Box::new(move || config.publish_notices(&config.models.config())),
        }
    }

    /// Reads documents until `closing`, but not in a command's host, which ends too soon.
    fn spawn_indexer(&self, inbox: DocumentInbox, inference: Arc<Inference>) {
        if self.kind == HostKind::Cli {
            return;
        }
        let answer = Box::new(move |path, fields| -> BoxFuture<'static, _> {
            Box::pin(dispatch::fetch_uncounted(
                Arc::clone(&inference),
                path,
                fields,
            ))
        });
        let indexer = Indexer::new(
            inbox,
            Arc::new(self.workers.supervisor.clone()),
            answer,
            worker::extract(),
        );
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
            move |notice| config.set_ollama_notice(notice),
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
    fn spawn_upkeep(&mut self, readings: Readings) {
        let closing = &self.closing;
        tokio::spawn({
            let (board, closing) = (Arc::clone(&self.board), closing.clone());
            async move { board.run(readings.sampler, closing).await }
        });
        tokio::spawn({
            let (config, closing) = (Arc::clone(&self.config), closing.clone());
            async move { closing.run_until_cancelled(config.follow_models()).await }
        });
        tokio::spawn({
            let (keys, closing) = (Arc::clone(&self.keys), closing.clone());
            async move { keys.keep(closing).await }
        });
        tokio::spawn({
            let (metrics, closing) = (self.workers.metrics.clone(), closing.clone());
            let store = self.data.store.clone();
            async move { metrics.keep_ledger(store, closing).await }
        });
        tokio::spawn(room::keep_log_short(
            self.data.store.clone(),
            closing.clone(),
        ));
        tokio::spawn(room::keep_room(
            Arc::clone(&self.config),
            Arc::clone(&self.workers.journal) as _,
            closing.clone(),
        ));
        // A command's host ends too soon.
        if self.kind != HostKind::Cli {
            let (store, closing) = (self.data.store.clone(), closing.clone());
            tokio::spawn(keep_copy(store, self.data.folder.clone(), closing));
        }
        let (speeds, speed) = (self.data.folder.speeds(), self.workers.speed.clone());
        tokio::spawn(measured::keep_speeds(speeds, speed, closing.clone()));
        tokio::spawn(awake::stay_awake_for_work(
            self.workers.supervisor.watch(),
            self.fetching.queue.watch(),
            Arc::clone(&self.workers.memory_guard),
            closing.clone(),
        ));
        tokio::spawn(unused_memory::give_back(closing.clone()));
        let notifications = Notifications {
            config: self.config.in_force.subscribe(),
            events: self.workers.journal.watch(),
            downloads: self.fetching.queue.watch(),
            store: self.data.store.clone(),
            board: Arc::clone(&self.board),
        };
        tokio::spawn(notifications.run(closing.clone()));
        let (assignments, local) = self.models.assigning();
        tokio::spawn(assignments.follow(local, self.fetching.queue.clone(), closing.clone()));
        if let Some(watching) = self.data.watching.take() {
            let (config, closing) = (Arc::clone(&self.config), closing.clone());
            tokio::spawn(async move { config.follow_file(watching, closing).await });
        }
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
