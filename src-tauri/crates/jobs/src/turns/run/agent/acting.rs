//! What an agent acts with: its folder, the web, documents and MCP servers.

use super::shelf::Shelf;
use crate::{
    Jobs,
    mcp::{Servers, stored_secret},
    turns::grants::KeptGrants,
};
use secrecy::SecretString;
use std::{fs::File, sync::Arc};
use tierbar_agent::{
    agent::{ActResult, Bounds, Task, Way},
    calls::Surroundings,
    consent::{Act, General, Grants, PermittedAct},
    tools::{
        Excerpt, Workplace,
        shell::Terms,
        web::{Page, Provider, read_page},
    },
};
use tierbar_chats::agent::{AgentOptions, AgentWay};
use tierbar_core::{
    Config, Error, bad_request, config::McpServerConfig, documents::FileText, home::from_home,
    nearest::suggest,
};
use tierbar_documents::charset::{self, DecodedText};
use tierbar_fetch::{Get, Url, Web, WebOptions, blocking};
use tierbar_inference::{Inference, services::SandboxPlace};
use tierbar_sandbox::Limits;
use tierbar_secrets::{Name, Secrets};

/// The longest page that is read, in bytes.
const PAGE_BYTES: usize = 4 << 20;
/// How many of a page's links the model reads.
const LINKS: usize = 30;
/// What a turn acts with.
pub(in crate::turns) struct Acting {
    pub(super) options: AgentOptions,
    chat: String,
    pub(super) place: Option<Arc<Workplace>>,
    provider: Option<Provider>,
    /// The provider's key, if it needs one.
    key: Option<SecretString>,
    web: Option<Web>,
    pub(super) shelf: Option<Shelf>,
    /// The MCP servers that it may use, and those that are connected.
    pub(super) wanted: Vec<(String, McpServerConfig)>,
    pub(super) servers: Servers,
    /// What was allowed beyond once, in all chats.
    pub(super) grants: Arc<KeptGrants>,
    /// Whether a person can be asked. Otherwise, every act that needs consent is refused.
    pub(in crate::turns) is_attended: bool,
}

impl Acting {
    /// Opens what the options name.
    ///
    /// # Errors
    /// `BadRequest` for a folder, a provider, a collection or a server that cannot be used; `Internal` if there is no sandbox.
    pub(in crate::turns) async fn prepare(
        options: AgentOptions,
        chat: &str,
        jobs: &Arc<Jobs>,
    ) -> Result<Self, Error> {
        let place = match &options.folder {
            Some(folder) => Some(Arc::new(open_folder(folder, jobs).await?)),
            None => None,
        };
        let provider = options.search.as_deref().map(provider).transpose()?;
        let key = match provider {
            Some(Provider::Brave) => Some(brave_key(&jobs.inference.secrets).await?),
            _ => None,
        };
        let web = (provider.is_some() || options.pages)
            .then(|| Web::new(WebOptions::default()))
            .transpose()?;
        let shelf = match &options.documents {
            Some(documents) => Shelf::open(documents, jobs).await?,
            None => None,
        };
        let wanted = match options.way {
            AgentWay::Calls | AgentWay::Auto => chosen_servers(
                options.servers.as_deref(),
                &jobs.inference.services.config(),
            )?,
            AgentWay::Text => Vec::new(),
        };
        jobs.turns.grants.load(&jobs.store).await?;
        Ok(Self {
            chat: chat.to_owned(),
            place,
            provider,
            key,
            web,
            shelf,
            wanted,
            servers: Servers::default(),
            grants: Arc::clone(&jobs.turns.grants),
            is_attended: true,
            options,
        })
    }

    pub(super) fn task(&self, question: String, way: AgentWay) -> Task {
        let allow = self.options.allow;
        Task {
            question,
            chat: self.chat.clone(),
            way: match way {
                AgentWay::Auto | AgentWay::Calls => Way::Calls,
                AgentWay::Text => Way::Text { grammar: true },
            },
            surroundings: Surroundings {
                folder: self
                    .place
                    .as_ref()
                    .map(|place| place.folder.path().to_owned()),
                provider: self.provider.as_ref().map(Provider::name),
                pages: self.options.pages,
                documents: self.shelf.as_ref().map(|shelf| shelf.collections().clone()),
                external: self.servers.tools(),
                programs: self.place.as_ref().and_then(|place| place.programs.clone()),
            },
            general: General {
                reading: allow.reading,
                search: allow.search,
                known_pages: allow.known_pages,
            },
            grants: Grants::new(self.grants.list.lock().clone(), &self.chat),
            bounds: Bounds::default(),
        }
    }

