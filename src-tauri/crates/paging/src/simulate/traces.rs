//! Choices of routers, for tests and for `examples/simulate_experts.rs`: recorded ones, and ones drawn by chance for routers of
//! which there is no record, the same in each run.

use super::Trace;

/// The experts of each layer, of which a token uses some.
#[derive(Clone, Copy)]
struct Shape {
    layers: u32,
    experts: u32,
    used: usize,
    tokens: u64,
}

/// Of a model whose choices are not published: which parts of a token's experts are found if parts of each layer's experts are
/// held, those that were used last.
struct Curve {
    model: &'static str,
    experts: u32,
    used: usize,
    /// With [`favorites`] spread by this, the same part is found with a quarter of the experts held.
    spread: f64,
    held: &'static [f64],
    found: &'static [f64],
}

const HELD: &[f64] = &[
    0.05, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3, 0.36, 0.45, 0.55, 0.64, 0.75, 0.9, 1.0,
];

/// `decode_hit_rate` in `boyle/data/curves.json` of the Python package `boyle` 0.2.1 (Beata Kouchnir, Apache-2.0).
const CURVES: [Curve; 5] = [
    Curve {
        model: "Qwen3-235B-A22B",
        experts: 128,
        used: 8,
        spread: 2.5,
        held: HELD,
        found: &[
            0.339, 0.4661, 0.5803, 0.6659, 0.7426, 0.8004, 0.8433, 0.886, 0.9329, 0.9607, 0.9731,
            0.9777, 0.9787, 0.9787,
        ],
    },
    Curve {
        model: "Qwen3.5-397B-A17B",
        experts: 512,
        used: 10,
        spread: 1.9,
        held: HELD,
        found: &[
            0.4148, 0.4999, 0.5816, 0.6505, 0.7029, 0.7554, 0.7953, 0.8281, 0.8607, 0.8817, 0.8915,
            0.8942, 0.8943, 0.8943,
        ],
    },
    Curve {
        model: "GLM-5.2",
        experts: 256,
        used: 8,
        spread: 1.7,
        held: HELD,
        found: &[
            0.3029, 0.4173, 0.5007, 0.5596, 0.6097, 0.6669, 0.7133, 0.7605, 0.8217, 0.8744, 0.9021,
            0.9182, 0.9238, 0.924,
        ],
    },
    Curve {
        model: "Gemma 4 26B-A4B",
        experts: 128,
        used: 8,
        spread: 2.3,
        held: &[0.125, 0.25, 0.5, 0.75, 1.0],
        found: &[0.532, 0.761, 0.882, 0.93, 1.0],
    },
    Curve {
        model: "Qwen3.8-Flash-Next",
        experts: 512,
        used: 10,
        spread: 2.5,
        held: HELD,
        found: &[
            0.5594, 0.6543, 0.7365, 0.797, 0.8376, 0.8742, 0.8988, 0.9182, 0.9351, 0.943, 0.9455,
            0.9465, 0.9466, 0.9466,
        ],
    },
];

/// The tokens of a prompt, and the choices for it and its answer, of 128 experts in each layer (`traces/README.md`).
const RECORDED: [(&str, u64, &str); 3] = [
    (
        "Qwen3-30B-A3B",
        28,
        include_str!("../../traces/qwen3-30b-a3b.trace"),
    ),
    (
        "Gemma 4 26B-A4B",
        29,
        include_str!("../../traces/gemma-4-26b-a4b.trace"),
    ),
    (
        "gpt-oss-120b",
        85,
        include_str!("../../traces/gpt-oss-120b.trace"),
    ),
];

/// Returns all, with their names. Of the recorded ones, the answer is counted.
pub(crate) fn all() -> Vec<(String, Trace)> {
    let mut all = Vec::new();
    for (name, prompt, text) in RECORDED {
        let mut trace = Trace::parse(text).expect("a record");
        let at_once = join_prompt(&trace, prompt);
        let changed = change_subject(&trace, 128);
        trace.counted_from = prompt;
        all.push((name.to_owned(), trace));
        all.push((format!("{name}, prompt at once"), at_once));
        all.push((format!("{name}, after a change of subject"), changed));
    }
    let ours = Shape {
        layers: 30,
        experts: 64,
        used: 4,
        tokens: 300,
    };
    // As with the routers of `tests/mixture`, 37 and 66 % of what is chosen are among a quarter of the experts, used last.
    for (name, spread) in [("flat router", 0.9), ("random router", 1.9)] {
        let trace = favorites(ours, spread);
        let changed = change_subject(&trace, ours.experts);
        all.push((name.to_owned(), trace));
        all.push((format!("{name}, after a change of subject"), changed));
    }
    for curve in &CURVES {
        let shape = Shape {
            layers: 3,
            experts: curve.experts,
            used: curve.used,
            tokens: 300,
        };
        let by_recency = repeats(shape, curve);
        all.push((format!("{}'s curve, by recency", curve.model), by_recency));
        let by_frequency = favorites(shape, curve.spread);
        all.push((
            format!("{}'s curve, by frequency", curve.model),
            by_frequency,
        ));
    }
    all
}

