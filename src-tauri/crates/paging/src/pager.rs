//! The owner of a model's experts in memory: takes the router's choices, has what is missing read, and waits for it.

mod reading;

use crate::{
    cache::{Cache, CacheUpdate, EvictionPolicy},
    cost::PagingCost,
    layout::{ExpertIndex, Layout},
    picture::ResidencyPicture,
    platform::{self, MemoryArea, WeightFile},
    pool::{FileIdentity, PageMove, ReadJob, ReadQueue},
};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{
    collections::{HashMap, HashSet},
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};
use tierbar_core::{Code, Error};

/// How often a wait looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(20);
/// How experts are paged.
#[derive(Debug, Clone, Copy)]
pub struct PagerSettings {
    /// Bytes of experts that may be in memory.
    pub budget_bytes: u64,
    /// Experts that a token uses of each layer.
    pub used: u32,
    pub policy: EvictionPolicy,
    /// Reads at once.
    pub threads: usize,
    /// How long a read may take before the disk counts as stalled.
    pub patience: Duration,
}

/// The experts of one model. Dropping it ends its threads; the memory stays as it is.
#[derive(Debug)]
pub struct Pager {
    inner: Arc<SharedPager>,
    threads: Vec<JoinHandle<()>>,
    least_bytes: u64,
}

#[derive(Debug)]
struct SharedPager {
    layout: Layout,
    areas: Vec<MemoryArea>,
    files: Vec<ModelFile>,
    board: Mutex<PagerState>,
    /// There is a job, or nothing more to do.
    work: Condvar,
    /// A job has ended.
    done: Condvar,
    read_bytes: AtomicU64,
    waited_nanos: AtomicU64,
    patience: Duration,
    /// Whether the first layer follows the last.
    in_circle: bool,
}

/// A file of the model, and what it was when it was opened.
#[derive(Debug)]
struct ModelFile {
    path: PathBuf,
    source: WeightFile,
    identity: FileIdentity,
}

#[derive(Debug)]
struct PagerState {
    cache: Cache,
    jobs: ReadQueue,
    /// What is being read.
    unread: HashMap<ExpertIndex, UnreadExpert>,
    /// By unit: runs of pages that are still to be moved away.
    leaving: HashMap<ExpertIndex, usize>,
    /// Runs that pages have been moved to, by file and first page.
    moved_to: HashSet<(usize, u64)>,
    most_moved: usize,
    /// Why reads failed, since experts were needed last.
    failed: HashMap<ExpertIndex, Error>,
    /// When a job has ended last.
    ended_at: Instant,
    token: u64,
    last_layer: Option<u32>,
    closed: bool,
}

/// The matrices of an expert that are not read yet, and whether one could not be.
#[derive(Debug)]
struct UnreadExpert {
    matrices: usize,
    failed: bool,
}

