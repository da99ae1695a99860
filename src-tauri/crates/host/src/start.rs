//! The host's way from nothing to a listening server, and back.

use crate::{
    Host, HostKind, HostOptions, address,
    blocking::blocking,
    config::{self, ConfigFile, Watching},
    conversations,
    folder::Folder,
    history::PastReadings,
    journal::Ledger,
    machine::ThisMachine,
    measure::Measuring,
    measured,
    memory_guard::GuardRunner,
    models::Models,
    ollama,
    ownership::Ownership,
    pulls,
    schedules::{Runner, Schedules},
    serve::{Patience, Way, serve},
    services::Shared,
    status::StatusBoard,
    tls::Tls,
    worker,
};
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};
use tierbar_contexts::Contexts;
use tierbar_core::{Code, Error, fit::Machine, policy::Stance};
use tierbar_fetch::{Queue, QueueOptions, Remote, Web, WebOptions};
use tierbar_gateway::{Auto, Chains, Gateway, Keys, Metrics, SpeedMeter, Token};
use tierbar_library::{
    LibraryWatch, Pace,
    hub::{self, Hub, Resolver},
};
use tierbar_secrets::Secrets;
use tierbar_store::Store;
use tierbar_supervisor::{Handle, Options, Supervisor};
use tierbar_telemetry::{
    SCRIPTED_READINGS, SIMULATE_RAM, Sampler, scripted_readings, simulated_ram,
    simulated_working_set, working_set,
};
use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// How long running answers may go on after the host was asked to end.
const DRAINING: Duration = Duration::from_secs(3);
/// How long the connections may take to close once no worker is left to answer on them.
const CLOSING: Duration = Duration::from_secs(2);
/// What breaks off if a part of it does.
const STARTING: &str = "the start";

