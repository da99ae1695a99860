//! What is in memory of a model at one moment, and how likely each part of it is to be used next.

use crate::layout::{ExpertIndex, Layout};

/// The digit of an expert of which that is unknown.
pub(crate) const UNKNOWN: u8 = 5;

/// The experts of a model, layer by layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResidencyPicture {
    /// A line for each layer, with a character for each of its experts: `.` if it is not in memory, otherwise a digit from
    /// `0`, not used lately, to `9`, used by nearly every token.
    pub layers: Vec<String>,
    /// Bytes of the experts in memory, and of all.
    pub held_bytes: u64,
    pub all_bytes: u64,
}

impl ResidencyPicture {
    /// `heat` returns the digit of an expert; `None` if it is not in memory.
    pub(crate) fn new(layout: &Layout, heat: impl Fn(ExpertIndex) -> Option<u8>) -> Self {
        let mut held = 0;
        let layers = layout
            .layers()
            .map(|units| {
                let letters = units.map(|unit| {
                    let digit = heat(unit).and_then(|heat| char::from_digit(heat.into(), 10))?;
                    held += layout.pages[unit as usize];
                    Some(digit)
                });
                letters.map(|digit| digit.unwrap_or('.')).collect()
            })
            .collect();
        Self {
            layers,
            held_bytes: held * layout.page,
            all_bytes: layout.expert_bytes(),
        }
    }
}

/// Returns the digit of how likely the next token is to use an expert: 9 for a half and more, and one less for each halving.
pub(crate) fn heat(likelihood: f32) -> u8 {
    let halvings = (1..=9).take_while(|&halvings| likelihood < 0.5f32.powi(halvings));
    9 - halvings.count() as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Tensor, TensorKind};

    #[test]
    fn experts_are_the_hotter_the_likelier_they_are() {
        let heats = [1.0, 0.5, 0.49, 0.25, 0.01, 0.002, 0.001, 0.0].map(heat);
        assert_eq!(heats, [9, 9, 8, 8, 3, 1, 0, 0]);
    }

    #[test]
    fn a_picture_has_a_line_for_each_layer_and_counts_bytes() {
        let page = 4096;
        let tensor = |layer, experts: u32, offset| Tensor {
            file: 0,
            offset,
            bytes: u64::from(experts) * 2 * page,
            kind: TensorKind::Experts { layer, experts },
        };
        // The first layer is dense, and so has no line.
        let tensors = [tensor(1, 3, 0), tensor(2, 2, 6 * page)];
        let layout = Layout::new(&tensors, page).unwrap();
        let heat = |unit| [Some(0), None, Some(9), None, Some(UNKNOWN)][unit as usize];
        assert_eq!(
            ResidencyPicture::new(&layout, heat),
            ResidencyPicture {
                layers: vec!["0.9".to_owned(), ".5".to_owned()],
                held_bytes: 6 * page,
                all_bytes: 10 * page,
            }
        );
    }
}
