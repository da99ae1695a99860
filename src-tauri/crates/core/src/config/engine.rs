//! What answers for a tier: our worker, a command, or an endpoint.

use super::{Dollars, Size, Span};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};
use std::{collections::BTreeMap, fmt, time::Duration};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, OneOfBuilder, Ref, RefOr,
        schema::{Schema, Type},
    },
};

/// `"embedded"`, `{ command = [...], … }` or `{ endpoint = "http://…" }`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Engine {
    /// `tierbar-worker`.
    #[default]
    Embedded,
    Command(CommandEngine),
    Endpoint(EndpointEngine),
}

#[cfg(openapi)]
impl PartialSchema for Engine {
    fn schema() -> RefOr<Schema> {
        let embedded = ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(["embedded"]));
        OneOfBuilder::new()
            .item(embedded)
            .item(Ref::from_schema_name("CommandEngine"))
            .item(Ref::from_schema_name("EndpointEngine"))
            .into()
    }
}

#[cfg(openapi)]
impl ToSchema for Engine {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push(("CommandEngine".to_owned(), CommandEngine::schema()));
        schemas.push(("EndpointEngine".to_owned(), EndpointEngine::schema()));
        CommandEngine::schemas(schemas);
        EndpointEngine::schemas(schemas);
    }
}

/// A program with OpenAI's API, started and ended like our worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CommandEngine {
    /// The program and its arguments; the host replaces `{socket}` and `{port}`.
    pub command: Vec<String>,
    /// The most memory that the program uses. The plan relies on it.
    pub memory: Size,
    /// A path that returns 2xx once the model is loaded.
    pub health: String,
    /// The port on 127.0.0.1; without it, a free one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    pub stop_signal: StopSignal,
    /// How long it may take to end before it is killed.
    pub stop_deadline: Span,
    /// How long it may take to load.
    pub load_deadline: Span,
    /// Environment variables besides the few that every worker gets. Do not put keys here.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// A server that runs by itself: nothing is loaded, and no memory is planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct EndpointEngine {
    /// The URL before `/v1/…`.
    pub endpoint: String,
    /// The price of a million prompt tokens, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_price: Option<Dollars>,
    /// The price of a million answer tokens, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_price: Option<Dollars>,
    /// The price of a million prompt tokens that are read from the server's cache; by default half of `input_price`, in Anthropic's
    /// dialect a tenth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_price: Option<Dollars>,
    /// The price of a million prompt tokens that are written to it, by default 1.25 times `input_price`. Those written for an hour cost
    /// 1.6 times as much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_price: Option<Dollars>,
    /// The server's API; OpenAI's by default.
    #[serde(skip_serializing_if = "Dialect::is_openai")]
    pub dialect: Dialect,
}

/// The dialect of an endpoint. Clients are always answered in their own dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub enum Dialect {
    /// `/v1/chat/completions`.
    #[default]
    #[serde(rename = "openai")]
    OpenAi,
    /// `/v1/messages`.
    #[serde(rename = "anthropic")]
    Anthropic,
}

impl Dialect {
    pub(super) fn is_openai(&self) -> bool {
        *self == Self::OpenAi
    }
}

crate::words! {
    /// The signal that asks a program to end.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
    pub enum StopSignal {
        #[default]
        Term = "SIGTERM",
        Int = "SIGINT",
        Quit = "SIGQUIT",
        Hup = "SIGHUP",
    }
}

impl CommandEngine {
    pub const SOCKET: &'static str = "{socket}";
    pub const PORT: &'static str = "{port}";
    /// The same as our worker's.
    const STOP_DEADLINE: Span = Span::seconds(5);
    const LONGEST_STOP: Duration = Duration::from_secs(60);
    /// Large models load from slow disks, and some servers download theirs first.
    const LOAD_DEADLINE: Span = Span::seconds(600);

    /// Returns whether an argument contains the placeholder.
    pub fn asks_for(&self, placeholder: &str) -> bool {
        let mut arguments = self.command.iter().skip(1);
        arguments.any(|argument| argument.contains(placeholder))
    }

    /// The program's file name.
    pub fn name(&self) -> &str {
        let program = self.command.first().map_or("", String::as_str);
        program.rsplit('/').next().unwrap_or(program)
    }

