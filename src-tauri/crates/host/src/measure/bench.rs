//! Measures prefill and decode of a loaded tier, at several depths of its context.

use super::{
    BENCH, ProgressSender, check_not_stopped, check_pressure, last, paging,
    worker::{RequestTiming, Worker},
};
use crate::{live_config::LiveConfig, measured::now};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tierbar_core::{Code, Error, ModelId, TierId, TierState, lease::Tiers, status::Pressure};
use tierbar_fetch::blocking;
use tierbar_measure::bench::{BenchMemory, BenchReport, BenchRequest, BenchRow, Figure, Settings};
use tokio::{task::spawn_blocking, time::sleep};

/// Plain prose; its tokens are repeated to the length of a prompt.
const TEXT: &str = "The harbour lay quiet under a low sky, and the last boats of the day came in one by one with their lamps \
lit. An old man mended a net on the stone steps while two children counted the gulls that stood along the wall. Further up, \
behind the warehouses, a baker carried trays of bread into the cold air, and the smell of it drifted down to the water. \
There was no hurry. A dog crossed the square, stopped to look at the sea, and went on its way towards the mill, where a wheel \
turned slowly in the brown stream and a clock that was never right struck seven.";

/// How often a disturbed run is repeated, for each run that counts.
const TRIES: u32 = 3;
/// How long to wait for other answers to end, and how often to check.
const QUIET: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(50);

/// Measures the tier with its configured settings. The tier is leased meanwhile, and so not unloaded; other requests are
/// answered as usual, and runs beside them are repeated.
pub(super) async fn bench(
    host: Arc<LiveConfig>,
    tier: TierId,
    request: BenchRequest,
    progress: ProgressSender,
) -> Result<BenchReport, Error> {
    let settings = configured_settings(&host, &tier).await?;
    if request.paging {
        return paging::bench(host, tier, request, settings, progress).await;
    }
    let steps = request.depths.len() * steps(&request);
    progress.progress(0, steps, "loading");
    let mut report = blank_report(&host, tier.clone(), &request, settings);
    let (mut meter, load_ms) = Meter::lease(&host, &tier, &request).await?;
    report.load_ms = load_ms;
    for (at, &depth) in request.depths.iter().enumerate() {
        let row = match request.beyond(depth, meter.context_tokens) {
            Some(why) => BenchRow::skipped(depth, why),
            None => {
                let done = at * self::steps(&request);
                let report = |step, doing: &str| {
                    progress.progress(done + step, steps, format!("depth {depth}: {doing}"));
                };
                match meter.at(depth, report).await? {
                    Ok(runs) => row(depth, &runs),
                    Err(why) => BenchRow::skipped(depth, why),
                }
            }
        };
        progress.row(&row);
        report.rows.push(row);
    }
    progress.progress(steps, steps, "done");
    meter.complete(&mut report).await?;
    if let Some(last) = last_like(&host, &report).await {
        report.paging = last.paging;
    }
    Ok(report)
}

/// A report without figures, of the tier as it is shown.
pub(super) fn blank_report(
    host: &LiveConfig,
    tier: TierId,
    request: &BenchRequest,
    settings: Settings,
) -> BenchReport {
    let tiers = host.supervisor.snapshot();
    let status = tiers.iter().find(|status| status.id == tier);
    let model = status.and_then(|status| status.model.clone());
    BenchReport {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        taken_at: now(),
        tier,
        model: model.unwrap_or_else(|| ModelId(String::new())),
        context_tokens: status.map_or(0, |status| status.context_tokens),
        settings,
        threads_used: 0,
        prompt_tokens: request.prompt_tokens,
        answer_tokens: request.answer_tokens,
        runs: request.runs,
        rows: Vec::new(),
        paging: Vec::new(),
        load_ms: None,
        memory: BenchMemory::default(),
        disturbed: 0,
    }
}

/// The last report, if it is of the same model and of measurements as these, so that what it has besides stays true.
pub(super) async fn last_like(host: &LiveConfig, report: &BenchReport) -> Option<BenchReport> {
    let last: BenchReport = last(host, BENCH, &report.tier).await?;
    let measured =
        |report: &BenchReport| (report.prompt_tokens, report.answer_tokens, report.settings);
    (last.model == report.model && measured(&last) == measured(report)).then_some(last)
}

pub(super) async fn configured_settings(
    host: &LiveConfig,
    tier: &TierId,
) -> Result<Settings, Error> {
    let config = host.models.config();
    let tier_config = config.tiers.get(tier).ok_or_else(|| {
        let gone = format!("{tier} was removed from the configuration");
        Error::new(Code::TierUnknown, gone)
    })?;
    let (models, tier_config) = (Arc::clone(&host.models), tier_config.clone());
    let tier = tier.clone();
    blocking("reading the model", move || {
        // Checked first, so that nothing is loaded in vain, and no other tier unloaded for it.
        models.check_measured(&tier, &tier_config)?;
        Ok(Settings::for_tier(&models.settled(&tier_config)))
    })
    .await
}

