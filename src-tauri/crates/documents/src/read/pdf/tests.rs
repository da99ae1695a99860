//! What PDFs hold besides plain paragraphs. Those of `tests/fixtures` are made by its `make.py`.

use crate::read::tests::{all, pages, pdf, stream, texts, zlib};
use std::fmt::Write as _;

/// A PDF with one page that draws this content, with objects from number 5 on and `/F` as the first of them.
fn page(content: &str, more: &str, objects: &[Vec<u8>]) -> Vec<u8> {
    let mut all = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
        format!("<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> {more} >>").into_bytes(),
        stream("/Filter /FlateDecode", &zlib(content.as_bytes())),
    ];
    all.extend_from_slice(objects);
    pdf(&all, "")
}

const HELVETICA: &[u8] =
    b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";

fn with_helvetica(content: &str, more: &str, objects: &[Vec<u8>]) -> Vec<u8> {
    page(content, more, &[&[HELVETICA.to_vec()], objects].concat())
}

/// A font of codes of several bytes.
fn composite(encoding: &str, ordering: &str) -> Vec<Vec<u8>> {
    vec![
        format!("<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding {encoding} /DescendantFonts [6 0 R] >>").into_bytes(),
        format!("<< /Type /Font /Subtype /CIDFontType0 /BaseFont /X /DW 1000 /CIDSystemInfo << /Registry (Adobe) /Ordering ({ordering}) /Supplement 2 >> >>").into_bytes(),
    ]
}

fn show(hexadecimal: &str) -> String {
    format!("BT /F 12 Tf 20 200 Td <{hexadecimal}> Tj ET")
}

#[track_caller]
fn assert_text(bytes: &[u8], expected: &[&str]) {
    let (blocks, facts) = all(bytes, "a.pdf").unwrap();
    assert_eq!((texts(&blocks).as_slice(), facts.notice), (expected, None));
}

#[test]
fn predefined_maps_of_codes_are_known() {
    for (encoding, ordering, codes, text) in [
        ("/GBK-EUC-H", "GB1", "bbe1d2e9bccdd2aa", "会议纪要"),
        ("/UniGB-UCS2-H", "GB1", "4f1a8bae", "会议"),
        (
            "/90ms-RKSJ-H",
            "Japan1",
            "8b638e96985e204142433d",
            "議事録 ABC=",
        ),
        ("/UniJIS-UTF16-H", "Japan1", "d842dfb791ce", "𠮷野"),
        ("/ETen-B5-H", "CNS1", "b77cc4b3", "會議"),
        ("/KSCms-UHC-H", "Korea1", "c8b8c0c7b7cf", "회의록"),
    ] {
        assert_text(
            &page(&show(codes), "", &composite(encoding, ordering)),
            &[text],
        );
    }
}

#[test]
fn an_embedded_map_of_codes_is_read() {
    let map = b"/CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 2 >> def 1 begincodespacerange <01> <7f> endcodespacerange \
        1 begincidrange <01> <1a> 34 endcidrange";
    let mut objects = composite("7 0 R", "Japan1");
    objects.push(stream("/Type /CMap /CMapName /Own", map));
    assert_text(&page(&show("0102 03"), "", &objects), &["ABC"]);
}

#[test]
fn embedded_fonts_tell_their_letters() {
    let fixtures: [&[u8]; 2] = [
        include_bytes!("../../../tests/fixtures/encoding-in-cff.pdf"),
        include_bytes!("../../../tests/fixtures/letters-in-truetype.pdf"),
    ];
    for fixture in fixtures {
        assert_text(fixture, &["Budget"]);
    }
}

#[test]
fn drawn_letters_are_known_by_numbered_names() {
    let font = b"<< /Type /Font /Subtype /Type3 /FontMatrix [0.01 0 0 0.01 0 0] /FontBBox [0 0 60 100] /FirstChar 72 /LastChar 73 /Widths [60 60] \
        /CharProcs << >> /Encoding << /Differences [72 /a72 /a73] >> >>";
    assert_text(&page(&show("4849"), "", &[font.to_vec()]), &["HI"]);
}

#[test]
fn a_password_of_the_owner_alone_locks_nothing() {
    let fixtures: [&[u8]; 3] = [
        include_bytes!("../../../tests/fixtures/owner-rc4.pdf"),
        include_bytes!("../../../tests/fixtures/owner-aes-128.pdf"),
        include_bytes!("../../../tests/fixtures/owner-aes-256.pdf"),
    ];
    for fixture in fixtures {
        assert_text(fixture, &["Budget 2026"]);
    }
    let locked = include_bytes!("../../../tests/fixtures/user-aes-256.pdf");
    assert!(all(locked, "a.pdf").unwrap_err().0.contains("encrypted"));
}

