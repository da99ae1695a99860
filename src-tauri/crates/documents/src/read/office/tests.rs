use crate::read::{
    Block, Facts,
    tests::{all, archive, texts},
};

fn relations(targets: &[(&str, &str)]) -> String {
    let targets = targets.iter().zip(1..).map(|((kind, target), number)| {
        format!("<Relationship Id=\"r{number}\" Type=\"http://x/{kind}\" Target=\"{target}\"/>")
    });
    format!(
        "<Relationships>{}</Relationships>",
        targets.collect::<String>()
    )
}

/// A document of Word's whose main part, `word/document2.xml`, has this body and these parts beside it.
fn word(body: &str, parts: &[(&str, &str)]) -> (Vec<Block>, Facts) {
    let document =
        format!("<?xml version=\"1.0\"?><w:document><w:body>{body}</w:body></w:document>");
    let root = relations(&[("officeDocument", "/word/document2.xml")]);
    let own: Vec<_> = parts
        .iter()
        .map(|(name, _)| (name.trim_matches(char::is_numeric), format!("{name}.xml")))
        .collect();
    let own: Vec<_> = own
        .iter()
        .map(|(kind, target)| (*kind, target.as_str()))
        .collect();
    let own = relations(&own);
    let names: Vec<_> = parts
        .iter()
        .map(|(name, _)| format!("word/{name}.xml"))
        .collect();
    let mut files = vec![
        ("_rels/.rels", root.as_str()),
        ("word/document2.xml", document.as_str()),
        ("word/_rels/document2.xml.rels", own.as_str()),
    ];
    files.extend(
        names
            .iter()
            .map(String::as_str)
            .zip(parts.iter().map(|(_, xml)| *xml)),
    );
    all(&archive(&files), "a.docx").unwrap()
}

#[test]
fn parts_are_found_by_their_relationships() {
    let note = |text: &str| format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>");
    let (blocks, facts) = word(
        &note("Body"),
        &[
            ("footer1", &note("Foot")),
            ("endnotes", &note("A tachyon walks into a bar.")),
            ("header1", &note("Head")),
            ("header2", &note("Other head")),
            ("comments", &note("Why?")),
            (
                "chart1",
                "<c:chart><a:p><a:r><a:t>Sales</a:t></a:r></a:p><c:strCache><c:pt><c:v>North</c:v></c:pt><c:pt><c:v>South</c:v></c:pt></c:strCache><c:numCache><c:v>7</c:v></c:numCache></c:chart>",
            ),
            ("footnotes", &note("See above.")),
        ],
    );
    assert_eq!(
        texts(&blocks),
        [
            "Body",
            "See above.",
            "A tachyon walks into a bar.",
            "Why?",
            "Head",
            "Other head",
            "Foot",
            "Sales",
            "North\nSouth"
        ]
    );
    assert_eq!(facts.notice, None);
    let real = include_bytes!("../../../tests/fixtures/endnotes.docx");
    let (blocks, _) = all(real, "a.docx").unwrap();
    assert!(texts(&blocks).contains(&"A tachyon walks into a bar."));
}

#[test]
fn names_in_charts_are_read_and_values_and_dates_are_not() {
    let point = |value: &str| format!("<c:pt><c:v>{value}</c:v></c:pt>");
    let numbers = |format: &str, value: &str| {
        format!(
            "<c:numRef><c:numCache><c:formatCode>{format}</c:formatCode>{}</c:numCache></c:numRef>",
            point(value)
        )
    };
    let men = format!(
        "<c:strRef><c:strCache>{}</c:strCache></c:strRef>",
        point("Men")
    );
    let series = [
        ("<c:v>Typed name</c:v>", numbers("General", "2000")),
        (men.as_str(), numbers("m/d/yyyy", "37261")),
        (
            "<c:rich><a:p><a:r><a:t>Rich</a:t></a:r></a:p></c:rich>",
            format!(
                "<c:multiLvlStrRef><c:multiLvlStrCache><c:lvl>{}</c:lvl><c:lvl>{}</c:lvl></c:multiLvlStrCache></c:multiLvlStrRef>",
                point("Albany"),
                point("NY")
            ),
        ),
        ("", format!("<c:strLit>{}</c:strLit>", point("Written"))),
    ];
    let series = series.map(|(name, categories)| {
        let values = numbers("General", "7");
        format!(
            "<c:ser><c:tx>{name}</c:tx><c:cat>{categories}</c:cat><c:val>{values}</c:val></c:ser>"
        )
    });
    let chart = format!("<c:chart>{}</c:chart>", series.concat());
    let (blocks, _) = word("", &[("chart1", &chart)]);
    assert_eq!(
        texts(&blocks),
        ["Typed name", "2000", "Men", "Rich", "Albany\nNY", "Written"]
    );
}