/// Leases the tier; returns how long its worker took to load, if it was loaded for this.
pub(super) async fn lease(
    host: &LiveConfig,
    tier: &TierId,
) -> Result<(Worker, Option<f64>), Error> {
    let mut states = host.supervisor.watch();
    let leasing = host.supervisor.lease(tier);
    tokio::pin!(leasing);
    let mut begun = None;
    loop {
        let starting = states
            .borrow_and_update()
            .iter()
            .any(|status| status.id == *tier && status.state == TierState::Starting);
        if starting {
            begun.get_or_insert_with(Instant::now);
        }
        tokio::select! {
            biased;
            lease = &mut leasing => {
                let load_ms = begun.map(|begun| begun.elapsed().as_secs_f64() * 1e3);
                return Ok((Worker::new(lease?)?, load_ms));
            }
            // If the owner has ended, the lease reports it.
            Ok(()) = states.changed() => {}
        }
    }
}

/// Returns the number of requests per depth.
pub(super) fn steps(request: &BenchRequest) -> usize {
    2 + 2 * request.runs as usize
}

/// The runs of one depth; no list is empty.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) prefill: Vec<RequestTiming>,
    pub(super) decode: Vec<RequestTiming>,
}

/// Returns the prefill in tokens per second.
pub(super) fn prefill_rate(run: &RequestTiming) -> f64 {
    f64::from(run.prompt_n) * 1e3 / run.prompt_ms
}

/// Returns the decode in tokens per second, without the first token, which comes with the prompt.
pub(super) fn decode_rate(run: &RequestTiming) -> f64 {
    f64::from(run.predicted_n.saturating_sub(1)) * 1e3 / run.predicted_ms
}

fn row(depth: u32, runs: &Runs) -> BenchRow {
    BenchRow {
        depth,
        prefill: Figure::from_runs(runs.prefill.iter().map(prefill_rate).collect()),
        decode: Figure::from_runs(runs.decode.iter().map(decode_rate).collect()),
        first_token_ms: Figure::from_runs(runs.prefill.iter().map(|run| run.wall_ms).collect()),
        skipped: None,
    }
}

/// Runs measurements on one worker.
pub(super) struct Meter<'a> {
    host: &'a LiveConfig,
    tier: &'a TierId,
    worker: Worker,
    requested: &'a BenchRequest,
    pub(super) context_tokens: u32,
    pub(super) threads: u16,
    pub(super) disturbed: u32,
    tokens: Vec<i32>,
    /// First tokens, each used once, for prompts that are not in the cache.
    beginnings: Vec<i32>,
    prompts: usize,
}

impl<'a> Meter<'a> {
    /// Leases the tier as [`lease`] does.
    pub(super) async fn lease(
        host: &'a LiveConfig,
        tier: &'a TierId,
        requested: &'a BenchRequest,
    ) -> Result<(Self, Option<f64>), Error> {
        let (worker, load_ms) = lease(host, tier).await?;
        let props = worker.props().await?;
        let tokens = worker.tokenize(TEXT).await?;
        let mut beginnings = tokens.clone();
        beginnings.sort_unstable();
        beginnings.dedup();
        if tokens.is_empty() {
            let message = "the model has no tokens for plain text";
            return Err(Error::new(Code::ModelUnsupported, message));
        }
        let meter = Self {
            host,
            tier,
            worker,
            requested,
            context_tokens: props.context_tokens(),
            threads: props.threads,
            disturbed: 0,
            tokens,
            beginnings,
            prompts: 0,
        };
        Ok((meter, load_ms))
    }

    pub(super) fn model(&self) -> ModelId {
        self.worker.lease.model().clone()
    }

    pub(super) async fn memory(&self) -> Result<BenchMemory, Error> {
        let props = self.worker.props().await?;
        let mut tiers = self.host.supervisor.snapshot().into_iter();
        let pid = tiers.find_map(|status| status.pid.filter(|_| status.id == *self.tier));
        let footprint = spawn_blocking(move || pid.and_then(tierbar_telemetry::footprint)).await;
        Ok(BenchMemory::new(props.memory, footprint.ok().flatten()))
    }

    /// Adds to a report what is known after its runs.
    pub(super) async fn complete(&self, report: &mut BenchReport) -> Result<(), Error> {
        report.taken_at = now();
        report.model = self.model();
        report.context_tokens = self.context_tokens;
        report.threads_used = self.threads;
        report.disturbed += self.disturbed;
        report.memory = self.memory().await?;
        Ok(())
    }

