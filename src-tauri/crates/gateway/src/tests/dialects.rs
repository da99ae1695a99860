//! The APIs of OpenAI, Anthropic and Ollama.

mod anthropic;
mod contexts;
mod models;
mod ollama;
mod openai_responses;
mod routes;
