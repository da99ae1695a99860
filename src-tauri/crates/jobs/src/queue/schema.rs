//! The queue's answers by the names of their schemas.

tierbar_http::written!(AnyError, QueuedOutcome);
