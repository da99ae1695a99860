//! The checked-in list of models: which ones, in which quants, from where, and what is known of their architecture.
