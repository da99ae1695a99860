//! Saved contexts by the names of their schemas.

tierbar_http::written!(
    ContextDeleted,
    ContextEntry,
    ContextSave,
    Contexts,
    SavedContext,
);
