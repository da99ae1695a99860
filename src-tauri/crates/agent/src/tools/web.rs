//! Search and pages: what is requested, and what is read of the answer. Pure: the host connects, and checks where names lead.

mod html;
mod search;

pub use html::{Link, Page, read_page};
pub use search::{Hit, Provider, SearchRequest};
