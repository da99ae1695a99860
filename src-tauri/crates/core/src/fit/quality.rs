//! What a quant costs in quality, by published measurements.
//!
//! Source: llama.cpp's scoreboard of Llama 3 8B over Wikitext-2, each quant against FP16 (<https://github.com/ggml-org/llama.cpp>,
//! `tools/perplexity/README.md`, "LLaMA 3 8b Scoreboard", revision f364eb6f). Where it has a quant with and without an importance
//! matrix, the figures are those with one, as most files on the hub are made today. Other models lose more or less: the figures
//! rank quants, they do not predict a model's answers.

use serde::{Deserialize, Serialize};

/// Where the figures are from.
pub const QUALITY_SOURCE: &str =
    "https://github.com/ggml-org/llama.cpp/blob/master/tools/perplexity/README.md";

/// The perplexity of FP16 in the same table.
const FP16_PERPLEXITY: f64 = 6.231_636;

/// A published measurement of a quant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantQuality {
    /// The measured quant. For a mix that is not in the table, such as `UD-Q4_K_XL`, the quant that it is made of.
    pub measured: &'static str,
    /// The mean Kullback-Leibler divergence of the next token's distribution from FP16's, in nats per token. 0 is no loss.
    pub kl_divergence: f64,
    /// By how much perplexity is higher than FP16's: 0.024 is 2.4 %.
    pub perplexity_increase: f64,
}

/// How much worse than the model in 16 bits a quant answers, in a word for people: by the increase of perplexity that was measured
/// for the quant. The limits are ours.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum QuantLoss {
    /// 16 bits or more.
    None,
    /// Less than 1 %, such as `Q5_K_M`.
    Negligible,
    /// Less than 5 %, such as `Q4_K_M`.
    Slight,
    /// Less than 20 %, such as `Q3_K_M`.
    Noticeable,
    /// 20 % and more, such as `IQ2_M`.
    Heavy,
}

impl QuantLoss {
    /// Of a quant, as files name it; `None` if [`quality`] does not know it.
    pub fn of(quant: &str) -> Option<Self> {
        let quality = quality(quant)?;
        Some(match quality.perplexity_increase {
            _ if quality.measured == "F16" => Self::None,
            ..0.01 => Self::Negligible,
            ..0.05 => Self::Slight,
            ..0.2 => Self::Noticeable,
            _ => Self::Heavy,
        })
    }

    /// Returns the words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::None => "the original",
            Self::Negligible => "nearly the original",
            Self::Slight => "slight loss",
            Self::Noticeable => "noticeable loss",
            Self::Heavy => "heavy loss",
        }
    }
}

/// The quant, its mean KL divergence, and the increase of its perplexity.
const MEASURED: [(&str, f64, f64); 26] = [
    // Not zero, since the stored distributions are rounded to 16 bits.
    ("F16", 0.000_551, 0.001_524),
    ("Q8_0", 0.001_355, 0.002_650),
    ("Q6_K", 0.005_452, 0.021_748),
    ("Q5_K_M", 0.010_762, 0.056_974),
    ("Q5_K_S", 0.016_595, 0.104_964),
    ("Q5_1", 0.018_045, 0.106_223),
    ("Q5_0", 0.022_239, 0.131_591),
    ("Q4_K_M", 0.028_152, 0.151_303),
    ("Q4_K_S", 0.031_951, 0.178_064),
    ("IQ4_NL", 0.035_742, 0.223_959),
    ("IQ4_XS", 0.036_334, 0.228_071),
    ("Q4_1", 0.071_683, 0.451_103),
    ("Q4_0", 0.071_940, 0.468_514),
    ("Q3_K_L", 0.073_077, 0.439_590),
    ("Q3_K_M", 0.084_358, 0.502_622),
    ("IQ3_M", 0.102_534, 0.666_694),
    ("IQ3_S", 0.111_278, 0.733_867),
    ("IQ3_XS", 0.138_693, 0.931_409),
    ("IQ3_XXS", 0.183_625, 1.226_803),
    ("Q3_K_S", 0.199_821, 1.371_244),
    ("IQ2_M", 0.325_989, 2.369_166),
    ("Q2_K", 0.332_223, 2.416_191),
    ("Q2_K_S", 0.403_360, 3.092_145),
    ("IQ2_S", 0.439_197, 3.419_148),
    ("IQ2_XS", 0.546_290, 4.529_791),
    ("IQ2_XXS", 0.812_022, 7.860_148),
];

