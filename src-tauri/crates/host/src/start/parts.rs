//! The parts that a host is put together from, in the order in which they start.

use crate::{
    address,
    config::{self, ConfigFile, ConfigWatch},
    folder::{BANDWIDTH, DOWNLOADS, Folder, LOADS, SPEEDS},
    journal::Ledger,
    library::on_complete,
    machine::ThisMachine,
    measured,
    memory_guard::GuardRunner,
    models::Models,
    ownership::Ownership,
    platform, room,
    tls::Tls,
};
use std::{net::SocketAddr, path::PathBuf, sync::Arc};
use tierbar_contexts::Contexts;
use tierbar_core::{
    Code, Config, Error, TierId,
    fit::Machine,
    journal::{Journal, Kind, LogEvent},
    policy::Stance,
    reading::Reading,
};
use tierbar_edge::token::Token;
use tierbar_fetch::{Queue, QueueOptions, Url, Web, WebOptions, blocking};
use tierbar_inference::{metrics::Metrics, speed::SpeedMeter};
use tierbar_library::{
    LibraryWatch, Pace,
    hub::{self, Hub},
};
use tierbar_secrets::Secrets;
use tierbar_store::Store;
use tierbar_supervisor::{Handle, Options, Supervisor};
use tierbar_telemetry::{
    EnergyMeter, SCRIPTED_READINGS, SIMULATE_RAM, Sampler, scripted_readings, simulated_ram,
    simulated_working_set, working_set,
};
use tokio::{net::TcpListener, sync::watch};
use tokio_rustls::TlsAcceptor;

/// Names the step in its error.
const STARTING: &str = "the start";

/// Logs which of this machine's figures are simulated.
///
/// # Errors
/// `ConfigInvalid` if a variable that simulates one cannot be read.
pub(super) async fn warn_of_simulation() -> Result<(), Error> {
    if let Some(bytes) = simulated_ram()? {
        tracing::warn!("{SIMULATE_RAM}: planning as if this machine had {bytes} bytes of RAM");
    }
    simulated_working_set()?;
    if let Some(script) = blocking(STARTING, scripted_readings).await? {
        let script = script.display();
        tracing::warn!("{SCRIPTED_READINGS}: readings come from {script}, not from this machine");
    }
    Ok(())
}

/// The data folder, owned, and what it holds.
pub(super) struct DataFolder {
    pub(super) folder: Folder,
    pub(super) ownership: Ownership,
    pub(super) file: Arc<ConfigFile>,
    /// The configuration at the start.
    pub(super) configured: Arc<Config>,
    pub(super) in_force: watch::Sender<Arc<Config>>,
    pub(super) watching: Option<ConfigWatch>,
    /// Why the file is not watched, if it is not.
    pub(super) unwatched: Option<String>,
    pub(super) token: Token,
    pub(super) store: Store,
    pub(super) secrets: Secrets,
    /// What was given up for want of room.
    freed: Option<String>,
}

impl DataFolder {
    pub(super) async fn open(home: Option<PathBuf>) -> Result<Self, Error> {
        let folder = blocking(STARTING, move || Folder::open(home)).await?;
        let ownership = Ownership::take(&folder).await?;
        let opened = folder.clone();
        let (freed, file, token, store) = blocking(STARTING, move || {
            let freed = room::free_conversations(&opened);
            let file = ConfigFile::open(opened.config(), &opened.models())?;
            let token = Token::open(&opened.token())?;
            let store = Store::open(&opened.database())?;
            Ok((freed, Arc::new(file), token, store))
        })
        .await?;
        let (watching, unwatched) = match config::watch(&file) {
            Ok(watching) => (Some(watching), None),
            Err(error) => {
                let notice = format!(
                    "Tierbar cannot watch config.toml, so changes made by hand take effect at its next start: {error}"
                );
                (None, Some(notice))
            }
        };
        let configured = file.config();
        // Models can be fetched again and conversations computed again; both are gigabytes.
        let kept_out = [
            folder.models_dir(&configured.models_dir),
            folder.conversations(),
        ];
        blocking(STARTING, move || {
            for folder in kept_out.iter().filter(|folder| folder.is_dir()) {
                if let Err(error) = platform::exclude_from_backups(folder) {
                    tracing::warn!(%error, folder = %folder.display(), "backups will include the folder");
                }
            }
            Ok(())
        })
        .await?;
        Ok(Self {
            secrets: Secrets::open(folder.home()),
            in_force: watch::Sender::new(Arc::clone(&configured)),
            folder,
            ownership,
            file,
            configured,
            watching,
            unwatched,
            token,
            store,
            freed,
        })
    }
}

