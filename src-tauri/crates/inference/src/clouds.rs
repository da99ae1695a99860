//! Servers that answer for a tier in another dialect than OpenAI's, translated at their connection.

pub mod anthropic;
