//! What is said of pages that are pictures without text.

/// Says which pages were not read; `None` if there are none. `of`: the pages of the document.
pub fn pictured_pages_notice(pages: &[u32], of: u32) -> Option<String> {
    let its = if pages.len() == 1 { "its" } else { "their" };
    let notice = notice(
        pages,
        of,
        "is a picture without text and is not read",
        "are pictures without text and are not read",
    );
    Some(notice? + &format!(" Have {its} text recognized, and save the PDF again."))
}

/// Says which pages are damaged; `None` if there are none.
pub fn damaged_pages_notice(pages: &[u32], of: u32) -> Option<String> {
    notice(
        pages,
        of,
        "is damaged and is not read",
        "are damaged and are not read",
    )
}

/// Says which pages a model has read; `None` if there are none.
pub fn read_by(model: &str, pages: &[u32], of: u32) -> Option<String> {
    let written = format!("whose text {model} has written down, which may be wrong");
    notice(
        pages,
        of,
        &format!("is a picture {written}"),
        &format!("are pictures {written}"),
    )
}

/// Says what one page is, or several are; `None` if there are none.
fn notice(pages: &[u32], of: u32, is: &str, are: &str) -> Option<String> {
    let shown = page_ranges(pages);
    match pages.len() {
        0 => None,
        1 => Some(format!("1 of {of} pages {is}: page {shown}.")),
        count => Some(format!("{count} of {of} pages {are}: pages {shown}.")),
    }
}

/// Ascending pages as `2, 5–7`, up to a readable length.
fn page_ranges(pages: &[u32]) -> String {
    const MOST: usize = 8;
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &page in pages {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == page => *last = page,
            _ => ranges.push((page, page)),
        }
    }
    let shown = ranges.iter().take(MOST).map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}–{last}")
        }
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    match ranges.len() > MOST {
        true => shown + " and others",
        false => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_told_as_ranges() {
        assert_eq!(page_ranges(&[2, 5, 6, 7, 9]), "2, 5–7, 9");
        let every_other: Vec<u32> = (1..=9).map(|page| 2 * page).collect();
        assert_eq!(
            page_ranges(&every_other),
            "2, 4, 6, 8, 10, 12, 14, 16 and others"
        );
        assert_eq!(pictured_pages_notice(&[], 3), None);
        assert!(
            pictured_pages_notice(&[2], 3)
                .unwrap()
                .starts_with("1 of 3 pages is a picture")
        );
        assert!(
            read_by("gemma", &[1, 2], 3)
                .unwrap()
                .ends_with("pages 1–2.")
        );
    }
}