#[test]
fn the_dates_of_a_chart_are_known_by_their_format() {
    for (format, is_of_dates) in [
        ("General", false),
        ("[Red]0.00", false),
        ("[$-409]#,##0", false),
        ("[&lt;=100]0;[Red]0", false),
        ("0 &quot;days&quot;", false),
        ("\"years: \"0", false),
        (r"0\m", false),
        ("0_d*y", false),
        ("[$-F800]dddd", true),
        ("&quot;on &quot;D/M", true),
        ("MMM", true),
        ("[h]:mm", true),
        ("[h]", true),
        ("[H]", true),
        (r"0\d;yyyy", true),
    ] {
        let chart = format!(
            "<c:cat><c:numCache><c:formatCode>{format}</c:formatCode><c:v>7</c:v></c:numCache></c:cat>"
        );
        let body = "<w:p><w:r><w:t>Body</w:t></w:r></w:p>";
        let (blocks, _) = word(body, &[("chart1", &chart)]);
        assert_eq!(texts(&blocks).contains(&"7"), !is_of_dates, "{format}");
    }
}

#[test]
fn what_moved_or_stands_there_already_is_read_once() {
    let (blocks, _) = word(
        "<w:p><w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom><w:r><w:t>kept</w:t></w:r><w:del><w:r><w:t>gone</w:t></w:r></w:del></w:p>\
         <w:p><w:pPr><w:tabs><w:tab w:val=\"left\"/></w:tabs></w:pPr><w:moveTo><w:r><w:t>moved</w:t><w:tab/><w:t>here</w:t></w:r></w:moveTo></w:p>\
         <w:p><w:r><mc:AlternateContent><mc:Choice><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent></mc:Choice>\
         <mc:Fallback><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent></mc:Fallback></mc:AlternateContent></w:r></w:p>",
        &[],
    );
    assert_eq!(texts(&blocks), ["kept", "moved\there", "box"]);
}

#[test]
fn equations_and_prefixes_of_other_programs_are_read() {
    let (blocks, _) = word(
        "<w:p><m:oMath><m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>\
         <m:f><m:num><m:r><m:t>a</m:t></m:r></m:num><m:den><m:r><m:t>b</m:t></m:r></m:den></m:f></m:oMath></w:p>\
         <ns0:p><ns0:r><ns0:t>&lt;&#228;&amp;b&gt;</ns0:t></ns0:r></ns0:p>",
        &[],
    );
    assert_eq!(texts(&blocks), ["x^2a/b", "<ä&b>"]);
}

#[test]
fn a_presentation_has_notes_tables_and_its_own_names() {
    let slide = "<p:sld><p:sp><p:ph type=\"ctrTitle\"/><a:p><a:r><a:t>Plan</a:t></a:r></a:p></p:sp>\
        <a:tbl><a:tr><a:tc><a:p><a:r><a:t>a</a:t></a:r></a:p></a:tc><a:tc><a:p><a:r><a:t>b</a:t></a:r></a:p></a:tc></a:tr></a:tbl></p:sld>";
    let notes = "<p:notes><p:sp><p:ph type=\"sldNum\"/><a:p><a:fld><a:t>1</a:t></a:fld></a:p></p:sp>\
        <p:sp><p:ph type=\"body\"/><a:p><a:r><a:t>Speak slowly</a:t></a:r></a:p></p:sp></p:notes>";
    let bytes = archive(&[
        (
            "_rels/.rels",
            &relations(&[("officeDocument", "deck/main.xml")]),
        ),
        (
            "deck/main.xml",
            "<p:presentation><p:sldIdLst><p:sldId id=\"256\" r:id=\"r1\"/></p:sldIdLst></p:presentation>",
        ),
        (
            "deck/_rels/main.xml.rels",
            &relations(&[("slide", "slides/one.xml")]),
        ),
        ("deck/slides/one.xml", slide),
        (
            "deck/slides/_rels/one.xml.rels",
            &relations(&[("notesSlide", "../notes/one.xml")]),
        ),
        ("deck/notes/one.xml", notes),
    ]);
    let (blocks, facts) = all(&bytes, "a.pptx").unwrap();
    assert_eq!(texts(&blocks), ["Plan", "a  | b", "Speak slowly"]);
    assert_eq!((blocks[0].heading, blocks[2].page), (Some(2), Some(1)));
    assert_eq!((facts.pages, facts.notice), (Some(1), None));
}

#[test]
fn damaged_parts_and_exploding_entities_are_reported_or_stay() {
    let (blocks, facts) = word("<w:p><w:r><w:t>Body</w:t></w:r></w:p><w:p w:x=\"", &[]);
    assert_eq!(texts(&blocks), ["Body"]);
    assert!(facts.notice.unwrap().contains("damaged"));
    let (blocks, facts) = word(
        "<w:p><w:r><w:t>Body</w:t></w:r></w:p>",
        &[(
            "comments",
            "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]><w:p><w:t>&b;</w:t></w:p>",
        )],
    );
    assert_eq!((texts(&blocks), facts.notice), (vec!["Body", "&b;"], None));
    let deep = "<w:tbl><w:tr><w:tc>".repeat(50_000) + "<w:p><w:t>x</w:t></w:p>";
    let (blocks, _) = word(&deep, &[]);
    assert_eq!(texts(&blocks), ["x"]);
}
