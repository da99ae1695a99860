//! Reading what is missing, into memory that is freed or recycled.

use super::{ModelFile, PagerState, SharedPager, UnreadExpert, unreadable_error};
use crate::{
    cache::CacheUpdate,
    layout::{ExpertIndex, ExpertSlice},
    places::PageRange,
    platform::MemoryArea,
    pool::{FileIdentity, FileRange, PageMove, ReadJob},
};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::HashMap,
    sync::atomic::{AtomicUsize, Ordering},
};
use tierbar_core::{Code, Error};

/// What is always held is read in pieces of so many bytes, by all threads.
const PIECE: u64 = 4 << 20;

impl SharedPager {
    /// Frees what goes, and queues the reads of what comes.
    pub(super) fn queue(&self, board: &mut PagerState, taken: &CacheUpdate, urgent: bool) {
        let mut free: HashMap<u64, Vec<(ExpertIndex, FileRange)>> = HashMap::new();
        for &unit in &taken.evicted {
            for slice in self.layout.slices(unit) {
                for shared in [slice.before, slice.after].into_iter().flatten() {
                    if shared.unit == unit || board.cache.is_absent(shared.unit) {
                        let page = shared.page..shared.page + 1;
                        self.drop_run(&self.run(slice.file, &page));
                    }
                }
                if !slice.own.is_empty() {
                    let run = self.run(slice.file, &slice.own);
                    let length = run.bytes.end - run.bytes.start;
                    free.entry(length).or_default().push((unit, run));
                }
            }
        }
        for &unit in &taken.missing {
            let slices = self.layout.slices(unit);
            let unread = UnreadExpert {
                matrices: slices.len(),
                failed: false,
            };
            board.unread.insert(unit, unread);
            for slice in slices {
                let recycled = self.recycled(board, &mut free, slice);
                if let Some(PageMove { unit, .. }) = &recycled {
                    *board.leaving.entry(*unit).or_default() += 1;
                }
                let (run, end) = (self.read_run(slice), slice.end);
                board.jobs.push(
                    ReadJob {
                        unit,
                        recycled,
                        run,
                        end,
                    },
                    urgent,
                );
            }
        }
        for (_, run) in free.into_values().flatten() {
            self.drop_run(&run);
        }
        if !taken.missing.is_empty() {
            self.work.notify_all();
        }
    }

    /// Pages of an expert that goes, for the slice's own.
    fn recycled(
        &self,
        board: &mut PagerState,
        free: &mut HashMap<u64, Vec<(ExpertIndex, FileRange)>>,
        slice: &ExpertSlice,
    ) -> Option<PageMove> {
        let place = (slice.file, slice.own.start);
        if !board.moved_to.contains(&place) {
            if board.moved_to.len() >= board.most_moved {
                return None;
            }
            board.moved_to.insert(place);
        }
        let to = self.run(slice.file, &slice.own);
        let (unit, from) = free.get_mut(&(to.bytes.end - to.bytes.start))?.pop()?;
        Some(PageMove { unit, from, to })
    }

    /// The bytes of these pages, which lie in one area.
    fn run(&self, file: usize, pages: &PageRange) -> FileRange {
        let bytes = self.layout.bytes_of(pages);
        let holds = |area: &MemoryArea| {
            area.file == file && area.bytes.start <= bytes.start && bytes.end <= area.bytes.end
        };
        // Without one, its reads fail and its pages are left alone.
        let area = self.areas.iter().position(holds).unwrap_or(0);
        FileRange { area, bytes }
    }

    /// All pages of a slice that memory is laid over.
    fn read_run(&self, slice: &ExpertSlice) -> FileRange {
        let inner = self.run(slice.file, &slice.own);
        let all = self.layout.bytes_of(&slice.pages);
        let area = &self.areas[inner.area].bytes;
        FileRange {
            bytes: all.start.max(area.start)..all.end.min(area.end),
            ..inner
        }
    }

    fn drop_run(&self, run: &FileRange) {
        self.areas[run.area].drop_pages(&run.bytes);
    }

    /// # Errors
    /// [`Code::Storage`] if a file is no longer what it was.
    pub(super) fn check_files(&self) -> Result<(), Error> {
        for file in &self.files {
            if FileIdentity::of(&file.source).ok().as_ref() != Some(&file.identity) {
                let path = file.path.display();
                let message = format!("{path} has changed while it was in use");
                return Err(Error::new(Code::Storage, message).hint("load the model again"));
            }
        }
        Ok(())
    }

    /// Reads what is always held, on several threads, and keeps it from the swap.
    pub(super) fn read_held(&self, threads: usize) -> Result<(), Error> {
        let page = self.layout.page;
        let mut pieces = Vec::new();
        for file in 0..self.layout.files() {
            for pages in self.layout.held(file) {
                let run = self.run(file, pages);
                self.areas[run.area].lock(&run.bytes);
                let step = PIECE / page * page;
                let mut start = run.bytes.start;
                while start < run.bytes.end {
                    let end = (start + step).min(run.bytes.end);
                    pieces.push(FileRange {
                        area: run.area,
                        bytes: start..end,
                    });
                    start = end;
                }
            }
        }
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while failed.lock().is_none()
                        && let Some(run) = pieces.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        if let Err(error) = self.read_range(run, run.bytes.start) {
                            *failed.lock() = Some(error);
                        }
                    }
                });
            }
        });
        failed.into_inner().map_or(Ok(()), Err)
    }

    /// Reads a run of which the file must reach `end` at least.
    fn read_range(&self, run: &FileRange, end: u64) -> Result<(), Error> {
        let area = &self.areas[run.area];
        let ModelFile { path, source, .. } = &self.files[area.file];
        let read = area
            .fill(source, &run.bytes)
            .map_err(|error| unreadable_error(path, &error))?;
        self.read_bytes.fetch_add(read, Ordering::Relaxed);
        if run.bytes.start + read < end.min(run.bytes.end) {
            let message = format!("{} ends before its last tensor", path.display());
            return Err(Error::new(Code::Storage, message)
                .hint("it was cut short while in use: download it again"));
        }
        Ok(())
    }

    /// Runs jobs until the pager is dropped.
    pub(super) fn work(&self) {
        let mut board = self.board.lock();
        loop {
            let Some(job) = board.jobs.pop() else {
                if board.closed {
                    return;
                }
                self.work.wait(&mut board);
                continue;
            };
            if board.closed {
                return;
            }
            let read = MutexGuard::unlocked(&mut board, || {
                if let Some(PageMove { from, to, .. }) = &job.recycled {
                    self.areas[from.area].move_pages(&from.bytes, &self.areas[to.area], &to.bytes);
                }
                self.read_range(&job.run, job.end)
            });
            board.end(&job, read);
            self.done.notify_all();
        }
    }
}