    fn check(&self) -> Result<(), String> {
        let wrong = |what: &str| Err(what.to_owned());
        let whole = |text: &String| !text.contains('\0');
        if self.name().is_empty() || !self.command.iter().all(whole) {
            return wrong(
                "the command must be a list of the program and its arguments, such as [\"llama-server\", \"-m\", …]",
            );
        }
        let (socket, port) = (self.asks_for(Self::SOCKET), self.asks_for(Self::PORT));
        if socket && (port || self.port.is_some()) {
            return wrong("the command has both a socket and a port: use one");
        }
        if !socket && !port && self.port.is_none() {
            return wrong(
                "the command has no address: pass {socket} or {port} as an argument, or set `port`",
            );
        }
        if self.port == Some(0) {
            return wrong("a port must be between 1 and 65535");
        }
        let health = &self.health;
        if !health.starts_with('/') || !health.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("\"{health}\" is not a path such as \"/health\""));
        }
        // An ending host waits this long, and so does the next one after a host was killed.
        if self.stop_deadline.0 > Self::LONGEST_STOP {
            let most = Self::LONGEST_STOP.as_secs();
            return Err(format!("stop_deadline is at most {most} s"));
        }
        if self.memory.0 == 0 {
            return wrong("memory must be more than 0");
        }
        let named = |name: &String| !name.is_empty() && !name.contains(['=', '\0']);
        let mut env = self.env.iter();
        match env.find(|(name, value)| !named(name) || !whole(value)) {
            Some((name, _)) => Err(format!("env: \"{name}\" is not a valid variable name")),
            None => Ok(()),
        }
    }
}

/// Returns a URL's scheme and its server, with the port if there is one.
pub fn server_of(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    Some((scheme, rest.split(['/', '?', '#']).next().unwrap_or(rest)))
}

impl EndpointEngine {
    /// Returns `https://host:port`, which people see and keys belong to.
    pub fn server(&self) -> &str {
        server_of(&self.endpoint).map_or("", |(_, server)| server)
    }

    fn check(&self) -> Result<(), String> {
        if self.server().contains('@') {
            return Err(format!(
                "keys do not belong in the configuration: store this one with `tierbar secret set {}`",
                self.server().rsplit('@').next().unwrap_or_default()
            ));
        }
        let wrong = |why: &str| {
            format!(
                "\"{}\" {why}: use a URL such as \"http://127.0.0.1:11434\", without /v1",
                self.endpoint
            )
        };
        let (scheme, rest) = self
            .endpoint
            .split_once("://")
            .ok_or_else(|| wrong("is not a URL"))?;
        if !matches!(scheme, "http" | "https") {
            return Err(wrong("does not start with http:// or https://"));
        }
        if self.server().is_empty() || !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong("is not a URL"));
        }
        if rest.contains(['?', '#']) {
            return Err(wrong("has more than a path after the server"));
        }
        if rest.trim_end_matches('/').ends_with("/v1") {
            return Err(wrong("ends in /v1, which Tierbar adds"));
        }
        Ok(())
    }
}

crate::words::from_word! { StopSignal: "is not SIGTERM, SIGINT, SIGQUIT or SIGHUP"; }

impl Serialize for Engine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Embedded => serializer.serialize_str("embedded"),
            Self::Command(command) => command.serialize(serializer),
            Self::Endpoint(endpoint) => endpoint.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Engine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EngineVisitor)
    }
}

struct EngineVisitor;

/// All keys that an engine's table may have.
#[derive(Deserialize)]
struct Table {
    command: Option<Vec<String>>,
    memory: Option<Size>,
    health: Option<String>,
    port: Option<u16>,
    stop_signal: Option<StopSignal>,
    stop_deadline: Option<Span>,
    load_deadline: Option<Span>,
    env: Option<BTreeMap<String, String>>,
    endpoint: Option<String>,
    input_price: Option<Dollars>,
    output_price: Option<Dollars>,
    cache_read_price: Option<Dollars>,
    cache_write_price: Option<Dollars>,
    dialect: Option<Dialect>,
}

