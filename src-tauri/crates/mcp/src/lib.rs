//! The tools of MCP servers that the user adds.