    /// Returns the runs at one depth, or why there are none. `report` is called for each request.
    pub(super) async fn at(
        &mut self,
        depth: u32,
        report: impl Fn(usize, &str),
    ) -> Result<Result<Runs, String>, Error> {
        let (read, written) = (self.requested.prompt_tokens, self.requested.answer_tokens);
        report(0, "filling the context");
        self.request(depth, 1, 1).await?;
        report(1, "warming up");
        self.request(depth, read, 1).await?;
        let mut runs = Runs::default();
        for run in 0..self.requested.runs as usize {
            report(2 + run * 2, &format!("measuring prefill of {read} tokens"));
            match self.counted(depth, read, 1).await? {
                Ok(timed) => runs.prefill.push(timed),
                Err(why) => return Ok(Err(why)),
            }
            report(
                3 + run * 2,
                &format!("measuring decode of {written} tokens"),
            );
            match self.counted(depth, 1, written).await? {
                Ok(timed) => runs.decode.push(timed),
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(Ok(runs))
    }

    /// Runs a request at its depth without other work beside it, or returns why there was none.
    async fn counted(
        &mut self,
        depth: u32,
        read: u32,
        written: u32,
    ) -> Result<Result<RequestTiming, String>, Error> {
        let mut shallow = None;
        for _ in 0..TRIES {
            match self.alone(depth, read, written).await? {
                None => self.disturbed += 1,
                Some(timed) if timed.cached == depth => return Ok(Ok(timed)),
                Some(timed) => shallow = Some(timed.cached),
            }
            // The cached depth may be gone.
            if depth > 0 {
                self.request(depth, 1, 1).await?;
            }
        }
        Ok(Err(match shallow {
            Some(cached) => {
                format!("the model can reuse only {cached} of {depth} tokens of context")
            }
            None => "the tier was busy with other answers".to_owned(),
        }))
    }

    /// Runs a request; returns nothing if other work disturbed it.
    async fn alone(
        &mut self,
        depth: u32,
        read: u32,
        written: u32,
    ) -> Result<Option<RequestTiming>, Error> {
        let before = self.quiet().await?;
        let timed = self.request(depth, read, written).await?;
        let after = self.worker.props().await?.generations;
        let alone = after.running == 0 && after.ended() == before + 1;
        Ok(alone.then_some(timed))
    }

    /// Waits until no generation runs; returns how many have ended.
    async fn quiet(&self) -> Result<u64, Error> {
        let begun = Instant::now();
        loop {
            check_pressure(self.host, Pressure::Critical)?;
            check_not_stopped(self.host, self.tier)?;
            let generations = self.worker.props().await?.generations;
            if generations.running == 0 || begun.elapsed() > QUIET {
                return Ok(generations.ended());
            }
            sleep(LOOK).await;
        }
    }

    /// Sends a prompt of `depth` cached and `read` new tokens, for an answer of `written` tokens.
    async fn request(
        &mut self,
        depth: u32,
        read: u32,
        written: u32,
    ) -> Result<RequestTiming, Error> {
        let (depth, read) = (depth as usize, read as usize);
        let prompt = prompt(&self.tokens, &self.beginnings, self.prompts, depth, read);
        self.prompts += 1;
        self.worker.complete(&prompt, written, depth > 0).await
    }
}

/// Returns a prompt of the same `depth` tokens each time, and `read` others whose first token differs in each prompt.
fn prompt(
    tokens: &[i32],
    beginnings: &[i32],
    number: usize,
    depth: usize,
    read: usize,
) -> Vec<i32> {
    let kept = tokens.iter().cycle().take(depth).copied();
    // A prompt that continued like the cached tokens or the previous prompt would be found in the cache.
    let next = tokens[depth % tokens.len()];
    let others: Vec<_> = beginnings.iter().filter(|first| **first != next).collect();
    let first = others
        .get(number % others.len().max(1))
        .map_or(next, |first| **first);
    let rest = tokens.iter().cycle().skip(number % tokens.len()).copied();
    kept.chain([first]).chain(rest).take(depth + read).collect()
}

#[cfg(test)]
mod tests {
    use super::prompt;

    #[test]
    fn prompts_share_exactly_their_depth() {
        let tokens = [1, 5, 6, 7, 5, 8, 9];
        let beginnings = [1, 5, 6, 7, 8, 9];
        for depth in [0, 1, 6, 7, 30] {
            let made: Vec<_> = (0..5)
                .map(|number| prompt(&tokens, &beginnings, number, depth, 4))
                .collect();
            let next = tokens[depth % tokens.len()];
            for (at, one) in made.iter().enumerate() {
                assert_eq!(one.len(), depth + 4);
                assert_eq!(one[..depth], made[0][..depth]);
                assert_ne!(one[depth], next);
                for other in &made[..at] {
                    assert_ne!(one[depth], other[depth], "depth {depth}");
                }
            }
        }
    }
}
