//! Documents that the tests write: small, odd and hostile ones.

use super::*;
use flate2::{
    Compression,
    write::{DeflateEncoder, ZlibEncoder},
};
use proptest::prelude::*;
use std::io::Write;

pub(super) fn all(bytes: &[u8], name: &str) -> Result<(Vec<Block>, Facts), Refusal> {
    let (blocks, pictures, facts) = with_pictures(bytes, name, false)?;
    assert!(pictures.is_empty());
    Ok((blocks, facts))
}

fn with_pictures(
    bytes: &[u8],
    name: &str,
    wanted: bool,
) -> Result<(Vec<Block>, Vec<Picture>, Facts), Refusal> {
    let (mut blocks, mut pictures) = (Vec::new(), Vec::new());
    let facts = read(bytes, Path::new(name), wanted, &mut |part| match part {
        Part::Block(block) => blocks.push(block),
        Part::Picture(picture) => pictures.push(picture),
    })?;
    Ok((blocks, pictures, facts))
}

pub(super) fn texts(blocks: &[Block]) -> Vec<&str> {
    blocks.iter().map(|block| block.text.as_str()).collect()
}

/// An archive whose files are deflated.
pub(super) fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, text) in files {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        let packed = encoder.finish().unwrap();
        let (at, name_length) = (
            u32::try_from(bytes.len()).unwrap(),
            u16::try_from(name.len()).unwrap(),
        );
        let mut sizes = vec![8, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        sizes.extend(u32::try_from(packed.len()).unwrap().to_le_bytes());
        sizes.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
        sizes.extend(name_length.to_le_bytes());
        bytes.extend(b"PK\x03\x04\x14\0\0\0");
        bytes.extend(&sizes);
        bytes.extend([0, 0]);
        bytes.extend(name.as_bytes());
        bytes.extend(packed);
        directory.extend(b"PK\x01\x02\x14\0\x14\0\0\0");
        directory.extend(&sizes);
        directory.extend([0; 12]);
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (count, start) = (
        u16::try_from(files.len()).unwrap(),
        u32::try_from(bytes.len()).unwrap(),
    );
    let length = u32::try_from(directory.len()).unwrap();
    bytes.extend(directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend(count.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend([0, 0]);
    bytes
}

pub(super) fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A PDF with these objects, numbered from 1, of which the first is the catalog.
pub(super) fn pdf(objects: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let mut bytes = b"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n".to_vec();
    for (object, number) in objects.iter().zip(1..) {
        bytes.extend(format!("{number} 0 obj\n").bytes());
        bytes.extend(object);
        bytes.extend(b"\nendobj\n");
    }
    bytes.extend(format!("trailer\n<< /Root 1 0 R {trailer} >>\nstartxref\n0\n%%EOF").bytes());
    bytes
}

pub(super) fn stream(dictionary: &str, bytes: &[u8]) -> Vec<u8> {
    let mut object = format!("<< {dictionary} /Length {} >>\nstream\n", bytes.len()).into_bytes();
    object.extend(bytes);
    object.extend(b"\nendstream");
    object
}

/// A PDF whose pages draw these contents, with Helvetica as /F1.
pub(super) fn pages(contents: &[&str]) -> Vec<u8> {
    let kids: String = (0..contents.len())
        .map(|at| format!("{} 0 R ", 4 + 2 * at))
        .collect();
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        format!(
            "<< /Type /Pages /Kids [{kids}] /Count {} /Resources << /Font << /F1 3 0 R >> >> >>",
            contents.len()
        )
        .into_bytes(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_vec(),
    ];
    for (content, at) in contents.iter().zip(0..) {
        objects.push(
            format!(
                "<< /Type /Page /Parent 2 0 R /Contents {} 0 R >>",
                5 + 2 * at
            )
            .into_bytes(),
        );
        objects.push(stream("/Filter /FlateDecode", &zlib(content.as_bytes())));
    }
    pdf(&objects, "/Info << /Title (A paper) >>")
}

#[test]
fn a_pdf_has_paragraphs_headings_and_pages() {
    let body = "/F1 10 Tf 1 0 0 1 72 600 Tm (The method divides a long para-) Tj 0 -12 Td (graph into lines \\(and) Tj 0 -12 Td [(wo) 10 (rds\\)) -400 (again.)] TJ";
    let first = format!(
        "BT /F1 18 Tf 72 700 Td (1 Methods) Tj {body} 0 -40 Td (Another paragraph \\226 here.) Tj ET"
    );
    let second = "q 1 0 0 1 0 0 cm BT /F1 10 Tf 72 700 Td <5365636F6E642070616765> Tj ET Q";
    let (blocks, facts) = all(&pages(&[&first, second]), "a.bin").unwrap();
    assert_eq!(
        texts(&blocks),
        [
            "1 Methods",
            "The method divides a long paragraph into lines (and words) again.",
            "Another paragraph – here.",
            "Second page"
        ]
    );
    let headings: Vec<_> = blocks.iter().map(|block| block.heading).collect();
    assert_eq!(headings, [Some(1), None, None, None]);
    assert_eq!(blocks[3].page, Some(2));
    assert_eq!(
        (facts.kind, facts.pages, facts.title.as_deref()),
        (Some(DocumentKind::Pdf), Some(2), Some("A paper"))
    );
}

#[test]
fn a_pdf_in_streams_of_objects_with_its_own_codes_is_read() {
    let map = "1 begincodespacerange <0000> <ffff> endcodespacerange 2 beginbfchar <0001> <0048> <0002> <00660069> endbfchar \
               1 beginbfrange <0003> <0005> <0061> endbfrange";
    let inner = "<< /Type /Catalog /Pages 2 0 R >> << /Type /Pages /Kids [3 0 R] /Count 1 >> \
                 << /Type /Page /Contents 8 0 R /Resources << /Font << /F 4 0 R >> >> >> \
                 << /Type /Font /Subtype /Type0 /Encoding /Identity-H /DescendantFonts [5 0 R] /ToUnicode 9 0 R >> \
                 << /Type /Font /Subtype /CIDFontType2 /DW 500 /W [1 [700] 2 5 480] >>";
    let places: Vec<_> = inner.match_indices("<< /Type").map(|(at, _)| at).collect();
    let head: String = places
        .iter()
        .zip(1..)
        .map(|(at, number)| format!("{number} {at} "))
        .collect();
    let body = format!("{head}{inner}");
    let mut bytes = b"%PDF-1.5\n".to_vec();
    let mut add = |number: u32, object: Vec<u8>| {
        bytes.extend(format!("{number} 0 obj\n").bytes());
        bytes.extend(object);
        bytes.extend(b"\nendobj\n");
    };
    let objects = stream(
        &format!(
            "/Type /ObjStm /N 5 /First {} /Filter /FlateDecode",
            head.len()
        ),
        &zlib(body.as_bytes()),
    );
    add(7, objects);
    add(
        8,
        stream(
            "",
            b"BT /F 12 Tf 10 10 Td <000100020003> Tj ( ) Tj [<0004> -600 <0005>] TJ ET",
        ),
    );
    add(9, stream("/Filter [/FlateDecode]", &zlib(map.as_bytes())));
    add(
        10,
        stream("/Type /XRef /Root 1 0 R /W [1 1 1] /Size 10", b"abc"),
    );
    let (blocks, _) = all(&bytes, "a.pdf").unwrap();
    // The byte that is no whole code has no letter.
    assert_eq!(blocks[0].text, "Hfia\u{fffd}b c");
}

#[test]
fn hostile_pdfs_are_refused_with_the_reason() {
    let refused = |bytes: &[u8]| all(bytes, "a.pdf").unwrap_err().0;
    let catalog = b"<< /Type /Catalog /Pages 2 0 R >>".to_vec();
    let encrypted = pdf(
        std::slice::from_ref(&catalog),
        "/Encrypt << /Filter /Standard >>",
    );
    assert!(refused(&encrypted).contains("encrypted"));
    // Newer ones say so in a stream.
    let newer = stream("/Type /XRef /Root 1 0 R /Encrypt 4 0 R", b"x");
    let newer = pdf(&[catalog.clone(), newer], "");
    assert!(refused(&newer).contains("encrypted"));
    assert!(refused(b"%PDF-1.4 and nothing").contains("no pages"));
    assert!(refused(&pdf(std::slice::from_ref(&catalog), "")).contains("no pages"));
    // Pages that are their own children, and a form that draws itself.
    let circle = pdf(
        &[catalog.clone(), b"<< /Kids [2 0 R 2 0 R] >>".to_vec()],
        "",
    );
    assert!(refused(&circle).contains("no pages"));
    let page =
        b"<< /Type /Page /Contents 3 0 R /Resources << /XObject << /X 3 0 R >> >> >>".to_vec();
    let draws = stream("/Subtype /Form", b"/X Do /X Do /X Do");
    assert!(refused(&pdf(&[catalog.clone(), page.clone(), draws], "")).contains("no text"));
    // A scan: a picture and no letter.
    let scan = "<< /Type /Page /Contents 3 0 R /Resources << /XObject << /X 4 0 R >> >> >>";
    let picture = stream("/Subtype /Image /Filter /DCTDecode", b"\xff\xd8");
    let drawn = |content: &[u8]| {
        let content = stream("", content);
        pdf(
            &[catalog.clone(), scan.into(), content, picture.clone()],
            "",
        )
    };
    // Of strips, none is the page.
    let strips = with_pictures(&drawn(b"/X Do /X Do"), "a.pdf", true);
    assert!(strips.unwrap_err().0.contains("pictures of pages"));
    let scanned = drawn(b"/X Do");
    assert!(refused(&scanned).contains("pictures of pages, no text"));
    // A model may read it.
    let (blocks, pictures, facts) = with_pictures(&scanned, "a.pdf", true).unwrap();
    assert_eq!((blocks.len(), pictures.len()), (0, 1));
    assert_eq!((pictures[0].page, pictures[0].jpeg.as_str()), (1, "/9g="));
    assert_eq!(
        (facts.pictured.as_slice(), facts.notice),
        ([1].as_slice(), None)
    );
    // Megabytes in kilobytes, packed once and twice, and as objects.
    let spaces = zlib(&vec![b' '; 65 << 20]);
    let twice = stream("/Filter [/FlateDecode /FlateDecode]", &zlib(&spaces));
    let objects = stream("/Type /ObjStm /N 1 /First 9 /Filter /FlateDecode", &spaces);
    for bomb in [twice, objects] {
        let holds = |part: &str| {
            refused(&pdf(&[catalog.clone(), page.clone(), bomb.clone()], "")).contains(part)
        };
        assert!(holds("unpacks to more"));
    }
    let bomb = stream("/Filter /FlateDecode", &spaces);
    assert!(refused(&pdf(&[catalog, page, bomb], "")).contains("unpacks to more"));
    let nested = "[".repeat(100_000);
    assert!(refused(format!("%PDF-1.4\n1 0 obj\n{nested}").as_bytes()).contains("damaged"));
}

#[test]
fn pages_that_are_pictures_are_told() {
    let picture = "BI /W 1 /H 1 ID x EI ";
    let text = "BT /F1 10 Tf 72 700 Td (Some words.) Tj ET";
    // A picture beside text is a figure, and an empty page is missing nothing.
    let figure = format!("{picture}{text}");
    let (blocks, facts) = all(
        &pages(&[picture, text, picture, picture, &figure, ""]),
        "a.pdf",
    )
    .unwrap();
    assert_eq!(blocks.len(), 2);
    assert_eq!(
        facts.notice.as_deref(),
        Some(
            "3 of 6 pages are pictures without text and are not read: pages 1, 3–4. Have their text recognized, and save the PDF again."
        )
    );
    let (_, facts) = all(&pages(&[text, picture]), "a.pdf").unwrap();
    let notice = facts.notice.unwrap();
    assert!(
        notice.starts_with("1 of 2 pages is a picture without text")
            && notice.contains(": page 2."),
        "{notice}"
    );
    let (_, facts) = all(&pages(&[&figure]), "a.pdf").unwrap();
    assert_eq!(facts.notice, None);
}

#[test]
fn five_thousand_pages_come_page_by_page() {
    let contents: Vec<_> = (1..=5000)
        .map(|page| format!("BT /F1 10 Tf 72 700 Td (This is page {page}.) Tj ET"))
        .collect();
    let contents: Vec<_> = contents.iter().map(String::as_str).collect();
    let (blocks, facts) = all(&pages(&contents), "a.pdf").unwrap();
    assert_eq!(facts.pages, Some(5000));
    assert_eq!(
        (blocks[4999].text.as_str(), blocks[4999].page),
        ("This is page 5000.", Some(5000))
    );
}

#[test]
fn a_docx_has_headings_tables_and_pages() {
    let document = "<w:document><w:body>\
        <w:p><w:pPr><w:pStyle w:val=\"berschrift1\"/></w:pPr><w:r><w:t>Ziele &amp; Wege</w:t></w:r></w:p>\
        <w:p><w:r><w:t xml:space=\"preserve\">One </w:t></w:r><w:r><w:t>sentence.</w:t></w:r></w:p>\
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>\
        <w:p><w:r><w:lastRenderedPageBreak/><w:t>Next page</w:t></w:r></w:p></w:body></w:document>";
    let styles = "<w:styles><w:style w:styleId=\"berschrift1\"><w:name w:val=\"heading 1\"/></w:style></w:styles>";
    let bytes = archive(&[
        ("word/document.xml", document),
        ("word/styles.xml", styles),
        ("docProps/core.xml", "<c><dc:title>Plan</dc:title></c>"),
    ]);
    let (blocks, facts) = all(&bytes, "plan").unwrap();
    assert_eq!(
        texts(&blocks),
        ["Ziele & Wege", "One sentence.", "a  | b", "Next page"]
    );
    assert_eq!(blocks[0].heading, Some(1));
    assert_eq!((blocks[0].page, blocks[3].page), (Some(1), Some(2)));
    assert_eq!(
        (facts.kind, facts.title.as_deref()),
        (Some(DocumentKind::Docx), Some("Plan"))
    );
}

#[test]
fn slides_come_in_the_order_of_the_presentation() {
    let slide = |title: &str, text: &str| {
        format!(
            "<p:sld><p:sp><p:nvPr><p:ph type=\"title\"/></p:nvPr><a:p><a:r><a:t>{title}</a:t></a:r></a:p></p:sp>\
             <p:sp><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sp></p:sld>"
        )
    };
    let bytes = archive(&[
        (
            "ppt/presentation.xml",
            "<p:sldIdLst><p:sldId id=\"1\" r:id=\"r2\"/><p:sldId id=\"2\" r:id=\"r1\"/></p:sldIdLst>",
        ),
        (
            "ppt/_rels/presentation.xml.rels",
            "<R><R Id=\"r1\" Target=\"slides/slide1.xml\"/><R Id=\"r2\" Target=\"/ppt/slides/slide2.xml\"/></R>",
        ),
        ("ppt/slides/slide1.xml", &slide("Later", "two")),
        ("ppt/slides/slide2.xml", &slide("Sooner", "one")),
    ]);
    let (blocks, facts) = all(&bytes, "a.pptx").unwrap();
    assert_eq!(texts(&blocks), ["Sooner", "one", "Later", "two"]);
    assert_eq!(
        (blocks[2].heading, blocks[2].page, facts.pages),
        (Some(2), Some(2), Some(2))
    );
}

#[test]
fn hostile_archives_are_refused_with_the_reason() {
    let bomb = " ".repeat(129 << 20);
    let refused = all(&archive(&[("word/document.xml", &bomb)]), "a.docx")
        .unwrap_err()
        .0;
    assert!(refused.contains("unpacks to more"), "{refused}");
    let mut locked = archive(&[("word/document.xml", "<w:t>x</w:t>")]);
    let directory = locked
        .windows(4)
        .position(|four| four == b"PK\x01\x02")
        .unwrap();
    locked[directory + 8] |= 1;
    let refused = all(&locked, "a.docx").unwrap_err().0;
    assert!(refused.contains("encrypted with a password"), "{refused}");
    // What Word writes with a password is no archive.
    let compound = [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".as_slice(), &[0; 600]].concat();
    let refused = all(&compound, "a.docx").unwrap_err().0;
    assert!(refused.contains("has a password"), "{refused}");
    let mut cut = archive(&[("word/document.xml", "<w:t>x</w:t>")]);
    cut[50] ^= 0xff;
    cut[46] = 0xff;
    assert!(all(&cut, "a.docx").is_err());
}

#[test]
fn a_page_has_what_it_shows() {
    let page = "<!doctype html><title>My &mdash; page</title><style>p{}</style><nav>Home</nav><h2>Part <b>one</b></h2>\
                <p>Some <i>text</i>,<br>and more.</p><table><tr><td>1<td>2</table><pre>a\n  b</pre><script>alert('<p>')</script>";
    let (blocks, facts) = all(page.as_bytes(), "x").unwrap();
    assert_eq!(
        texts(&blocks),
        ["Part one", "Some text,", "and more.", "1 | 2", "a\n  b"]
    );
    assert_eq!(blocks[0].heading, Some(2));
    assert_eq!(facts.title.as_deref(), Some("My — page"));
    let hidden = "<svg/><p>caf&eacute; co&shy;operation &hopf;<svg><title>x</title></svg><template>t</template><noscript>n</noscript>";
    let (blocks, facts) = all(hidden.as_bytes(), "a.html").unwrap();
    assert_eq!(texts(&blocks), ["café cooperation 𝕙"]);
    assert_eq!((facts.title, facts.notice), (None, None));
}

#[test]
fn letters_that_could_not_be_read_are_reported() {
    let mut bytes = "Grüße aus München\n".repeat(5).into_bytes();
    bytes.push(0xff);
    let (blocks, facts) = all(&bytes, "a.txt").unwrap();
    assert!(blocks[0].text.ends_with("München\n\u{fffd}"));
    assert_eq!(
        facts.notice.as_deref(),
        Some("1 of 76 letters could not be read and stand as \u{fffd}.")
    );
    // Those that were lost before are, too.
    let (_, facts) = all("a\u{fffd}b".as_bytes(), "a.md").unwrap();
    assert!(facts.notice.unwrap().starts_with("1 of 3 letters"));
    let (_, facts) = all(b"caf\xe9", "a.txt").unwrap();
    assert!(facts.notice.unwrap().contains("guessed as windows-1252"));
}

#[test]
fn minified_code_is_not_read() {
    let minified = format!("/*! A library */\n{}\n", "function a(){b()}".repeat(300));
    for name in ["index-4f2a.js", "a.CSS"] {
        let Refusal(why) = all(minified.as_bytes(), name).unwrap_err();
        assert!(why.contains("minified"), "{name}: {why}");
    }
    let code = "function a() {\n  b();\n}\n".repeat(300);
    let short = "function a(){b()}".repeat(30);
    for (text, name) in [(&minified, "a.json"), (&code, "a.js"), (&short, "a.js")] {
        assert!(all(text.as_bytes(), name).is_ok(), "{name}");
    }
}

#[test]
fn markdown_text_and_code_know_their_lines() {
    let text = "---\ntitle: Notes\n---\n# One\nwords\nmore\n\n```rust\n# not a heading\n\nfn a() {}\n```\nTwo\n---\nend";
    let (blocks, facts) = all(text.as_bytes(), "a.md").unwrap();
    let found: Vec<_> = blocks
        .iter()
        .map(|block| (block.text.as_str(), block.heading, block.line))
        .collect();
    assert_eq!(
        found,
        [
            ("One", Some(1), Some(4)),
            ("words\nmore", None, Some(5)),
            ("```rust\n# not a heading\n\nfn a() {}\n```", None, Some(8)),
            ("Two", Some(2), Some(13)),
            ("end", None, Some(15)),
        ]
    );
    assert_eq!(facts.title.as_deref(), Some("Notes"));
    let (blocks, facts) = all(b"One\ntwo\n\nThree\n\x0cFour", "a.txt").unwrap();
    assert_eq!(texts(&blocks), ["One\ntwo", "Three", "Four"]);
    assert_eq!(
        (blocks[1].line, blocks[2].page, facts.pages),
        (Some(4), Some(2), Some(2))
    );
    let (blocks, _) = all(b"use a;\n\nfn b() {\n\n  c()\n}\n\nfn d() {}", "a.rs").unwrap();
    assert_eq!(
        texts(&blocks),
        ["use a;", "fn b() {\n\n  c()\n}", "fn d() {}"]
    );
    assert_eq!(blocks[1].line, Some(3));
}

#[test]
fn mail_has_its_header_text_and_names_of_files() {
    let mail = "From: =?utf-8?Q?J=C3=BCrgen_?= =?utf-8?B?TWV5ZXI=?= <j@x.y>\r\nTo: a@b.c\r\nSubject: Offer\r\n for you\r\n\
        Content-Type: multipart/mixed; boundary=\"b1\"\r\n\r\n--b1\r\nContent-Type: multipart/alternative; boundary=b2\r\n\r\n\
        --b2\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
        Sch=F6ne Gr=\r\n=FC=DFe\r\n--b2\r\nContent-Type: text/html\r\n\r\n<p>HTML</p>\r\n--b2--\r\n\
        --b1\r\nContent-Type: application/pdf; name=\"a.pdf\"\r\nContent-Transfer-Encoding: base64\r\n\r\nJVBERg==\r\n--b1--\r\n";
    let (blocks, facts) = all(mail.as_bytes(), "m").unwrap();
    assert_eq!(
        texts(&blocks),
        [
            "Offer for you",
            "From: Jürgen Meyer <j@x.y>\nTo: a@b.c",
            "Schöne Grüße",
            "Attached: a.pdf"
        ]
    );
    assert_eq!(
        (facts.kind, facts.title.as_deref()),
        (Some(DocumentKind::Mail), Some("Offer for you"))
    );
    let only_html = "From: a\nDate: x\nContent-Type: text/html\nContent-Transfer-Encoding: base64\n\nPHA+SGVsbG88L3A+\n";
    assert_eq!(
        texts(&all(only_html.as_bytes(), "m").unwrap().0)[1],
        "Hello"
    );
}

#[test]
fn what_is_no_document_is_refused() {
    assert!(all(b"", "a.txt").unwrap_err().0.contains("empty"));
    assert!(all(b" \n\n ", "a.txt").unwrap_err().0.contains("no text"));
    assert!(
        all(&[0, 1, 2, 3], "a.txt")
            .unwrap_err()
            .0
            .contains("neither text nor a document")
    );
    let document = archive(&[("word/document.xml", "<w:p><w:t>x</w:t></w:p>")]);
    let other = archive(&[("a.txt", "x")]);
    for (bytes, reason) in [
        (&document[..document.len() / 2], "is damaged"),
        (&other[..], "neither text nor a document"),
    ] {
        let refusal = all(bytes, "a.docx").unwrap_err().0;
        assert!(refusal.contains(reason), "{refusal}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn damaged_documents_never_panic(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
        which in 0..3_usize,
    ) {
        let documents = [
            pages(&["BT /F1 10 Tf 72 700 Td (Some) Tj 0 -12 Td [(w) -300 (ords)] TJ ET"]),
            archive(&[("word/document.xml", "<w:p><w:t>x</w:t></w:p>")]),
            b"From: a\nSubject: =?utf-8?B?8J?=\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\n=E\n--b--".to_vec(),
        ];
        let mut bytes = documents[which].clone();
        let place = at.index(bytes.len());
        bytes[place] = byte;
        bytes.truncate(cut.index(bytes.len()) + 1);
        let _ = all(&bytes, "a");
    }

    #[test]
    fn any_content_of_a_page_is_read(content in "[ -~\\n]{0,120}") {
        let _ = all(&pages(&[&content]), "a.pdf");
    }
}
