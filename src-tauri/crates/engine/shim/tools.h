// Tool calls: those of a template's own form, made to begin at once, and those of a form for templates that have none.

#pragma once

#include "chat.h"

// Whether the parser of the answer reads calls.
bool reads_calls(const common_chat_params & params);

struct call_rules {
    // The answer is calls, with nothing before them but thinking.
    bool required = false;
    // The answer may have several calls.
    bool parallel = false;
    // The model was told to think. Before a required call it may not otherwise, as it may not come to an end.
    bool thinks = false;
};

// Has the answer to a rendered request begin at its call. `tools` are OpenAI's. Returns false, and changes nothing, if the
// template's form does not hold arguments to their schema.
bool begin_at_call(common_chat_params & params, const common_json & tools, const call_rules & rules);

// Has a template's own form read calls as the template writes them, where llama.cpp has misread it.
void mend_form(common_chat_params & params, const common_json & tools);

// Returns the grammar of a template's own form with the schemas of `tools`, which are other ones than it was made of; the grammar
// that it has if its form does not hold arguments to them.
std::string grammar_with(const common_chat_params & params, const common_json & tools);

// Has the answer be text or calls as JSON between tags. `form`: the JSON schema of an answer that is no call; null for text.
void use_generic_calls(common_chat_params & params, const common_json & tools, const call_rules & rules, const common_json * form);

// Returns the grammar of an answer that begins with a call as JSON, in a code block or a tag that the template does not know; anything
// may follow the call.
std::string written_call_grammar(const common_json & tools);
