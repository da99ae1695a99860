//! A session of a browser's driver, by the commands of <https://www.w3.org/TR/webdriver2/> that tests need.

use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

/// The key of an element's reference in an answer.
const REFERENCE: &str = "element-6066-11e4-a52e-4f735466cecf";

/// What the driver answers to a command that fails, such as that there is no such element.
pub(super) type Failure = String;

#[derive(Debug)]
pub struct Session {
    http: Client,
    url: String,
}

/// An element of a page, as long as it is there.
#[derive(Debug)]
pub struct Element(String);

impl Session {
    /// Begins a session of the driver at this URL.
    ///
    /// # Errors
    /// As the driver says.
    ///
    /// # Panics
    /// If there cannot be an HTTP client.
    pub async fn start(driver: &str, capabilities: &Value) -> Result<Self, Failure> {
        let http = tierbar_fetch::loopback().build().expect("an HTTP client");
        let body = json!({ "capabilities": { "alwaysMatch": capabilities } });
        let begun = answer(http.post(format!("{driver}/session")).json(&body)).await?;
        let id = text(&begun["sessionId"])?;
        Ok(Self {
            http,
            url: format!("{driver}/session/{id}"),
        })
    }

    /// # Errors
    /// As the driver says.
    pub async fn windows(&self) -> Result<Vec<String>, Failure> {
        let windows = self.get("window/handles").await?;
        serde_json::from_value(windows).map_err(|error| error.to_string())
    }

    /// # Errors
    /// As the driver says.
    pub async fn switch_to(&self, window: &str) -> Result<(), Failure> {
        self.post("window", &json!({ "handle": window })).await?;
        Ok(())
    }

    /// The address of the page.
    ///
    /// # Errors
    /// As the driver says.
    pub async fn url(&self) -> Result<String, Failure> {
        text(&self.get("url").await?)
    }

    /// The first element that the CSS selector names.
    ///
    /// # Errors
    /// As the driver says.
    pub async fn find(&self, css: &str) -> Result<Element, Failure> {
        let body = json!({ "using": "css selector", "value": css });
        let found = self.post("element", &body).await?;
        text(&found[REFERENCE]).map(Element)
    }

    /// # Errors
    /// As the driver says.
    pub async fn is_enabled(&self, element: &Element) -> Result<bool, Failure> {
        let Element(element) = element;
        let enabled = self.get(&format!("element/{element}/enabled")).await?;
        Ok(enabled == true)
    }

    /// # Errors
    /// As the driver says.
    pub async fn click(&self, element: &Element) -> Result<(), Failure> {
        let Element(element) = element;
        self.post(&format!("element/{element}/click"), &json!({}))
            .await?;
        Ok(())
    }

    /// # Errors
    /// As the driver says.
    pub async fn send_keys(&self, element: &Element, keys: &str) -> Result<(), Failure> {
        let Element(element) = element;
        let body = json!({ "text": keys });
        self.post(&format!("element/{element}/value"), &body)
            .await?;
        Ok(())
    }

    /// Runs a script and returns what it returns.
    ///
    /// # Errors
    /// As the driver says.
    pub async fn execute(&self, script: &str, arguments: Vec<Value>) -> Result<Value, Failure> {
        let body = json!({ "script": script, "args": arguments });
        self.post("execute/sync", &body).await
    }

    /// Runs a script and returns what it calls its last argument with.
    ///
    /// # Errors
    /// As the driver says.
    pub async fn execute_async(&self, script: &str) -> Result<Value, Failure> {
        let body = json!({ "script": script, "args": [] });
        self.post("execute/async", &body).await
    }

    /// The page as PNG.
    ///
    /// # Errors
    /// As the driver says.
    pub async fn screenshot(&self) -> Result<Vec<u8>, Failure> {
        let encoded = text(&self.get("screenshot").await?)?;
        BASE64_STANDARD
            .decode(encoded)
            .map_err(|error| error.to_string())
    }

    async fn get(&self, command: &str) -> Result<Value, Failure> {
        answer(self.http.get(format!("{}/{command}", self.url))).await
    }

    async fn post(&self, command: &str, body: &Value) -> Result<Value, Failure> {
        answer(self.http.post(format!("{}/{command}", self.url)).json(body)).await
    }
}

async fn answer(request: RequestBuilder) -> Result<Value, Failure> {
    let response = request.send().await.map_err(|error| error.to_string())?;
    let is_success = response.status().is_success();
    let mut answer: Value = response.json().await.map_err(|error| error.to_string())?;
    let value = answer["value"].take();
    if is_success {
        Ok(value)
    } else {
        Err(value.to_string())
    }
}

fn text(value: &Value) -> Result<String, Failure> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| format!("{value} is no text"))
}
