//! What was fetched, from where, with which hash: one small file beside each model in `.tierbar/`.