impl<'de> Visitor<'de> for EngineVisitor {
    type Value = Engine;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "\"embedded\", { command = […], memory = \"…\" } or { endpoint = \"http://…\" }",
        )
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Engine, E> {
        match word {
            "embedded" => Ok(Engine::Embedded),
            _ => Err(E::invalid_value(de::Unexpected::Str(word), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Engine, A::Error> {
        let table = Table::deserialize(MapAccessDeserializer::new(map))?;
        table.engine().map_err(de::Error::custom)
    }
}

impl Table {
    fn engine(self) -> Result<Engine, String> {
        let of_command = [
            self.memory.is_some(),
            self.health.is_some(),
            self.port.is_some(),
            self.stop_signal.is_some(),
            self.stop_deadline.is_some(),
            self.load_deadline.is_some(),
            self.env.is_some(),
        ];
        let wrong = |what: &str| Err(what.to_owned());
        match (self.command, self.endpoint) {
            (Some(_), Some(_)) => wrong("an engine is either a command or an endpoint, not both"),
            (None, None) => wrong("an engine needs a `command` or an `endpoint`"),
            (None, Some(endpoint)) => {
                if of_command.contains(&true) {
                    return wrong(
                        "an endpoint cannot have a command's keys: nothing is started for it",
                    );
                }
                let endpoint = EndpointEngine {
                    endpoint,
                    input_price: self.input_price,
                    output_price: self.output_price,
                    cache_read_price: self.cache_read_price,
                    cache_write_price: self.cache_write_price,
                    dialect: self.dialect.unwrap_or_default(),
                };
                endpoint.check()?;
                Ok(Engine::Endpoint(endpoint))
            }
            (Some(command), None) => {
                let prices = [
                    self.input_price,
                    self.output_price,
                    self.cache_read_price,
                    self.cache_write_price,
                ];
                if prices.iter().any(Option::is_some) {
                    return wrong("only an endpoint can have a price");
                }
                if self.dialect.is_some() {
                    return wrong(
                        "only an endpoint can have a dialect: a command must speak OpenAI's",
                    );
                }
                let memory = self.memory.ok_or(
                    "set the most memory that the command uses, such as memory = \"6GiB\"",
                )?;
                let command = CommandEngine {
                    command,
                    memory,
                    health: self.health.unwrap_or_else(|| "/health".to_owned()),
                    port: self.port,
                    stop_signal: self.stop_signal.unwrap_or_default(),
                    stop_deadline: self.stop_deadline.unwrap_or(CommandEngine::STOP_DEADLINE),
                    load_deadline: self.load_deadline.unwrap_or(CommandEngine::LOAD_DEADLINE),
                    env: self.env.unwrap_or_default(),
                };
                command.check()?;
                Ok(Engine::Command(command))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(value: Value) -> Result<Engine, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn each_kind_of_engine_survives_a_round_trip() {
        for value in [
            json!("embedded"),
            json!({"endpoint": "https://api.example.com:8443/openai"}),
            json!({"endpoint": "https://api.anthropic.com", "dialect": "anthropic"}),
            json!({"endpoint": "http://a", "input_price": 1.0, "output_price": 2.0, "cache_read_price": 0.1, "cache_write_price": 1.5}),
            json!({
                "command": ["llama-server", "--host", "{socket}"], "memory": "6GiB", "health": "/health",
                "stop_signal": "SIGINT", "stop_deadline": "5s", "load_deadline": "10m", "env": {"LLAMA_ARG_X": "1"},
            }),
        ] {
            let engine = read(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&engine).unwrap(), value);
        }
        let Ok(Engine::Command(command)) =
            read(json!({"command": ["/opt/s", "{port}"], "memory": "512MiB"}))
        else {
            panic!("no command");
        };
        assert_eq!((command.name(), command.memory.0), ("s", 512 << 20));
        assert_eq!(&*command.health, "/health");
        assert_eq!(command.stop_signal, StopSignal::Term);
    }

    #[test]
    fn invalid_engines_are_refused_with_a_hint() {
        let command = |more: Value| {
            let mut table = json!({"command": ["s", "{port}"], "memory": "1GiB"});
            for (key, value) in more.as_object().unwrap() {
                table[key] = value.clone();
            }
            table
        };
        for (value, expected) in [
            (json!("worker"), "expected \"embedded\""),
            (json!(5), "expected \"embedded\""),
            (json!({}), "a `command` or an `endpoint`"),
            (json!({"command": ["s", "{port}"]}), "memory = \"6GiB\""),
            (command(json!({"endpoint": "http://a"})), "not both"),
            (command(json!({"command": []})), "must be a list"),
            (command(json!({"command": ["s"]})), "{socket} or {port}"),
            (
                command(json!({"command": ["{port}"]})),
                "{socket} or {port}",
            ),
            (
                command(json!({"command": ["s", "{port}", "{socket}"]})),
                "use one",
            ),
            (
                command(json!({"command": ["s", "{socket}"], "port": 1})),
                "use one",
            ),
            (command(json!({"port": 0})), "1 and 65535"),
            (command(json!({"health": "health"})), "not a path"),
            (command(json!({"memory": "0GiB"})), "more than 0"),
            (command(json!({"memory": "6"})), "6GiB"),
            (command(json!({"stop_signal": "SIGKILL"})), "SIGKILL"),
            (command(json!({"env": {"A=B": ""}})), "A=B"),
            (
                json!({"endpoint": "http://a", "memory": "1GiB"}),
                "a command's keys",
            ),
            (
                json!({"endpoint": "http://a", "dialect": "latin"}),
                "`openai` or `anthropic`",
            ),
            (command(json!({"dialect": "openai"})), "only an endpoint"),
            (command(json!({"cache_read_price": 1.0})), "a price"),
            (json!({"endpoint": "127.0.0.1:80"}), "is not a URL"),
            (
                json!({"endpoint": "ftp://a"}),
                "does not start with http://",
            ),
            (json!({"endpoint": "http:///x"}), "is not a URL"),
            (json!({"endpoint": "http://a b"}), "is not a URL"),
            (json!({"endpoint": "http://a/?x=1"}), "more than a path"),
            (json!({"endpoint": "http://a/v1/"}), "ends in /v1"),
            (
                json!({"endpoint": "https://me:key@a.b"}),
                "tierbar secret set a.b",
            ),
        ] {
            let error = read(value.clone()).unwrap_err();
            assert!(error.contains(expected), "{value}: {error}");
        }
        // A key is not repeated.
        let error = read(json!({"endpoint": "https://me:key@a.b"})).unwrap_err();
        assert!(!error.contains("key@"), "{error}");
    }
}
