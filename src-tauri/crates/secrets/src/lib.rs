//! Keys and tokens, kept where the system keeps them; never in the configuration, the database, argv or a log.
