use super::*;
use proptest::prelude::*;

const SOURCE: &str = "On 22 November 2026 Ada Lovelace paid Acme €1,200.50 for 12 servers in Paris at 14:30. \
    She will come back to Paris in May.";

#[test]
fn what_a_result_keeps_is_told_in_the_sources_words() {
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
fn an_empty_result_keeps_nothing_and_the_source_itself_everything() {
    let none = compare(SOURCE, "");
    assert_eq!((none.kept.len(), none.missing.len()), (0, 8));
    let all = compare(SOURCE, SOURCE);
    assert_eq!((all.kept.len(), all.missing.len()), (8, 0));
}

#[test]
fn a_number_of_a_date_is_no_number_besides() {
    let kept = compare("due 2026-11-22", "due in 2026, the 22nd");
    assert_eq!(kept.missing, ["2026-11-22"]);
    assert!(kept.kept.is_empty());
}

#[test]
fn a_table_of_figures_is_compared_up_to_a_bound() {
    let table: String = (1000..3000).map(|number| format!("{number} ")).collect();
    assert_eq!(compare(&table, "").missing.len(), MOST);
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