#[test]
fn lost_letters_are_counted() {
    // Codes 1 and 2 of Helvetica are no letters.
    let read = |text: &str| {
        all(
            &pages(&[&format!("BT /F1 10 Tf 72 700 Td ({text}) Tj ET")]),
            "a.pdf",
        )
    };
    let (blocks, facts) = read("Half\\001\\002\\001\\002 here\\001\\002\\001\\002").unwrap();
    assert_eq!(texts(&blocks), ["Half\u{fffd} here\u{fffd}"]);
    let notice = facts.notice.unwrap();
    assert!(
        notice.starts_with("50 % of this PDF's letters are lost"),
        "{notice}"
    );
    // A tab is a space.
    assert_eq!(texts(&read("a\\011b").unwrap().0), ["a b"]);
    let many = "abcdefghij".repeat(10);
    for (lost, expected) in [
        (
            "\\001",
            "1 of 101 letters could not be read and stand as \u{fffd}.",
        ),
        ("\\001\\002", "1 % of this PDF's letters are lost"),
    ] {
        let notice = read(&format!("{many}{lost}")).unwrap().1.notice.unwrap();
        assert!(notice.starts_with(expected), "{lost}: {notice}");
    }
    assert_eq!(read(&many).unwrap().1.notice, None);
    let refusal = read("\\001\\002 \\001").unwrap_err().0;
    assert!(refusal.contains("does not say which letters"), "{refusal}");
}

#[test]
fn text_at_any_angle_has_lines() {
    let content = "BT /F1 10 Tf 0 1 -1 0 100 100 Tm (Upwards on) Tj 0 -12 Td (two lines) Tj \
        -1 0 0 -1 300 300 Tm (on its) Tj -30 0 Td ( head) Tj 0.7071 0.7071 -0.7071 0.7071 200 200 Tm (aslant) Tj ET";
    assert_text(
        &pages(&[content]),
        &["Upwards on two lines", "on its head", "aslant"],
    );
}

#[test]
fn text_from_the_right_is_in_reading_order() {
    let letters = "שלום עולם";
    let codes: Vec<(char, usize)> = letters.chars().zip(1..).collect();
    let mut map = format!("{} beginbfchar", codes.len());
    for (letter, code) in &codes {
        write!(map, " <{code:04x}> <{:04x}>", u32::from(*letter)).unwrap();
    }
    map += " endbfchar";
    let mut objects = composite("/Identity-H /ToUnicode 7 0 R", "Identity");
    objects.push(stream("", map.as_bytes()));
    let reversed: String = codes.iter().rev().fold(String::new(), |codes, (_, code)| {
        codes + &format!("{code:04x}")
    });
    // By place in one piece, and in two of which the one to the right comes first.
    let (second, first) = reversed.split_at(4 * 5);
    let pieces = format!("BT /F 12 Tf 200 200 Td <{first}> Tj -60 0 Td <{second}> Tj ET");
    for content in [show(&reversed), pieces] {
        assert_text(&page(&content, "", &objects), &[letters]);
    }
    // What the file says of marked letters is in reading order.
    let marked = format!(
        "/Span << /ActualText <feff05e905dc> >> BDC {} EMC",
        show("00010002")
    );
    assert_text(&page(&marked, "", &objects), &["של"]);
}

#[test]
fn marked_letters_are_what_the_file_says() {
    let content = "BT /F 10 Tf 20 200 Td (A ) Tj /Span << /ActualText (budget) >> BDC (\\001) Tj (\\002) Tj EMC ( it is) Tj ET";
    assert_text(&with_helvetica(content, "", &[]), &["A budget it is"]);
}

