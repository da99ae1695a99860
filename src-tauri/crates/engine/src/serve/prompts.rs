//! The prompts of requests as tokens.

use super::{Engine, MOST_PROMPTS, parse_body};
use crate::{
    bad,
    generate::Media,
    llama::{Prompt, Token},
    request::{ChatRequest, PromptInput, check_tokens},
};
use serde_json::{Value, json};
use std::sync::{Arc, atomic::AtomicBool};
use tierbar_core::Error;

/// A prompt's tokens, and the media of its stand-ins.
pub(super) type ReadPrompt = (Vec<Token>, Arc<[Media]>);

impl Engine {
    /// Reads a chat, with the tier's default for thinking.
    pub(super) fn read_request(&self, body: &[u8]) -> Result<ChatRequest, Error> {
        let mut request: ChatRequest = parse_body(body)?;
        if self.thinking {
            request.think_by_default();
        }
        Ok(request)
    }

    /// Renders the conversation by the model's template, with stand-ins for images and sounds, which are taken out of the
    /// request; with `begins`, it includes the start of the answer. Takes seconds for an image on a CPU, and ends early
    /// when `gone` is set.
    pub(super) fn read_chat(
        &self,
        request: &mut ChatRequest,
        begins: bool,
        gone: &Arc<AtomicBool>,
    ) -> Result<(Prompt, ReadPrompt), Error> {
        request.check_messages()?;
        let sent = match &self.media {
            Ok(reader) => reader.take(&mut request.messages)?,
            Err(reason) if request.has_media() => return Err(reason.clone()),
            Err(_) => Vec::new(),
        };
        let prompt = if begins {
            self.rendered(request)?
        } else {
            let mut input = request.template_input(self.template.calls_tools)?;
            input["add_generation_prompt"] = json!(false);
            self.apply(request, &input)?
        };
        let read = match &self.media {
            Ok(reader) if !sent.is_empty() => {
                let context = self.context_tokens as usize;
                reader.read_prompt(&prompt.prompt, sent, context, gone)?
            }
            _ => {
                let tokens = self.model.tokenize(&prompt.prompt, true, true)?;
                (tokens, Arc::default())
            }
        };
        Ok((prompt, read))
    }

    /// Renders the prompt for an answer.
    pub(super) fn rendered(&self, request: &ChatRequest) -> Result<Prompt, Error> {
        let input = request.template_input(self.template.calls_tools)?;
        if let Some(begun) = request.begun() {
            let mut before = input.clone();
            before["messages"].as_array_mut().map(Vec::pop);
            let mut prompt = self.apply(request, &before)?;
            if prompt.takes_words() {
                prompt.prompt.push_str(&begun);
                return Ok(prompt);
            }
        }
        // A message that cannot be continued becomes a message of its own, which every template supports.
        self.apply(request, &input)
    }

    fn apply(&self, request: &ChatRequest, input: &Value) -> Result<Prompt, Error> {
        self.template
            .apply(input)
            .map_err(|error| request.explain(error))
    }

    /// Returns the tokens of the prompts and, for `echo`, their texts.
    pub(super) fn read_prompts(
        &self,
        prompts: Vec<PromptInput>,
        echo: bool,
    ) -> Result<(Vec<Vec<Token>>, Vec<String>), Error> {
        if prompts.is_empty() || prompts.len() > MOST_PROMPTS {
            return Err(bad(format!(
                "`prompt` has {} texts; send 1 to {MOST_PROMPTS}",
                prompts.len()
            )));
        }
        let (mut lists, mut echoes) = (Vec::new(), Vec::new());
        for prompt in prompts {
            let (tokens, text) = match prompt {
                PromptInput::Text(text) => (self.model.tokenize(&text, true, true)?, Some(text)),
                PromptInput::Tokens(tokens) => {
                    check_tokens("prompt", &tokens, self.model.vocabulary())?;
                    (tokens, None)
                }
            };
            if echo {
                echoes.push(text.unwrap_or_else(|| self.text_of(&tokens)));
            }
            lists.push(tokens);
        }
        Ok((lists, echoes))
    }

    fn text_of(&self, tokens: &[Token]) -> String {
        let mut bytes = Vec::new();
        for &token in tokens {
            self.model.append_piece(token, true, &mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