/// Returns the measurement of a quant, given as files are named, in any case. `None` for one that is not in the published
/// table, and for those of fewer than two bits, whose answers are of no use.
///
/// Mixes with larger or more carefully chosen parts, `UD-` and `_XL` or `_L`, count as the quant that they are made of.
pub fn quality(quant: &str) -> Option<QuantQuality> {
    let name = quant.to_ascii_uppercase();
    let name = name.strip_prefix("UD-").unwrap_or(&name);
    let measured = match name {
        "BF16" | "FP16" | "F32" | "FP32" => "F16",
        "Q8_K_XL" | "Q8_K_L" => "Q8_0",
        "Q6_K_XL" | "Q6_K_L" => "Q6_K",
        "Q5_K_XL" | "Q5_K_L" | "Q5_K" => "Q5_K_M",
        "Q4_K_XL" | "Q4_K_L" | "Q4_K" => "Q4_K_M",
        "Q3_K_XL" => "Q3_K_L",
        "Q3_K" => "Q3_K_M",
        "Q2_K_XL" | "Q2_K_L" => "Q2_K",
        "IQ4_NL_XL" => "IQ4_NL",
        other => other,
    };
    let (measured, kl_divergence, increase) = MEASURED
        .into_iter()
        .find(|(known, ..)| *known == measured)?;
    Some(QuantQuality {
        measured,
        kl_divergence,
        perplexity_increase: increase / FP16_PERPLEXITY,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quants_are_found_as_files_name_them() {
        for (quant, measured) in [
            ("Q4_K_M", "Q4_K_M"),
            ("q4_k_m", "Q4_K_M"),
            ("UD-Q4_K_XL", "Q4_K_M"),
            ("UD-Q4_K_M", "Q4_K_M"),
            ("IQ4_XS", "IQ4_XS"),
            ("UD-IQ4_XS", "IQ4_XS"),
            ("UD-IQ2_M", "IQ2_M"),
            ("UD-IQ3_XXS", "IQ3_XXS"),
            ("UD-Q2_K_XL", "Q2_K"),
            ("Q3_K_L", "Q3_K_L"),
            ("UD-Q3_K_XL", "Q3_K_L"),
            ("Q6_K_L", "Q6_K"),
            ("Q8_0", "Q8_0"),
            ("UD-Q8_K_XL", "Q8_0"),
            ("BF16", "F16"),
        ] {
            let found = quality(quant).map(|quality| quality.measured);
            assert_eq!(found, Some(measured), "{quant}");
        }
        for unknown in ["", "UD-", "MXFP4_MOE", "TQ1_0", "IQ1_M", "Q9_0", "model"] {
            assert_eq!(quality(unknown), None, "{unknown:?}");
        }
    }

    #[test]
    fn more_bits_of_one_kind_lose_less() {
        for kind in [
            ["Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "F16"].as_slice(),
            &[
                "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "IQ3_XXS", "IQ3_XS", "IQ3_S", "IQ3_M",
                "IQ4_XS",
            ],
        ] {
            for pair in kind.windows(2) {
                let [fewer, more] = [pair[0], pair[1]].map(|quant| quality(quant).unwrap());
                assert!(more.kl_divergence < fewer.kl_divergence, "{pair:?}");
                assert!(
                    more.perplexity_increase < fewer.perplexity_increase,
                    "{pair:?}"
                );
            }
        }
    }

    #[test]
    fn an_increase_is_a_part_of_fp16s_perplexity() {
        let Some(QuantQuality {
            perplexity_increase,
            ..
        }) = quality("Q4_K_M")
        else {
            panic!("Q4_K_M is measured");
        };
        // 6.382937 against 6.231636.
        assert!((perplexity_increase - 0.0243).abs() < 0.0001);
    }

    #[test]
    fn the_loss_of_each_quant_is_named() {
        for (quant, loss) in [
            ("BF16", Some(QuantLoss::None)),
            ("UD-Q8_K_XL", Some(QuantLoss::Negligible)),
            ("Q6_K", Some(QuantLoss::Negligible)),
            ("Q5_K_M", Some(QuantLoss::Negligible)),
            ("UD-Q4_K_XL", Some(QuantLoss::Slight)),
            ("IQ4_XS", Some(QuantLoss::Slight)),
            ("Q4_0", Some(QuantLoss::Noticeable)),
            ("UD-Q3_K_XL", Some(QuantLoss::Noticeable)),
            ("UD-IQ3_XXS", Some(QuantLoss::Noticeable)),
            ("UD-Q2_K_XL", Some(QuantLoss::Heavy)),
            ("UD-IQ2_M", Some(QuantLoss::Heavy)),
            ("MXFP4", None),
        ] {
            assert_eq!(QuantLoss::of(quant), loss, "{quant}");
        }
    }
}
