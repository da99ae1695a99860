use super::*;
use proptest::prelude::*;

const SOURCE: &str = "On 22 November 2026 Ada Lovelace paid Acme €1,200.50 for 12 servers in Paris at 14:30. \
    She will come back to Paris in May.";

#[test]
fn kept_facts_are_listed_in_the_sources_words() {
    let kept = compare(
        SOURCE,
        "Lovelace (Ada) paid Acme 1200.5 EUR for twelve servers on 2026-11-22.",
    );
    assert!(kept.names_checked);
    assert_eq!(
        kept.kept,
        ["22 November 2026", "1,200.50", "12", "Ada Lovelace", "Acme"]
    );
    assert_eq!(kept.missing, ["14:30", "Paris", "May"]);
}

#[test]
fn an_empty_result_keeps_nothing_and_a_copy_everything() {
    let none = compare(SOURCE, "");
    assert_eq!((none.kept.len(), none.missing.len()), (0, 8));
    let all = compare(SOURCE, SOURCE);
    assert_eq!((all.kept.len(), all.missing.len()), (8, 0));
}

#[test]
fn a_number_within_a_date_is_not_counted_again() {
    let kept = compare("due 2026-11-22", "due in 2026, the 22nd");
    assert_eq!(kept.missing, ["2026-11-22"]);
    assert!(kept.kept.is_empty());
}

#[test]
fn a_table_of_figures_is_compared_up_to_a_limit() {
    let table: String = (1000..3000).map(|number| format!("{number} ")).collect();
    assert_eq!(compare(&table, "").missing.len(), MOST);
}

#[test]
fn a_large_table_of_dates_is_bounded() {
    const DAYS: usize = 300 * 12 * 28;
    let date = |day: usize| {
        let (year, month, day) = (day / 336 + 1000, day / 28 % 12 + 1, day % 28 + 1);
        format!("{year}-{month:02}-{day:02}; ")
    };
    let table: String = (0..DAYS).map(date).collect();
    assert!(table.len() > 1 << 20);
    let kept = compare(&table, &table[..12 * 100]);
    assert_eq!((kept.kept.len(), kept.missing.len()), (100, MOST - 100));
    // The numbers of all dates are theirs, also of those that are not compared.
    assert!(kept.missing.iter().all(|fact| fact.len() == 10));
}

#[test]
fn dates_numbers_and_names_share_the_limit() {
    let figures: String = (1000..3000).map(|number| format!("{number} ")).collect();
    let text = format!("It was 2026-11-22, told Ada: {figures}");
    let kept = compare(&text, "Ada, on 2026-11-22");
    assert_eq!((kept.kept.len(), kept.missing.len()), (1, MOST - 1));
    assert_eq!(kept.kept[0], "2026-11-22");
}

proptest! {
    #[test]
    fn any_text_keeps_itself_and_nothing_panics(text in "\\PC{0,120}", other in "\\PC{0,40}") {
        prop_assert!(compare(&text, &text).missing.is_empty());
        let _ = compare(&text, &other);
    }

    #[test]
    fn texts_of_figures_and_names_keep_themselves(text in "([0-9]{1,4}|[.,:/ -]|Nov|May|Dr|Ada|é| ){0,60}") {
        prop_assert!(compare(&text, &text).missing.is_empty());
    }
}

#[test]
fn only_the_begin_of_a_long_source_is_compared() {
    let source = format!("The price is 41. {} And 42.", "é ".repeat(COMPARED / 3));
    assert_eq!(compare(&source, "Nothing.").missing, ["41"]);
}
