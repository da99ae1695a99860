// Tool calls: those of a template's own form, made to begin at once, and those of a form for templates that have none.

#pragma once

#include "chat.h"

// Whether the parser of the answer reads calls.
bool reads_calls(const common_chat_params & params);

// Has the answer to a rendered request be a call, with nothing before it but thinking. `tools` are OpenAI's. Returns false,
// and changes nothing, if the template's form does not hold arguments to their schema.
bool begin_at_call(common_chat_params & params, const common_json & tools, bool parallel);

// Has the answer be text or calls as JSON between tags; with `required`, only calls.
void use_generic_calls(common_chat_params & params, const common_json & tools, bool required, bool parallel);