    pub(super) async fn search(&self, words: &str) -> Result<ActResult, String> {
        let (Some(web), Some(provider)) = (&self.web, &self.provider) else {
            return Err("there is no search provider".to_owned());
        };
        let request = provider.request(words).map_err(|failure| failure.0)?;
        let mut get = Get::new(request.url);
        if request.key_header.is_some() {
            get.token.clone_from(&self.key);
            get.token_header = request.key_header;
        }
        let answer = web.get(get).await;
        let answer = answer.map_err(|error| error.message)?;
        let bytes = answer.bytes(PAGE_BYTES).await;
        let bytes = bytes.map_err(|error| error.message)?;
        let text = String::from_utf8_lossy(&bytes);
        let hits = provider.hits(&text).map_err(|failure| failure.0)?;
        let lines = hits.iter().enumerate().map(|(at, hit)| {
            let address = hit.address.url();
            format!("{}. {}\n{address}\n{}", at + 1, hit.title, hit.excerpt)
        });
        let text = lines.collect::<Vec<_>>().join("\n\n");
        Ok(ActResult {
            text: if text.is_empty() {
                "nothing was found".to_owned()
            } else {
                text
            },
            addresses: hits.into_iter().map(|hit| hit.address).collect(),
            failed: false,
        })
    }

    pub(super) async fn page(&self, url: &Url) -> Result<ActResult, String> {
        let web = self.web.as_ref().ok_or("pages cannot be opened")?;
        let answer = web.get_public(Get::new(url.clone())).await;
        let answer = answer.map_err(|error| error.message)?;
        let kind = answer.content_type.clone().unwrap_or_default();
        let is_html = kind.contains("html");
        let is_text = ["text/", "json", "xml"]
            .iter()
            .any(|word| kind.contains(word));
        if !kind.is_empty() && !is_html && !is_text {
            return Err(format!("this is not a page but {kind}"));
        }
        let came_from = answer.url.clone();
        let bytes = answer.bytes(PAGE_BYTES).await;
        let bytes = bytes.map_err(|error| error.message)?;
        // A large page takes as long as a large file.
        let read = tokio::task::spawn_blocking(move || {
            let is_html = is_html || kind.is_empty();
            let declared = charset::declared_by(&kind);
            let DecodedText { text, doubt } =
                charset::decode(&bytes, declared.as_deref(), is_html)?;
            let text = if is_html {
                page_text(&read_page(&text, &came_from))
            } else {
                text
            };
            Some(doubt.map_or_else(String::new, |doubt| doubt + "\n\n") + &text)
        });
        let read = read.await.map_err(|ended| ended.to_string())?;
        let text = read.ok_or("this page holds no text")?;
        Ok(ActResult::text(text))
    }
}

/// Reads a document of the folder, from a line of its text on.
pub(super) async fn read_document(
    inference: &Inference,
    file: File,
    permitted: &PermittedAct,
) -> Result<ActResult, String> {
    let Act::Read {
        path, from_line, ..
    } = permitted.act()
    else {
        return Err("this does not read a file".to_owned());
    };
    let reading = inference
        .services
        .read_file(file, path.display().to_string());
    let FileText { text, notice } = reading.await.map_err(|error| error.message)?;
    let notice = notice.map_or_else(String::new, |notice| format!("[{notice}]\n\n"));
    let text = Excerpt::from_line(&text, *from_line).render(path);
    Ok(ActResult::text(notice + &text))
}