pub(crate) async fn start(options: HostOptions) -> Result<Host, Error> {
    if let Some(bytes) = simulated_ram()? {
        tracing::warn!("{SIMULATE_RAM}: planning as if this machine had {bytes} bytes of RAM");
    }
    simulated_working_set()?;
    if let Some(script) = blocking(STARTING, scripted_readings).await? {
        let script = script.display();
        tracing::warn!("{SCRIPTED_READINGS}: readings are those of {script}, not this machine's");
    }
    let endpoint = hub::endpoint(std::env::var("HF_ENDPOINT").ok().as_deref())?;
    let folder = {
        let home = options.home;
        blocking(STARTING, move || Folder::open(home)).await?
    };
    let ownership = Ownership::take(&folder).await?;
    let (config, token) = {
        let folder = folder.clone();
        blocking(STARTING, move || {
            let config = ConfigFile::open(folder.config(), &folder.models())?;
            Ok((Arc::new(config), Token::open(&folder.token())?))
        })
        .await?
    };
    let program = worker::find(options.worker)?;
    let store = {
        let path = folder.database();
        blocking(STARTING, move || Store::open(&path)).await?
    };
    let configured = config.config();
    let address = match &options.listen {
        Some(given) => {
            address::parse(given).map_err(|wrong| Error::new(Code::BadRequest, wrong))?
        }
        None => address::parse(&configured.listen)
            .map_err(|wrong| Error::new(Code::ConfigInvalid, wrong))?,
    };
    address::check_network(address, configured.server.network)
        .map_err(|wrong| Error::new(Code::ConfigInvalid, wrong))?;
    let tls = if configured.server.tls {
        let (folder, configured) = (folder.clone(), Arc::clone(&configured));
        // A command's own host is on loopback; the certificate that it makes serves the next one too.
        let usual = address::parse(&configured.listen).unwrap_or(address);
        let addresses = [address.ip(), usual.ip()];
        let opened = move || Tls::open(&folder, &configured.server, &addresses);
        Some(blocking(STARTING, opened).await?)
    } else {
        None
    };
    let fingerprint = tls.as_ref().map(|tls| tls.fingerprint.clone());
    let listener = address::bind(address).await?;
    let address = listener
        .local_addr()
        .map_err(|error| Error::new(Code::Internal, error.to_string()))?;
    let url = address::url(address);

    let (sampler, reading) = blocking(STARTING, || {
        let mut sampler = Sampler::new();
        let reading = sampler.sample();
        Ok((sampler, reading))
    })
    .await?;
    let ram = reading.ram_total_bytes.ok_or_else(|| {
        let why = reading.doubts.first().map(|doubt| doubt.why.as_str());
        let message = format!(
            "this machine's memory cannot be planned: {}",
            why.unwrap_or("its size is unknown")
        );
        Error::new(Code::Internal, message)
            .hint(format!("name the size in {SIMULATE_RAM}, such as 16GiB"))
    })?;
    let working_set = blocking(STARTING, || Ok(working_set())).await?;
    let machine = Machine::new(ram, working_set);
    let models = Arc::new(Models::new(
        folder.clone(),
        machine,
        Arc::clone(&configured),
    ));
    let (tiers, pins) = {
        let models = Arc::clone(&models);
        blocking(STARTING, move || Ok(models.tiers_and_notice())).await?
    };
    let source = Arc::clone(&models) as _;
    let contexts = Contexts::new(folder.contexts());
    {
        // No worker runs yet.
        let contexts = contexts.clone();
        blocking(STARTING, move || {
            contexts.sweep();
            Ok(())
        })
        .await?;
    }
    let metrics = Metrics::default();
    let journal = Arc::new(Ledger::open(store.clone(), metrics.clone()).await?);
    conversations::apply(&folder, &configured.policy).await;
    let supervisor = Supervisor::start(Options {
        tiers,
        journal: Arc::clone(&journal) as _,
        rules: models.rules(),
        // Until the first reading has been judged.
        stance: Stance::Defers,
        contexts_dir: Some(folder.contexts()),
        swapped_dir: Some(folder.conversations()),
        loads_file: Some(folder.loads()),
        ..Options::new(
            models.budget(),
            source,
            program,
            folder.run(),
            folder.logs(),
        )
    })?;
    let machine = {
        let file = folder.bandwidth();
        blocking(STARTING, move || {
            Ok(Arc::new(ThisMachine::new(machine, file)))
        })
        .await?
    };
    let watch = Arc::new(LibraryWatch::start(models.library(), Pace::default()));
    let secrets = Secrets::open(folder.home());
    let tokens = hub::tokens(secrets.clone(), &endpoint);
    let web = Web::new(WebOptions::default())?;
    let queue = Queue::start(QueueOptions {
        state_file: folder.downloads(),
        web: web.clone(),
        tokens: tokens.clone(),
        at_once: configured.downloads.at_once,
        rate_limit: configured.downloads.rate_limit,
        on_complete: {
            let models = Arc::clone(&models);
            pulls::landed(move || models.library(), Arc::clone(&watch))
        },
    });
    let (watching, unwatched) = match config::watch(&config) {
        Ok(watching) => (Some(watching), None),
        Err(error) => {
            let notice =
                format!("changes of config.toml by hand take effect at the next start: {error}");
            (None, Some(notice))
        }
    };
    let speed = {
        let path = folder.speeds();
        SpeedMeter::new(blocking(STARTING, move || Ok(measured::read(&path))).await?)
    };
    let speeds_file = folder.speeds();
    let memory_guard = Arc::new(GuardRunner::new(
        supervisor.clone(),
        Arc::clone(&models),
        Arc::clone(&journal) as _,
    ));
    let in_force = watch::Sender::new(Arc::clone(&configured));
    // What ends with a command would break them off.
    let takes_turns = options.kind != HostKind::Cli;
    let (schedules, run_requests) =
        Schedules::new(in_force.subscribe(), store.clone(), takes_turns);
    let schedules = Arc::new(schedules);
    let web_of_schedules = web.clone();
    let shared = Arc::new(Shared {
        board: StatusBoard::new(
            url.clone(),
            supervisor.clone(),
            Arc::clone(&memory_guard),
            speed.clone(),
            queue.watch(),
            &reading,
            PastReadings::new(store.clone()),
        ),
        started_with: Arc::clone(&configured),
        reached: address::notice(address, fingerprint.as_deref()),
        in_force,
        schedules: Arc::clone(&schedules),
        applying: AsyncMutex::default(),
        raise: Mutex::default(),
        folder,
        config,
        models,
        watch,
        machine,
        resolver: Resolver::new(Hub::new(web, tokens, endpoint)),
        queue,
        speed: speed.clone(),
        supervisor: supervisor.clone(),
        memory_guard,
        journal,
        ollama: Mutex::default(),
        pins: Mutex::new(pins),
        unwatched,
    });
    shared.board.notice(shared.notices(&configured));
    ownership.announce(&url, options.kind)?;

    let closing = CancellationToken::new();
    let keys = Arc::new(Keys::open(store.clone()).await?);
    let remote = Remote::new(Remote::SILENCE)?;
    let gateway = Gateway {
        tiers: Arc::new(supervisor),
        services: Arc::clone(&shared) as _,
        models: Arc::clone(&shared) as _,
        measures: Arc::new(Measuring::new(Arc::clone(&shared))),
        schedules,
        secrets: secrets.clone(),
        remote: remote.clone(),
        store,
        queue: tierbar_gateway::Queue::default(),
        contexts,
        speed: speed.clone(),
        auto: Auto::default(),
        chains: Chains::default(),
        metrics,
        token: token.clone(),
        keys: Arc::clone(&keys),
        address,
        closing: closing.clone(),
    };
    let (router, runner) = gateway.parts();
    // A command's host ends with it: what waits is not begun there.
    let runner = Some(runner).filter(|_| options.kind != HostKind::Cli);
    let way = Way {
        router,
        tls: tls.map(|tls| tls.acceptor),
        patience: Patience::with(configured.server.requests_at_once),
        closing: closing.clone(),
    };
    let of_schedules = Runner {
        inbox: run_requests,
        router: way.router.clone(),
        token: token.as_str().to_owned(),
        web: web_of_schedules,
        remote,
        secrets,
        journal: Arc::clone(&shared.journal) as _,
        paused: {
            let shared = Arc::clone(&shared);
            Box::new(move || shared.memory_guard.status().stance == Stance::Paused)
        },
        notice: {
            let shared = Arc::clone(&shared);
            Box::new(move || shared.board.notice(shared.notices(&shared.models.config())))
        },
    };
    tokio::spawn(of_schedules.run(closing.clone()));
    let served = tokio::spawn({
        let second = ollama::act(
            ollama::ADDRESS,
            Way {
                router: tierbar_gateway::as_ollama(way.router.clone()),
                tls: None,
                ..way.clone()
            },
            shared.in_force.subscribe(),
            {
                let shared = Arc::clone(&shared);
                move |notice| shared.say_of_ollama(notice)
            },
        );
        let first = serve(listener, way);
        let queue = runner.map(|runner| tokio::spawn(runner.run()));
        async move {
            tokio::join!(first, second);
            if let Some(queue) = queue
                && let Err(ended) = queue.await
            {
                tracing::error!("the queue has ended: {ended}");
            }
        }
    });
    tokio::spawn({
        let (shared, closing) = (Arc::clone(&shared), closing.clone());
        async move { shared.board.run(sampler, closing).await }
    });
    tokio::spawn({
        let (shared, closing) = (Arc::clone(&shared), closing.clone());
        async move { closing.run_until_cancelled(shared.follow_models()).await }
    });
    tokio::spawn({
        let (keys, closing) = (Arc::clone(&keys), closing.clone());
        async move { keys.keep(closing).await }
    });
    tokio::spawn(measured::keep_speeds(speeds_file, speed, closing.clone()));
    if let Some(watching) = watching {
        tokio::spawn(follow(watching, Arc::clone(&shared), closing.clone()));
    }
    tracing::info!(%url, home = %shared.home().display(), "Tierbar is serving");
    let running = AsyncMutex::new(Some((ownership, served)));
    Ok(Host {
        shared,
        server: Server {
            url,
            fingerprint,
            token,
            keys,
            closing,
            running,
        },
    })
}

