//! `context_forms EXACT COMPACT`: how alike the numbers of a context's two files are, as JSON, beside those of `q4_0`.
//!
//! The cosine of all numbers of a kind, and of the layer where it is least. The first rows are left out: they are exact in the
//! compact form, and are so large in many models that the others would not count.

use serde_json::{Value, json};
use std::{
    env,
    error::Error,
    fs,
    io::Cursor,
    path::{Path, PathBuf},
};
use tierbar_contexts::{Kind, Rows, from_float, layout, state, to_float};

const LEFT_OUT: usize = 4;
/// Numbers in a block of `q4_0`.
const BLOCK: usize = 32;

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<_> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [exact, compact] = paths.as_slice() else {
        return Err("name the exact and the compact file of a context".into());
    };
    let read = |path: &Path| Ok::<_, Box<dyn Error>>(fs::read(state(path)?)?);
    let (exact, compact) = (read(exact)?, read(compact)?);
    let rows_of = |state: &[u8]| layout(&mut Cursor::new(state), state.len() as u64);
    let rows = rows_of(&exact)?;
    if rows_of(&compact)? != rows {
        return Err("these are two contexts".into());
    }
    let of = |kind| {
        let (mut by_compact, mut by_q4_0) = (Likeness::default(), Likeness::default());
        for rows in rows.iter().filter(|rows| rows.kind == kind) {
            let was = numbers(&exact, rows);
            by_compact.add(&was, &numbers(&compact, rows), rows);
            by_q4_0.add(&was, &q4_0(&was), rows);
        }
        json!({"compact": by_compact.json(), "q4_0": by_q4_0.json()})
    };
    let likeness = json!({"keys": of(Kind::Keys), "values": of(Kind::Values)});
    #[expect(clippy::print_stdout, reason = "its answer")]
    {
        println!("{likeness}");
    }
    Ok(())
}

fn numbers(state: &[u8], rows: &Rows) -> Vec<f32> {
    let start = rows.at as usize;
    let halves = &state[start..start + 2 * rows.width * rows.count];
    halves
        .as_chunks::<2>()
        .0
        .iter()
        .map(|half| to_float(u16::from_le_bytes(*half)))
        .collect()
}

/// As llama.cpp's reference has it: the number of the largest magnitude is -8 steps.
fn q4_0(numbers: &[f32]) -> Vec<f32> {
    let mut all = Vec::with_capacity(numbers.len());
    for block in numbers.chunks(BLOCK) {
        let most = block.iter().fold(0.0_f32, |most, number| {
            if number.abs() > most.abs() {
                *number
            } else {
                most
            }
        });
        let step = most / -8.0;
        let per_step = if step == 0.0 { 0.0 } else { 1.0 / step };
        let step = to_float(from_float(step));
        all.extend(block.iter().map(|number| {
            let code = (number * per_step + 8.5).floor().clamp(0.0, 15.0);
            (code - 8.0) * step
        }));
    }
    all
}

/// Sums of products, from which cosines are made.
#[derive(Default)]
struct Likeness {
    all: [f64; 3],
    worst: Option<f64>,
}

impl Likeness {
    fn add(&mut self, was: &[f32], is: &[f32], rows: &Rows) {
        let mut sums = [0.0; 3];
        let pairs = was.iter().zip(is).skip(LEFT_OUT * rows.width);
        for (was, is) in pairs {
            let (was, is) = (f64::from(*was), f64::from(*is));
            sums[0] += was * is;
            sums[1] += was * was;
            sums[2] += is * is;
        }
        for (all, sum) in self.all.iter_mut().zip(sums) {
            *all += sum;
        }
        let cosine = cosine(sums);
        self.worst = Some(self.worst.map_or(cosine, |worst| worst.min(cosine)));
    }

    fn json(&self) -> Value {
        json!({"cosine": cosine(self.all), "worst": self.worst})
    }
}

/// Of nothing, or of zeros alone, it is 1.
fn cosine([product, was, is]: [f64; 3]) -> f64 {
    if was == 0.0 && is == 0.0 {
        return 1.0;
    }
    product / (was * is).sqrt()
}
