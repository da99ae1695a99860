use crate::read::tests::{all, texts};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use proptest::prelude::*;

/// Texts in encodings of mail, in base64.
const ENCODED: [(&str, &str, &str); 8] = [
    (
        "windows-1251",
        "Бюджет утверждён",
        "wf7k5uXyIPPy4uXw5uS47Q==",
    ),
    (
        "iso-8859-2",
        "Příliš žluťoučký kůň",
        "UPjtbGm5IL5sdbtvdehr/SBr+fI=",
    ),
    (
        "iso-2022-jp",
        "東京支社の予算",
        "GyRCRWw1fjtZPFIkTk09OzsbKEI=",
    ),
    ("koi8-r", "Бюджет утверждён", "4sDE1sXUINXU18XS1sSjzg=="),
    ("gb18030", "预算已批准𠮷", "1KTL49LRxfrXvJU0sjU="),
    ("shift_jis", "東京支社の予算", "k4yLno54jtCCzJdcjlo="),
    ("euc-kr", "예산안 회의록", "v7m76r7IIMi4wMe3zw=="),
    ("utf-7", "Grüße 预算", "R3IrQVB3QTN3LWUgK21JUjdsdy0="),
];

#[test]
fn eight_encodings_are_read_in_words_parts_and_bytes() {
    for (name, text, encoded) in ENCODED {
        let part = format!("Content-Type: text/plain; charset={name}\n");
        let in_base64 = format!(
            "From: a@b.c\nSubject: =?{name}?B?{encoded}?=\n{part}Content-Transfer-Encoding: base64\n\n{encoded}\n"
        );
        let mut in_bytes =
            format!("From: a@b.c\nSubject: Plan\n{part}Content-Transfer-Encoding: 8bit\n\n")
                .into_bytes();
        in_bytes.extend(STANDARD.decode(encoded).unwrap());
        let (blocks, facts) = all(in_base64.as_bytes(), "a.eml").unwrap();
        assert_eq!(texts(&blocks), [text, "From: a@b.c", text], "{name}");
        assert_eq!((facts.title.as_deref(), facts.notice), (Some(text), None));
        let (blocks, facts) = all(&in_bytes, "a.eml").unwrap();
        assert_eq!(
            (blocks[2].text.as_str(), facts.notice),
            (text, None),
            "{name}"
        );
    }
}

#[test]
fn an_encoding_that_is_not_declared_is_guessed_and_reported() {
    let (_, russian, encoded) = ENCODED[0];
    let russian_bytes = STANDARD.decode(encoded).unwrap();
    let mut mail = b"From: a@b.c\nSubject: ".to_vec();
    mail.extend(&russian_bytes);
    mail.extend(b"\nTo: =?utf-8?Q?J=C3=BCrgen?= <j@b.c>\n\nText\n");
    let (blocks, facts) = all(&mail, "a.eml").unwrap();
    assert_eq!(
        texts(&blocks),
        [russian, "From: a@b.c\nTo: Jürgen <j@b.c>", "Text"]
    );
    let notice = facts.notice.unwrap();
    assert!(notice.contains("guessed as windows-1251"), "{notice}");
    // The HTML that is not shown says nothing.
    let mut mail = b"From: a@b.c\nContent-Type: multipart/alternative; boundary=b\n\n--b\n\nA text that is shown\n--b\nContent-Type: text/html\n\n<p>".to_vec();
    mail.extend(&russian_bytes);
    mail.extend(b"\n--b--\n");
    let (blocks, facts) = all(&mail, "a.eml").unwrap();
    assert_eq!((blocks.len(), facts.notice), (2, None));
}

