//! The APIs of OpenAI, Anthropic and Ollama.

mod anthropic;
mod broken_streams;
mod contexts;
mod models;
mod ollama;
mod openai_responses;
mod routes;