/// The address that the API answers on.
pub(super) struct Network {
    /// Taken by the server.
    pub(super) listener: Option<TcpListener>,
    pub(super) address: SocketAddr,
    pub(super) url: String,
    pub(super) fingerprint: Option<String>,
    /// Why it is not the default address.
    moved: Option<String>,
    pub(super) acceptor: Option<TlsAcceptor>,
}

impl Network {
    /// Listens on `given`, else on the configured address.
    pub(super) async fn open(given: Option<&str>, data: &DataFolder) -> Result<Self, Error> {
        let configured = &data.configured;
        let invalid = |wrong| Error::new(Code::ConfigInvalid, wrong);
        let address = match given {
            Some(given) => {
                address::parse(given).map_err(|wrong| Error::new(Code::BadRequest, wrong))?
            }
            None => address::parse(&configured.listen).map_err(invalid)?,
        };
        address::check_network(address, configured.server.network).map_err(invalid)?;
        let tls = open_tls(address, data).await?;
        let (acceptor, fingerprint) = tls.map(|tls| (tls.acceptor, tls.fingerprint)).unzip();
        let is_default = given.is_none() && configured.listen == Config::DEFAULT_LISTEN;
        let (listener, moved) = match address::bind(address).await {
            Ok(listener) => (listener, None),
            // A program of this user's has a name, and quits if it is asked to.
            Err(taken)
                if is_default
                    && taken.code == Code::PortTaken
                    && !taken.details.contains_key("pid") =>
            {
                let (listener, notice) = address::bind_beside(address, taken).await?;
                (listener, Some(notice))
            }
            Err(error) => return Err(error),
        };
        let address = listener
            .local_addr()
            .map_err(|error| Error::new(Code::Internal, error.to_string()))?;
        Ok(Self {
            listener: Some(listener),
            address,
            url: address::url(address),
            fingerprint,
            moved,
            acceptor,
        })
    }

    /// Returns notices about where the server is reached, unless that is usual.
    pub(super) fn notices(&self) -> Vec<String> {
        let reached = address::notice(self.address, self.fingerprint.as_deref());
        self.moved.iter().cloned().chain(reached).collect()
    }
}

async fn open_tls(address: SocketAddr, data: &DataFolder) -> Result<Option<Tls>, Error> {
    if !data.configured.server.tls {
        return Ok(None);
    }
    let (folder, configured) = (data.folder.clone(), Arc::clone(&data.configured));
    // A command's own host is on loopback; its certificate must also suit the next host.
    let usual = address::parse(&configured.listen).unwrap_or(address);
    let addresses = [address.ip(), usual.ip()];
    let opened = move || Tls::open(&folder, &configured.server, &addresses);
    blocking(STARTING, opened).await.map(Some)
}

pub(super) struct Readings {
    pub(super) sampler: Sampler,
    pub(super) first: Reading,
    /// The machine that loads are planned for.
    machine: Machine,
}

impl Readings {
    pub(super) async fn begin() -> Result<Self, Error> {
        let (sampler, first) = blocking(STARTING, || {
            let mut sampler = Sampler::default();
            let reading = sampler.sample();
            Ok((sampler, reading))
        })
        .await?;
        let ram = first.ram_total_bytes.ok_or_else(|| {
            let why = first.doubts.first().map(|doubt| doubt.why.as_str());
            let message = format!(
                "Tierbar cannot plan this machine's memory: {}",
                why.unwrap_or("its size is unknown")
            );
            Error::new(Code::Internal, message)
                .hint(format!("set {SIMULATE_RAM} to the size, such as 16GiB"))
        })?;
        let working_set = blocking(STARTING, || Ok(working_set())).await?;
        Ok(Self {
            sampler,
            first,
            machine: Machine {
                paging: crate::platform::PAGING,
                ..Machine::new(ram, working_set)
            },
        })
    }
}

