//! The header of a model that is still on a server, read by byte ranges.
