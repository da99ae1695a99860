//! What tasks read and answer, by the names of their schemas; the rest of the requests is described where it is read.

tierbar_http::written!(
    BriefAnswer,
    CompressAnswer,
    SummarizeAnswer,
    TaskMessage,
    TriageAnswer,
);