/// The supervisor, and what it loads and reports to.
pub(super) struct Workers {
    pub(super) models: Arc<Models>,
    /// Which pins cannot be kept.
    pub(super) pins: Option<String>,
    /// Follows the library of `models`.
    pub(super) watch: Arc<LibraryWatch>,
    pub(super) machine: Arc<ThisMachine>,
    pub(super) contexts: Contexts,
    pub(super) metrics: Metrics,
    pub(super) journal: Arc<Ledger>,
    pub(super) supervisor: Handle,
    pub(super) memory_guard: Arc<GuardRunner>,
    pub(super) speed: SpeedMeter,
}

impl Workers {
    pub(super) async fn start(
        data: &DataFolder,
        readings: &Readings,
        program: PathBuf,
    ) -> Result<Self, Error> {
        let folder = &data.folder;
        let configured = Arc::clone(&data.configured);
        let models = Arc::new(Models::new(folder.clone(), readings.machine, configured));
        let contexts = Contexts::new(folder.contexts());
        let metrics = Metrics::measuring(Arc::new(EnergyMeter::default()));
        metrics.open_ledger(&data.store).await?;
        // For a worker that no entry has ended.
        let ended = |tier: &TierId| {
            format!(
                "{tier} ended with the last Tierbar, which was killed or crashed, or with this computer"
            )
        };
        data.store.end_loads(ended).await?;
        let journal = Arc::new(Ledger::open(data.store.clone(), metrics.clone()).await?);
        if let Some(freed) = &data.freed {
            tracing::warn!("{freed}");
            journal.record(LogEvent::new(Kind::Note, freed.clone()));
        }
        let (tiers, pins) = {
            let (models, contexts) = (Arc::clone(&models), contexts.clone());
            blocking(STARTING, move || {
                // No worker runs yet.
                contexts.sweep();
                Ok(models.tiers_and_notice())
            })
            .await?
        };
        let policy = &data.configured.policy;
        folder.apply_conversations(policy).await;
        let source = Arc::clone(&models) as _;
        let supervisor = Supervisor::start(Options {
            tiers,
            journal: Arc::clone(&journal) as _,
            rules: models.rules(),
            // Until the memory guard has judged the first reading.
            stance: Stance::Defers,
            contexts_dir: Some(folder.contexts()),
            swapped_dir: Some(folder.conversations()),
            loads_file: Some(folder.file(LOADS)),
            ..Options::new(
                models.budget(),
                source,
                program,
                folder.run(),
                folder.logs(),
            )
        })?;
        let (bandwidth, speeds, machine) = (
            folder.file(BANDWIDTH),
            folder.file(SPEEDS),
            readings.machine,
        );
        let (machine, speeds) = blocking(STARTING, move || {
            Ok((
                ThisMachine::new(machine, bandwidth),
                measured::read(&speeds),
            ))
        })
        .await?;
        Ok(Self {
            pins,
            watch: Arc::new(LibraryWatch::start(models.library(), Pace::default())),
            machine: Arc::new(machine),
            contexts,
            metrics,
            memory_guard: Arc::new(GuardRunner::new(
                supervisor.clone(),
                Arc::clone(&models),
                Arc::clone(&journal) as _,
            )),
            models,
            journal,
            supervisor,
            speed: SpeedMeter::new(speeds),
        })
    }
}

/// The way to other servers, and the downloads.
pub(super) struct FetchParts {
    pub(super) web: Web,
    pub(super) queue: Queue,
    pub(super) hub: Hub,
}

impl FetchParts {
    pub(super) fn start(
        data: &DataFolder,
        workers: &Workers,
        endpoint: Url,
    ) -> Result<Self, Error> {
        let tokens = hub::tokens(data.secrets.clone(), &endpoint);
        let web = Web::new(WebOptions::default())?;
        let hub = Hub::new(web.clone(), tokens.clone(), endpoint);
        let models = Arc::clone(&workers.models);
        let limits = &data.configured.downloads;
        let queue = Queue::start(QueueOptions {
            state_file: data.folder.file(DOWNLOADS),
            web: web.clone(),
            tokens,
            at_once: limits.at_once,
            rate_limit: limits.rate_limit,
            on_complete: on_complete(move || models.library(), Arc::clone(&workers.watch)),
        });
        Ok(Self { web, queue, hub })
    }
}
