//! What is in memory of the models that are larger than it, for `tierbar status`.

use tierbar_core::{
    budget::gib,
    paging::{DiskTraffic, TierPaging},
    units::file_size,
};

/// Describes a tier's experts, or the layers of a dense model, in one line.
pub(crate) fn describe(paging: &TierPaging) -> String {
    let (held, all) = paging.counts();
    let bytes = format!("{} of {}", gib(paging.held_bytes), gib(paging.all_bytes));
    let mut text = if paging.is_dense() {
        format!("{bytes} of layers in memory")
    } else {
        format!("{held} of {all} experts in memory, {bytes}")
    };
    if let Some(rate) = paging.hit_rate {
        text += &format!(", {} % found there", (rate * 100.0).floor());
    }
    text
}

/// What the disks do, as a line of the status.
pub(crate) fn describe_disk(disk: &DiskTraffic) -> String {
    let mut text = format!(
        "{}/s read, {}/s written",
        file_size(disk.read_bytes_per_second),
        file_size(disk.written_bytes_per_second)
    );
    if let Some(bytes) = disk.written_bytes_per_day {
        text += &format!(", {} written a day", file_size(bytes));
    }
    text
}

/// Draws the experts: a line for each layer, a character for each expert.
pub(crate) fn picture(paging: &TierPaging) -> Vec<String> {
    let shade = |letter| match letter {
        '.' => '·',
        '0'..='2' => '░',
        '3'..='5' => '▒',
        '6' | '7' => '▓',
        _ => '█',
    };
    let layers = paging.layers.iter();
    layers
        .map(|layer| layer.chars().map(shade).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::{ModelId, TierId, budget::Placement, paging::Residency};

    fn paging(placement: Placement, hits: u64) -> TierPaging {
        let found = Residency {
            layers: vec![".0347".to_owned(), "9....".to_owned()],
            held_bytes: 3 << 29,
            all_bytes: 3 << 30,
            hits,
            misses: 1,
            ..Residency::default()
        };
        let tier = TierId::new("heavy").unwrap();
        TierPaging::new(tier, ModelId("m".to_owned()), placement, found)
    }

    #[test]
    fn experts_are_counted_and_layers_are_weighed() {
        let mixture = paging(Placement::Cache, 13);
        assert_eq!(
            describe(&mixture),
            "5 of 10 experts in memory, 1.5 GiB of 3.0 GiB, 92 % found there"
        );
        let unused = TierPaging {
            hit_rate: None,
            ..paging(Placement::Stream, 0)
        };
        assert_eq!(describe(&unused), "1.5 GiB of 3.0 GiB of layers in memory");
    }

    #[test]
    fn a_picture_is_darker_where_experts_are_used_more() {
        assert_eq!(picture(&paging(Placement::Cache, 1)), ["·░▒▒▓", "█····"]);
    }

    #[test]
    fn a_days_writing_is_left_out_until_it_is_known() {
        let disk = DiskTraffic {
            read_bytes_per_second: 850_000_000,
            written_bytes_per_second: 2_000_000,
            written_bytes_per_day: None,
        };
        assert_eq!(describe_disk(&disk), "850 MB/s read, 2 MB/s written");
        let later = DiskTraffic {
            written_bytes_per_day: Some(14_000_000_000),
            ..disk
        };
        assert_eq!(
            describe_disk(&later),
            "850 MB/s read, 2 MB/s written, 14 GB written a day"
        );
    }
}