impl Pager {
    /// Reads what every token needs into the areas, and begins with no experts. The areas are those of the layout, for all
    /// of the model's files.
    ///
    /// # Errors
    /// [`Code::OverBudget`] if the budget is less than [`Layout::least_bytes`]; [`Code::Storage`] if a file cannot be read.
    pub fn start(
        layout: Layout,
        areas: Vec<MemoryArea>,
        paths: Vec<PathBuf>,
        settings: PagerSettings,
    ) -> Result<Self, Error> {
        let least_bytes = layout.least_bytes(settings.used);
        if settings.budget_bytes < least_bytes {
            return Err(budget_error(settings.budget_bytes, least_bytes));
        }
        let open = |path: PathBuf| {
            let source = platform::open(&path);
            let opened = source.and_then(|source| Ok((FileIdentity::of(&source)?, source)));
            let (identity, source) = opened.map_err(|error| unreadable_error(&path, &error))?;
            Ok(ModelFile {
                path,
                source,
                identity,
            })
        };
        let files = paths.into_iter().map(open).collect::<Result<_, Error>>()?;
        let budget = settings.budget_bytes / layout.page;
        let board = PagerState {
            cache: Cache::new(layout.pages.clone(), budget, settings.policy),
            jobs: ReadQueue::default(),
            unread: HashMap::new(),
            leaving: HashMap::new(),
            moved_to: HashSet::new(),
            most_moved: platform::most_moved(),
            failed: HashMap::new(),
            ended_at: Instant::now(),
            token: 0,
            last_layer: None,
            closed: false,
        };
        let inner = Arc::new(SharedPager {
            layout,
            areas,
            files,
            board: Mutex::new(board),
            work: Condvar::new(),
            done: Condvar::new(),
            read_bytes: AtomicU64::new(0),
            waited_nanos: AtomicU64::new(0),
            patience: settings.patience,
            in_circle: settings.policy == EvictionPolicy::MostRecent,
        });
        inner.read_held(settings.threads.max(1))?;
        let spawn = |number: usize| {
            let inner = Arc::clone(&inner);
            std::thread::Builder::new()
                .name(format!("experts {number}"))
                .spawn(move || inner.work())
                .map_err(|error| Error::new(Code::Internal, format!("a thread: {error}")))
        };
        let threads = (0..settings.threads.max(1))
            .map(spawn)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            inner,
            threads,
            least_bytes,
        })
    }

    /// Has these experts of a layer in memory, and keeps them there until the next call. With `next`, reads the next
    /// layer's experts meanwhile. `false` if `abandoned` said so first.
    ///
    /// # Errors
    /// [`Code::Storage`] if a file cannot be read or has changed, or the disk has stalled. What was read is right; the next call
    /// tries again.
    pub fn need(
        &self,
        layer: u32,
        experts: &[u32],
        next: bool,
        abandoned: &dyn Fn() -> bool,
    ) -> Result<bool, Error> {
        let inner = &*self.inner;
        let units: Option<Vec<ExpertIndex>> = experts
            .iter()
            .map(|&expert| inner.layout.unit(layer, expert))
            .collect();
        let units = units.ok_or_else(|| {
            let message = format!("layer {layer} has no expert {:?}", experts.iter().max());
            Error::new(Code::Internal, message)
        })?;
        let began = Instant::now();
        let mut board = inner.board.lock();
        // What is being freed can only be read again once that is over.
        while units.iter().any(|unit| board.leaving.contains_key(unit)) {
            if !inner.wait(&mut board, began, abandoned)? {
                return Ok(false);
            }
        }
        board.failed.clear();
        if board.last_layer.is_none_or(|last| layer <= last) {
            board.token += 1;
        }
        board.last_layer = Some(layer);
        let token = board.token;
        // Before the cache counts them as being read.
        if units.iter().any(|&unit| board.cache.is_absent(unit)) {
            inner.check_files()?;
        }
        let taken = board.cache.take(&units, token);
        inner.queue(&mut board, &taken, true);
        if next {
            let PagerState { cache, leaving, .. } = &mut *board;
            let coming = inner.layout.next_layer(layer, inner.in_circle);
            let taken = cache.take_ahead(coming, |unit| leaving.contains_key(&unit));
            inner.queue(&mut board, &taken, false);
        }
        if units.iter().all(|&unit| board.cache.is_held(unit)) {
            return Ok(true);
        }
        let needed: HashSet<ExpertIndex> = units.iter().copied().collect();
        board.jobs.hurry(|unit| needed.contains(&unit));
        let waits = Instant::now();
        let mut wanted = true;
        while wanted && !units.iter().all(|&unit| board.cache.is_held(unit)) {
            wanted = inner.wait(&mut board, began, abandoned)?;
            if let Some(error) = units.iter().find_map(|unit| board.failed.remove(unit)) {
                return Err(error);
            }
        }
        let waited = u64::try_from(waits.elapsed().as_nanos()).unwrap_or(u64::MAX);
        inner.waited_nanos.fetch_add(waited, Ordering::Relaxed);
        Ok(wanted)
    }

    /// Sets the bytes that experts may take, at once, and returns them: at least [`Layout::least_bytes`]. Experts in use stay
    /// until they are computed with.
    pub fn resize(&self, budget_bytes: u64) -> u64 {
        let inner = &*self.inner;
        let bytes = budget_bytes.max(self.least_bytes);
        let mut board = inner.board.lock();
        let evicted = board.cache.resize(bytes / inner.layout.page);
        let taken = CacheUpdate {
            evicted,
            ..CacheUpdate::default()
        };
        inner.queue(&mut board, &taken, true);
        bytes
    }

    /// Returns whether an expert is in memory. It may go with the next call of [`Self::need`].
    pub fn is_held(&self, layer: u32, expert: u32) -> bool {
        let unit = self.inner.layout.unit(layer, expert);
        unit.is_some_and(|unit| self.inner.board.lock().cache.is_held(unit))
    }

    /// Returns which experts are in memory, and how likely the next token is to use them.
    pub fn picture(&self) -> ResidencyPicture {
        let board = self.inner.board.lock();
        let heat = |unit| board.cache.heat(unit);
        ResidencyPicture::new(&self.inner.layout, heat)
    }

    pub fn cost(&self) -> PagingCost {
        let board = self.inner.board.lock();
        PagingCost {
            stats: board.cache.stats,
            read_bytes: self.inner.read_bytes.load(Ordering::Relaxed),
            waited: Duration::from_nanos(self.inner.waited_nanos.load(Ordering::Relaxed)),
            held_bytes: board.cache.held * self.inner.layout.page,
        }
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        self.inner.board.lock().closed = true;
        self.inner.work.notify_all();
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

impl SharedPager {
    /// Waits until a job has ended. `false` if that is no longer wanted. `began`: when waiting for jobs has begun.
    fn wait(
        &self,
        board: &mut MutexGuard<'_, PagerState>,
        began: Instant,
        abandoned: &dyn Fn() -> bool,
    ) -> Result<bool, Error> {
        if abandoned() {
            return Ok(false);
        }
        if board.ended_at.max(began).elapsed() > self.patience {
            return Err(self.stalled());
        }
        self.done.wait_for(board, LOOK);
        Ok(true)
    }

    fn stalled(&self) -> Error {
        let first = self.files.first();
        let path = first.map_or_else(PathBuf::new, |file| file.path.clone());
        let message = format!(
            "the disk with {} has not answered for {} s",
            path.display(),
            self.patience.as_secs()
        );
        Error::new(Code::Storage, message).hint("check that the disk is connected, then try again")
    }
}

impl PagerState {
    fn end(&mut self, job: &ReadJob, read: Result<(), Error>) {
        self.ended_at = Instant::now();
        if let Some(PageMove { unit, .. }) = &job.recycled
            && let Some(runs) = self.leaving.get_mut(unit)
        {
            *runs -= 1;
            if *runs == 0 {
                self.leaving.remove(unit);
            }
        }
        let Some(unread) = self.unread.get_mut(&job.unit) else {
            return;
        };
        unread.matrices -= 1;
        if let Err(error) = read {
            unread.failed = true;
            self.failed.entry(job.unit).or_insert(error);
        }
        if unread.matrices > 0 {
            return;
        }
        if unread.failed {
            self.cache.failed(job.unit);
        } else {
            self.cache.loaded(job.unit);
        }
        self.unread.remove(&job.unit);
    }
}

fn unreadable_error(path: &std::path::Path, error: &io::Error) -> Error {
    let message = format!("{} cannot be read: {error}", path.display());
    Error::new(Code::Storage, message).hint("check its disk, then load the model again")
}

fn budget_error(budget: u64, least: u64) -> Error {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let message = format!(
        "{} MiB for experts is too little: one token and two layers need {} MiB",
        mib(budget),
        mib(least)
    );
    Error::new(Code::OverBudget, message).hint("choose a smaller quant, or a smaller context")
}

#[cfg(test)]
mod tests;