/// Takes changes of the file over.
async fn follow(watching: Watching, shared: Arc<Shared>, closing: CancellationToken) {
    loop {
        tokio::select! {
            () = closing.cancelled() => return,
            () = watching.next() => shared.reload().await,
        }
    }
}

/// What ends with the host.
#[derive(Debug)]
pub(crate) struct Server {
    url: String,
    fingerprint: Option<String>,
    token: Token,
    keys: Arc<Keys>,
    closing: CancellationToken,
    running: AsyncMutex<Option<(Ownership, JoinHandle<()>)>>,
}

impl Server {
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn fingerprint(&self) -> Option<&str> {
        self.fingerprint.as_deref()
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    pub(crate) async fn shutdown(&self, queue: &Queue, supervisor: &Handle, journal: &Ledger) {
        let mut running = self.running.lock().await;
        let Some((ownership, mut served)) = running.take() else {
            return;
        };
        self.closing.cancel();
        // First, so that no more arrives than the list on the disk knows of.
        queue.shutdown().await;
        let drained = timeout(DRAINING, &mut served).await.is_ok();
        // Answers that still stream end with an event that says so.
        supervisor.shutdown().await;
        journal.flush().await;
        if !drained && timeout(CLOSING, &mut served).await.is_err() {
            served.abort();
        }
        self.keys.save().await;
        drop(ownership);
    }
}
