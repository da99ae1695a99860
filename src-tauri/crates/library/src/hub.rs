//! The hub's API: what a repository holds, how large it is, what it hashes to; and search.