/// Returns a trace in which the tokens of the prompt are computed with at once, and are not counted.
fn join_prompt(trace: &Trace, prompt: u64) -> Trace {
    let (read, answer): (Vec<_>, Vec<_>) =
        trace.uses.iter().partition(|(token, _)| *token < prompt);
    let mut units: Vec<u32> = read
        .into_iter()
        .flat_map(|(_, units)| units)
        .copied()
        .collect();
    units.sort_unstable();
    units.dedup();
    let layers = units.chunk_by(|one, other| one / 128 == other / 128);
    let joined = layers.map(|units| (0, units.to_vec()));
    let answer = answer
        .into_iter()
        .map(|(token, units)| (token - prompt + 1, units.clone()));
    Trace {
        uses: joined.chain(answer).collect(),
        counted_from: 1,
    }
}

/// Returns a trace and the same with other experts in the place of each, as if an answer changed its subject. What comes after the
/// change is counted.
fn change_subject(trace: &Trace, experts: u32) -> Trace {
    let tokens = trace.uses.last().map_or(0, |(token, _)| token + 1);
    let other = |unit: &u32| unit / experts * experts + (unit % experts + 37) % experts;
    let others = trace.uses.iter().map(|(token, units)| {
        let units = units.iter().map(other).collect();
        (token + tokens, units)
    });
    Trace {
        uses: trace.uses.iter().cloned().chain(others).collect(),
        counted_from: tokens,
    }
}

/// A router that prefers some experts at all times, by logits of which their standard deviation is `spread`.
fn favorites(shape: Shape, spread: f64) -> Trace {
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let units = shape.layers * shape.experts;
    let logits: Vec<f64> = (0..units).map(|_| spread * chance.normal()).collect();
    draw(shape, |layer| {
        let units = layer * shape.experts..(layer + 1) * shape.experts;
        // The largest sums with a Gumbel variable each are a sample without replacement.
        let mut sums: Vec<(f64, u32)> = units
            .map(|unit| (logits[unit as usize] - (-chance.uniform().ln()).ln(), unit))
            .collect();
        sums.sort_by(|one, other| other.0.total_cmp(&one.0));
        sums.iter()
            .take(shape.used)
            .map(|&(_, unit)| unit)
            .collect()
    })
}

/// A router that has no favorites: how likely an expert is depends on how many others of its layer were used since. What is found
/// follows the curve.
fn repeats(shape: Shape, curve: &Curve) -> Trace {
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    // Of each layer, the last used ones last. Behind them, the others wait for their first use.
    let mut used = vec![Vec::new(); shape.layers as usize];
    let mut unused: Vec<Vec<u32>> = (0..shape.layers)
        .map(|layer| (layer * shape.experts..(layer + 1) * shape.experts).collect())
        .collect();
    draw(shape, |layer| {
        let (used, unused) = (&mut used[layer as usize], &mut unused[layer as usize]);
        let mut chosen: Vec<u32> = Vec::new();
        while chosen.len() < shape.used {
            let depth = curve.depth(chance.uniform());
            let place = depth.and_then(|depth| used.len().checked_sub(depth + 1));
            let unit = match (place, unused.pop()) {
                (None, Some(first)) => first,
                (place, first) => {
                    unused.extend(first);
                    let any = (chance.uniform() * used.len() as f64) as usize;
                    used[place.unwrap_or(any)]
                }
            };
            if !chosen.contains(&unit) {
                chosen.push(unit);
                used.retain(|&other| other != unit);
                used.push(unit);
            }
        }
        chosen
    })
}

fn draw(shape: Shape, mut choose: impl FnMut(u32) -> Vec<u32>) -> Trace {
    let of_token =
        (0..shape.tokens).flat_map(|token| (0..shape.layers).map(move |layer| (token, layer)));
    let uses = of_token
        .map(|(token, layer)| (token, choose(layer)))
        .collect();
    Trace {
        uses,
        counted_from: 0,
    }
}

impl Curve {
    /// How many other experts were used since one that is found by this part of all choices; `None` beyond all.
    fn depth(&self, part: f64) -> Option<usize> {
        let end = self.found.iter().position(|&found| part < found)?;
        let before = |of: &[f64]| end.checked_sub(1).map_or(0.0, |before| of[before]);
        let (held, found) = (before(self.held), before(self.found));
        let within = (part - found) / (self.found[end] - found);
        let depth = (held + within * (self.held[end] - held)) * f64::from(self.experts);
        Some(depth as usize)
    }
}

/// Numbers by chance (xorshift: Marsaglia, *Journal of Statistical Software* 8(14), 2003).
struct Chance(u64);

impl Chance {
    /// Above 0 and below 1.
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// By the transform of Box and Muller.
    fn normal(&mut self) -> f64 {
        let (one, other) = (self.uniform(), self.uniform());
        (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
    }
}