/// Opens the folder of an agent by its real path, which may begin with `~/`.
///
/// # Errors
/// `BadRequest` for one that is not there, is relative, lies behind a symbolic link, would show what is protected, or holds Tierbar's
/// programs; `Internal` if there is no sandbox.
pub(in crate::turns) async fn open_folder(folder: &str, jobs: &Jobs) -> Result<Workplace, Error> {
    let path = from_home(folder, tierbar_nofollow::home());
    if !path.is_absolute() {
        let message = format!("\"{folder}\" is not an absolute path");
        return Err(bad_request(message).hint("begin the path of the agent's folder with / or ~/"));
    }
    let SandboxPlace {
        launcher,
        protected,
    } = jobs.inference.services.sandbox()?;
    let terms = Terms {
        limits: Limits::default(),
        protected,
    };
    let opened = blocking("opening the agent's folder", move || {
        if matches!(path.try_exists(), Ok(false)) {
            let error = bad_request(format!("there is no folder {}", path.display()));
            return Err(error.hint("create it, or enter another path"));
        }
        let place = Workplace::open(&path, terms, launcher);
        place.map_err(|failure| bad_request(failure.0))
    });
    opened.await
}

/// The MCP servers that a turn may use, of those that are configured.
fn chosen_servers(
    names: Option<&[String]>,
    config: &Config,
) -> Result<Vec<(String, McpServerConfig)>, Error> {
    let pair = |(name, server): (&String, &McpServerConfig)| (name.clone(), server.clone());
    let Some(names) = names else {
        let enabled = config.mcp.iter().filter(|(_, server)| server.enabled);
        return Ok(enabled.map(pair).collect());
    };
    let found = names.iter().map(|name| {
        let server = config.mcp.get_key_value(name).map(pair);
        server.ok_or_else(|| {
            let known = config.mcp.keys().map(String::as_str);
            let hint = suggest(name, known, "`tierbar mcp-servers list` lists them");
            bad_request(format!("there is no MCP server \"{name}\"")).hint(hint)
        })
    });
    found.collect()
}

/// What the model reads of a page.
fn page_text(page: &Page) -> String {
    let mut text = format!("{}\n\n{}", page.title, page.text);
    if !page.links.is_empty() {
        text.push_str("\n\nLinks:");
        for link in page.links.iter().take(LINKS) {
            text.push_str(&format!("\n{}: {}", link.text, link.url));
        }
    }
    text
}

fn provider(name: &str) -> Result<Provider, Error> {
    Ok(match (name, Url::parse(name)) {
        ("duckduckgo", _) => Provider::DuckDuckGo,
        ("brave", _) => Provider::Brave,
        (_, Ok(url)) if matches!(url.scheme(), "http" | "https") => Provider::SearXng(url),
        _ => {
            return Err(bad_request(format!("\"{name}\" is no search provider"))
                .hint("write \"duckduckgo\", \"brave\", or the address of a SearXNG"));
        }
    })
}

async fn brave_key(secrets: &Secrets) -> Result<SecretString, Error> {
    let key = stored_secret(secrets, Name::BraveSearch).await?;
    key.ok_or_else(|| {
        let message = "Brave's search needs a key, and none is saved";
        bad_request(message).hint("save it in Settings, or with: tierbar secret set brave-search")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn servers_are_those_that_are_enabled_or_named() {
        let config: Config = serde_json::from_value(json!({"mcp": {
            "notes": {"command": ["notes"]},
            "off": {"command": ["off"], "enabled": false},
        }}))
        .unwrap();
        let names = |chosen: Option<&[&str]>| {
            let chosen: Option<Vec<_>> =
                chosen.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            let wanted = chosen_servers(chosen.as_deref(), &config)?;
            Ok::<_, Error>(wanted.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        assert_eq!(names(None).unwrap(), ["notes"]);
        assert_eq!(names(Some(&[])).unwrap(), [""; 0]);
        assert_eq!(names(Some(&["off"])).unwrap(), ["off"]);
        let error = names(Some(&["note"])).unwrap_err();
        assert!(error.hint.unwrap().contains("notes"));
    }

    #[test]
    fn a_provider_has_a_name_or_an_address() {
        assert_eq!(provider("duckduckgo").unwrap(), Provider::DuckDuckGo);
        assert_eq!(provider("brave").unwrap(), Provider::Brave);
        let own = provider("http://127.0.0.1:8080").unwrap();
        assert!(matches!(own, Provider::SearXng(_)));
        for wrong in ["", "google", "file:///etc"] {
            assert!(provider(wrong).is_err(), "{wrong}");
        }
    }
}
