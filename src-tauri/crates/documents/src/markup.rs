//! Markup of strangers as pieces: HTML as browsers read it, and the XML of Office. Nothing is nested here, so nothing can nest too deep.

pub mod html;
pub(crate) mod xml;
