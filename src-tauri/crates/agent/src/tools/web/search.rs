//! Search providers: the request for some words, and the hits in its answer.

use crate::{consent::WebAddress, tools::Failure};
use serde::Deserialize;
use tierbar_documents::markup::html::{Piece, Pieces};
use url::Url;

/// How many hits are kept.
const HITS: usize = 8;
/// The longest words that are sent, in characters.
const WORDS: usize = 400;

/// Who searches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provider {
    /// DuckDuckGo's page for browsers without scripts. It has no API and needs no key.
    DuckDuckGo,
    /// Brave's API, which needs a key.
    Brave,
    /// A server of the user's, which may be in this network. Its `search.formats` must have `json`.
    SearXng(Url),
}

/// One page that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub title: String,
    pub address: WebAddress,
    pub excerpt: String,
}

/// What is requested of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchRequest {
    pub url: Url,
    /// The header that carries the user's key, if it needs one.
    pub key_header: Option<&'static str>,
}

#[derive(Deserialize)]
struct Brave {
    web: Option<Results>,
}

#[derive(Deserialize)]
struct Results {
    results: Vec<FoundPage>,
}

#[derive(Default, Deserialize)]
struct FoundPage {
    #[serde(default)]
    title: String,
    url: String,
    /// SearXNG's excerpt.
    content: Option<String>,
    /// Brave's.
    description: Option<String>,
}

impl Provider {
    /// The server that sees the words.
    pub fn name(&self) -> String {
        match self {
            Self::DuckDuckGo => "duckduckgo.com".to_owned(),
            Self::Brave => "search.brave.com".to_owned(),
            Self::SearXng(url) => url.host_str().unwrap_or("SearXNG").to_owned(),
        }
    }

    /// The request for some words.
    ///
    /// # Errors
    /// [`Failure`] for a SearXNG whose address cannot be one.
    pub fn request(&self, words: &str) -> Result<SearchRequest, Failure> {
        let words: String = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let words: String = words.chars().take(WORDS).collect();
        let url = match self {
            Self::DuckDuckGo => "https://html.duckduckgo.com/html/",
            Self::Brave => "https://api.search.brave.com/res/v1/web/search",
            Self::SearXng(url) => url.as_str(),
        };
        let wrong = |error| {
            Failure(format!(
                "{url} is not the address of a search provider: {error}"
            ))
        };
        let mut url = Url::parse(url).map_err(wrong)?;
        if let Self::SearXng(_) = self {
            let path = url.path().trim_end_matches('/').to_owned();
            let path = path.strip_suffix("/search").unwrap_or(&path);
            url.set_path(&format!("{path}/search"));
        }
        let more = match self {
            Self::DuckDuckGo => None,
            Self::Brave => Some(("count", HITS.to_string())),
            Self::SearXng(_) => Some(("format", "json".to_owned())),
        };
        let query = [("q", words)].into_iter().chain(more);
        url.query_pairs_mut().extend_pairs(query);
        let key_header = (*self == Self::Brave).then_some("X-Subscription-Token");
        Ok(SearchRequest { url, key_header })
    }

    /// The hits in the answer, without pages inside this network.
    ///
    /// # Errors
    /// [`Failure`] for an answer without the expected form.
    pub fn hits(&self, answer: &str) -> Result<Vec<Hit>, Failure> {
        let wrong = |error: serde_json::Error| {
            Failure(format!("{} did not return hits: {error}", self.name()))
        };
        let found = match self {
            Self::DuckDuckGo => parse_duckduckgo(answer)?,
            Self::Brave => {
                let found: Brave = serde_json::from_str(answer).map_err(wrong)?;
                let pages = found.web.map(|web| web.results).unwrap_or_default();
                let plain = pages.into_iter().map(|page| FoundPage {
                    title: to_plain_text(&page.title),
                    description: page.description.map(|text| to_plain_text(&text)),
                    ..page
                });
                plain.collect()
            }
            Self::SearXng(_) => {
                let found: Results = serde_json::from_str(answer).map_err(wrong)?;
                found.results
            }
        };
        let mut hits: Vec<Hit> = Vec::new();
        for page in found {
            let Ok(address) = WebAddress::parse(&page.url) else {
                continue;
            };
            if hits.len() < HITS && !hits.iter().any(|hit| hit.address == address) {
                let excerpt = page.content.or(page.description).unwrap_or_default();
                hits.push(Hit {
                    title: page.title.trim().to_owned(),
                    address,
                    excerpt: excerpt.trim().to_owned(),
                });
            }
        }
        Ok(hits)
    }
}

/// Brave marks the words that were found.
fn to_plain_text(html: &str) -> String {
    let pieces = Pieces::new(html).filter_map(|piece| match piece {
        Piece::Text(text) => Some(text),
        _ => None,
    });
    pieces.collect()
}