#[test]
fn a_mailbox_is_read_mail_by_mail() {
    let mailbox = "From a@b.c Sat Nov 28 10:00:00 2026\nFrom: a@b.c\nSubject: One\n\nFirst\n>From here\n\n\
        From d@e.f Sat Nov 28 11:00:00 2026\nFrom: d@e.f\nSubject: Two\nContent-Type: text/html; charset=iso-8859-1\n\n<p>Gr&uuml;\u{df}e\n\n\
        From g@h.i Sat Nov 28 12:00:00 2026\nFrom: g@h.i\nSubject: Three\n\nThird\n";
    let (bytes, ..) = encoding_rs::WINDOWS_1252.encode(mailbox);
    for name in ["mail.mbox", "Inbox"] {
        let (blocks, facts) = all(&bytes, name).unwrap();
        assert_eq!(
            texts(&blocks),
            [
                "One",
                "From: a@b.c",
                "First\nFrom here",
                "Two",
                "From: d@e.f",
                "Grüße",
                "Three",
                "From: g@h.i",
                "Third"
            ]
        );
        assert_eq!((facts.title, facts.notice), (None, None));
    }
    let one = "From a@b.c Sat Nov 28 10:00:00 2026\nFrom: a@b.c\nSubject: One\n\nFirst\n";
    let (_, facts) = all(one.as_bytes(), "mbox").unwrap();
    assert_eq!(facts.title.as_deref(), Some("One"));
}

#[test]
fn mails_within_mails_and_reports_are_read() {
    let digest = "From: list@x.y\nSubject: Digest\nContent-Type: multipart/digest; boundary=b\n\n\
        --b\n\nFrom: one@x.y\nSubject: First\n\nHello\n\
        --b\n\nFrom: two@x.y\nSubject: Second\nContent-Type: text/html\n\n<p>World\n--b--\n";
    let (blocks, _) = all(digest.as_bytes(), "a.eml").unwrap();
    let read: Vec<_> = blocks
        .iter()
        .map(|block| (block.text.as_str(), block.heading))
        .collect();
    assert_eq!(
        read,
        [
            ("Digest", Some(1)),
            ("From: list@x.y", None),
            ("First", Some(2)),
            ("From: one@x.y", None),
            ("Hello", None),
            ("Second", Some(2)),
            ("From: two@x.y", None),
            ("World", None),
        ]
    );
    // What is no mail after all is text.
    let (blocks, _) = all(
        digest
            .replace("World\n--b--", "World\n--b\n\nno mail at all\n--b--")
            .as_bytes(),
        "a.eml",
    )
    .unwrap();
    assert!(
        texts(&blocks)
            .iter()
            .any(|text| text.starts_with("no mail at all"))
    );
    let bounced = "From: mailer@x.y\nSubject: Failed\nContent-Type: multipart/report; boundary=b\n\n\
        --b\n\nSorry\n--b\nContent-Type: message/delivery-status\n\nStatus: 5.1.1\n\
        --b\nContent-Type: text/x-notes; name=\"notes.txt\"\nContent-Disposition: attachment\n\nAn attached text\n--b--\n";
    let (blocks, _) = all(bounced.as_bytes(), "a.eml").unwrap();
    assert_eq!(
        texts(&blocks)[2..],
        [
            "Sorry",
            "Attached: notes.txt",
            "Status: 5.1.1",
            "An attached text"
        ]
    );
}

#[test]
fn html_is_read_if_the_plain_text_is_much_less() {
    let mail = |plain: &str| {
        format!(
            "From: a\nDate: x\nContent-Type: multipart/alternative; boundary=b\n\n--b\n\n{plain}\n--b\nContent-Type: text/html\n\n\
             <h1>Offer</h1><p>The price is 12 euros</p>\n--b--\n"
        )
    };
    let shown = |plain: &str| {
        let (blocks, _) = all(mail(plain).as_bytes(), "a.eml").unwrap();
        blocks[1].text.clone()
    };
    assert_eq!(shown("See the page"), "Offer");
    assert_eq!(
        shown("Offer: the price is 12 euros"),
        "Offer: the price is 12 euros"
    );
}