#[test]
fn values_of_forms_and_notes_are_text() {
    let more = "/Annots [6 0 R 8 0 R 9 0 R 10 0 R 11 0 R 12 0 R]";
    let drawn = stream(
        "/Subtype /Form /BBox [0 0 100 20] /Resources << /Font << /F 5 0 R >> >>",
        b"/Tx BMC BT /F 10 Tf 2 5 Td (Ada Lovelace) Tj ET EMC",
    );
    let objects = [
        b"<< /Subtype /Widget /FT /Tx /Rect [100 195 200 215] /V (Ada) /AP << /N 7 0 R >> >>"
            .to_vec(),
        drawn,
        b"<< /Subtype /Widget /Rect [0 0 9 9] /Parent << /FT /Ch /V [(London) (Paris)] >> >>"
            .to_vec(),
        b"<< /Subtype /Widget /FT /Tx /Ff 8192 /Rect [0 0 9 9] /V (secret) >>".to_vec(),
        b"<< /Subtype /FreeText /Rect [0 0 9 9] /Contents (A remark) >>".to_vec(),
        b"<< /Subtype /Text /Rect [0 0 9 9] /Contents <feff00c40072006700650072> >>".to_vec(),
        b"<< /Subtype /Text /F 2 /Rect [0 0 9 9] /Contents (unseen) >>".to_vec(),
    ];
    let bytes = with_helvetica(
        "BT /F 10 Tf 20 200 Td (Name:) Tj 0 -40 Td (Below) Tj ET",
        more,
        &objects,
    );
    assert_text(
        &bytes,
        &[
            "Name: Ada Lovelace",
            "Below",
            "London, Paris",
            "A remark",
            "Ärger",
        ],
    );
}

#[test]
fn ticked_boxes_stand_before_their_labels() {
    let dingbats = "BT /Z 10 Tf 1 2 Td (4) Tj ET";
    let fonts =
        "/Resources << /Font << /Z << /Type /Font /Subtype /Type1 /BaseFont /ZapfDingbats >> >> >>";
    let form = |more: &str, content: &str| {
        let head = format!("/Subtype /Form /BBox [0 0 12 12] {more}");
        stream(&head, content.as_bytes())
    };
    let button = |y: usize, more: &str| {
        format!(
            "<< /Subtype /Widget /Rect [120 {y} 132 {}] {more} >>",
            y + 12
        )
        .into_bytes()
    };
    let objects = [
        button(198, "/FT /Btn /AS /Yes /AP << /N << /Yes 7 0 R >> >>"),
        form("", "2 2 m 10 10 l S"),
        button(
            158,
            "/AS /1 /Parent << /FT /Btn >> /AP << /N << /1 9 0 R >> >>",
        ),
        form(fonts, dingbats),
        button(118, "/FT /Btn /AS /Off"),
        button(78, "/FT /Btn /Ff 65536 /AS /Yes"),
    ];
    let bytes = with_helvetica(
        "BT /F 10 Tf 60 200 Td (Ada is) Tj 80 0 Td (Married) Tj 0 -40 Td (Employed) Tj 0 -40 Td (Retired) Tj 0 -40 Td (Send) Tj ET",
        "/Annots [6 0 R 8 0 R 10 0 R 11 0 R]",
        &objects,
    );
    assert_text(
        &bytes,
        &["Ada is ☒ Married", "✔ Employed", "Retired", "Send"],
    );
}

#[test]
fn columns_that_are_drawn_row_by_row_are_parted() {
    let row = |at: usize, left: &str, right: &str| {
        let y = 700 - 12 * at;
        format!("BT /F1 10 Tf 1 0 0 1 50 {y} Tm ({left}) Tj 1 0 0 1 300 {y} Tm ({right}) Tj ET ")
    };
    let left = [
        "The left column has a text",
        "that goes on over five lines",
        "and is read to its very end",
        "before the other one begins,",
        "as a reader would do.",
    ];
    let right = [
        "Only then comes the column",
        "to the right, with sentences",
        "of its own that have nothing",
        "to do with those beside them",
        "on the same page.",
    ];
    let content: String = (0..5).map(|at| row(at, left[at], right[at])).collect();
    assert_text(&pages(&[&content]), &[&left.join(" "), &right.join(" ")]);
    // The short cells of a table stay beside each other.
    let content: String = (0..5)
        .map(|at| row(at, &format!("Item {at}"), &format!("{at}.50")))
        .collect();
    let table: Vec<String> = (0..5).map(|at| format!("Item {at} {at}.50")).collect();
    assert_text(&pages(&[&content]), &[&table.join(" ")]);
}

#[test]
fn a_wrong_table_of_objects_is_mended() {
    let bytes = include_bytes!("../../../tests/fixtures/encoding-in-cff.pdf");
    let table = bytes.windows(5).position(|five| five == b"xref\n").unwrap();
    let mut wrong = bytes.to_vec();
    for place in wrong[table..].iter_mut().skip(30) {
        if place.is_ascii_digit() {
            *place = b'7';
        }
    }
    for bytes in [wrong.as_slice(), &bytes[..table]] {
        assert_text(bytes, &["Budget"]);
    }
}