/// The hits of DuckDuckGo's page: a link of the class `result__a`, and later one of the class `result__snippet`.
fn parse_duckduckgo(html: &str) -> Result<Vec<FoundPage>, Failure> {
    enum In {
        Nothing,
        Title,
        Excerpt,
    }
    let mut hits: Vec<FoundPage> = Vec::new();
    let mut inside = In::Nothing;
    let mut is_answer = false;
    for piece in Pieces::new(html) {
        match piece {
            Piece::Start(tag) => {
                let class = tag.attribute("class").unwrap_or_default();
                let has = |wanted: &str| class.split_ascii_whitespace().any(|one| one == wanted);
                if class.contains("anomaly") {
                    return Err(Failure::new(
                        "DuckDuckGo wants to know whether a person is searching; try again later, or set up another provider",
                    ));
                }
                is_answer |= has("results") || has("no-results") || has("result");
                if has("result__a") {
                    let target = tag.attribute("href").and_then(link_target);
                    if let Some(url) = target {
                        hits.push(FoundPage {
                            url,
                            ..FoundPage::default()
                        });
                        inside = In::Title;
                    }
                } else if has("result__snippet") {
                    inside = In::Excerpt;
                }
            }
            Piece::End(name) if name == "a" || name == "div" => inside = In::Nothing,
            Piece::End(_) => {}
            Piece::Text(text) => {
                if let Some(hit) = hits.last_mut() {
                    match inside {
                        In::Nothing => {}
                        In::Title => hit.title += &text,
                        In::Excerpt => *hit.content.get_or_insert_default() += &text,
                    }
                }
            }
        }
    }
    if hits.is_empty() && !is_answer {
        return Err(Failure::new("DuckDuckGo did not return hits"));
    }
    Ok(hits)
}

/// Where a link of DuckDuckGo's leads. Its advertisements lead through another address, and to none.
fn link_target(href: &str) -> Option<String> {
    let base = Url::parse("https://duckduckgo.com/").ok()?;
    let url = base.join(href).ok()?;
    let is_theirs = url.host_str() == Some("duckduckgo.com");
    if !is_theirs {
        return Some(url.into());
    }
    let mut pairs = url.query_pairs();
    let (_, target) = pairs.find(|(name, _)| name == "uddg")?;
    // An advertisement in the form of a hit.
    let inner = Url::parse(&target).ok()?;
    (inner.host_str() != Some("duckduckgo.com")).then(|| target.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_words_are_url_encoded() {
        let duck = Provider::DuckDuckGo.request("a & b=c\n?  d").unwrap();
        assert_eq!(
            duck.url.as_str(),
            "https://html.duckduckgo.com/html/?q=a+%26+b%3Dc+%3F+d"
        );
        assert_eq!(duck.key_header, None);
        let brave = Provider::Brave.request("x").unwrap();
        assert!(brave.url.as_str().ends_with("?q=x&count=8"));
        assert_eq!(brave.key_header, Some("X-Subscription-Token"));
        for address in [
            "http://box:8080",
            "http://box:8080/",
            "http://box:8080/search",
        ] {
            let provider = Provider::SearXng(Url::parse(address).unwrap());
            let url = provider.request("x").unwrap().url;
            assert_eq!(url.as_str(), "http://box:8080/search?q=x&format=json");
        }
        let long = Provider::DuckDuckGo.request(&"x".repeat(5_000)).unwrap();
        assert!(long.url.as_str().len() < 500);
    }

    #[test]
    fn duckduckgos_page_is_read() {
        let html = r#"<div class="results">
            <div class="result result--ad"><h2><a rel="nofollow" class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fduckduckgo.com%2Fy.js%3Fad_domain%3Dx">Buy</a></h2>
              <a class="result__snippet" href="x">An ad</a></div>
            <div class="result"><h2><a rel="nofollow" class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fexample.com%2Fa%3Fb%3D1&amp;rut=123">A <b>title</b></a></h2>
              <a class="result__url" href="x">example.com</a>
              <a class="result__snippet" href="x">Some <b>words</b> &amp; more</a></div>
            <div class="result"><a class="result__a" href="https://direct.example/">Direct</a></div>
            <div class="result"><a class="result__a" href="//duckduckgo.com/l/?uddg=http%3A%2F%2F127.0.0.1%2F">Inside</a></div>
            <div class="result"><a class="result__a" href="https://direct.example/">Again</a></div></div>"#;
        let hits = Provider::DuckDuckGo.hits(html).unwrap();
        let seen: Vec<_> = hits
            .iter()
            .map(|hit| {
                (
                    hit.title.as_str(),
                    hit.address.url().as_str(),
                    hit.excerpt.as_str(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("A title", "https://example.com/a?b=1", "Some words & more"),
                ("Direct", "https://direct.example/", "")
            ]
        );
        let none = Provider::DuckDuckGo.hits("<div class='no-results'>None</div>");
        assert_eq!(none, Ok(Vec::new()));
        for html in [
            "",
            "<p>Sorry</p>",
            "<div class='anomaly-modal__title'>Robots?",
        ] {
            assert!(Provider::DuckDuckGo.hits(html).is_err(), "{html}");
        }
    }

    #[test]
    fn answers_in_json_are_read() {
        let brave = r#"{"type":"search","web":{"results":[{"title":"A <strong>b</strong>","url":"https://example.com/","description":"c &amp; d"}]}}"#;
        let hits = Provider::Brave.hits(brave).unwrap();
        assert_eq!(
            (hits[0].title.as_str(), hits[0].excerpt.as_str()),
            ("A b", "c & d")
        );
        assert_eq!(Provider::Brave.hits(r#"{"type":"search"}"#), Ok(Vec::new()));
        let own = Provider::SearXng(Url::parse("http://box/").unwrap());
        let answer = r#"{"query":"x","results":[{"url":"https://example.com/","title":"T","content":null},{"url":"http://10.0.0.1/","title":"Inside"}]}"#;
        let hits = own.hits(answer).unwrap();
        assert_eq!(hits.len(), 1);
        for wrong in ["", "<html>", "[]", r#"{"results":1}"#] {
            assert!(own.hits(wrong).is_err(), "{wrong}");
        }
    }
}