#[test]
fn mails_that_nest_too_deep_are_reported() {
    let nested = |level: &str, levels: usize| {
        let levels = (10_000..).take(levels);
        let mut mail: String = levels
            .map(|at| level.replace("#", &at.to_string()))
            .collect();
        mail.push_str("From: a\nDate: x\n\nend");
        mail.into_bytes()
    };
    let read = |mail: &[u8]| all(mail, "a.eml").unwrap().1.notice.unwrap_or_default();
    let one = "From: a\nSubject: s\nContent-Type: message/rfc822\n\n";
    assert_eq!(read(&nested(one, 7)), "");
    for level in [
        one,
        "From: a\nContent-Type: MESSAGE/Global\n\n",
        "From: a\nContent-Type: multipart/digest; boundary=#\n\n--#\n\n",
    ] {
        for levels in [20, 20_000] {
            let deep = nested(level, levels);
            let notice = read(&deep);
            assert!(notice.contains("to a depth of 8"), "{level}: {notice}");
            // What the parser would decode before it takes it apart.
            let packed = format!(
                "From: a\nContent-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{}\n",
                STANDARD.encode(&deep)
            );
            assert_eq!(read(packed.as_bytes()), notice);
        }
    }
}

#[test]
fn faults_of_a_mail_cost_nothing_else() {
    let mail = |part: &str| format!("  \r\n\nFrom: a@b.c\nSubject: Plan\n{part}");
    for (part, text) in [
        ("Content-Type: text plain\n\nA text", "A text"),
        (
            "Content-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n\n<p class=\"a\">A te=78t",
            "A text",
        ),
        (
            "Content-Type: text/html\nContent-Transfer-Encoding: base64\n\nPHA+QSB0ZXh0\nPC9wPg==\n\n___\nA list",
            "A text",
        ),
    ] {
        let (blocks, _) = all(mail(part).as_bytes(), "a.eml").unwrap();
        assert_eq!(texts(&blocks)[..3], ["Plan", "From: a@b.c", text], "{part}");
    }
    // Data without a type that can be read, and a picture in broken base64, are no text.
    for part in [
        format!("Content-Type: zip\n\n{}\0", "PK".repeat(3000)),
        "Content-Type: image/png\nContent-Transfer-Encoding: base64\n\nA text!".to_owned(),
    ] {
        let (blocks, _) = all(mail(&part).as_bytes(), "a.eml").unwrap();
        assert_eq!(texts(&blocks), ["Plan", "From: a@b.c"], "{part}");
    }
}

#[test]
fn words_for_mails_within_mails_stay_in_texts_and_names() {
    let mail = "From: a@b.c\nSubject: The Global digest of RFC822\nContent-Type: multipart/mixed; boundary=digest\n\n\
        --digest\n\nA global text\n--digest\nContent-Type: image/png; name=global.png\n\n0\n\
        --digest\nContent-Type: message/rfc822\n\nno header\n\nat all\n--digest--\n";
    let (blocks, _) = all(mail.as_bytes(), "a.eml").unwrap();
    assert_eq!(
        texts(&blocks),
        [
            "The Global digest of RFC822",
            "From: a@b.c",
            "A global text",
            "Attached: global.png",
            "no header",
            "at all"
        ]
    );
}

proptest! {
    #[test]
    fn any_damaged_mail_is_read_to_its_end(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let mut mail = b"From a\nFrom: a\nSubject: =?utf-8?B?8J?=\nContent-Type: multipart/digest; boundary=b\n\n--b\n\n=E\n--b\n\n\
            From: x\nContent-Type: multipart/mixed; boundary=c\n\n--c\nContent-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n\
            RnJvbTogeAoKeQ==\n--c--\n--b--".to_vec();
        let place = at.index(mail.len());
        mail[place] = byte;
        mail.truncate(cut.index(mail.len()) + 1);
        let _ = all(&mail, "a.eml");
    }
}
