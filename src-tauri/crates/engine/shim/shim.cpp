// What the engine needs of llama.cpp's C++: chat templates (common/chat) and the memory breakdown (llama-ext.h).
// No exception may cross into Rust: every entry point catches, and returns the message through `error`.

#include "chat.h"
#include "llama-ext.h"
#include "llama.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

namespace {

char * copy(const std::string & text) {
    char * out = static_cast<char *>(std::malloc(text.size() + 1));
    if (out != nullptr) {
        std::memcpy(out, text.c_str(), text.size() + 1);
    }
    return out;
}

template <typename Result, typename Body>
Result guarded(char ** error, Body body) {
    try {
        return body();
    } catch (const std::exception & e) {
        *error = copy(e.what());
    } catch (...) {
        *error = copy("unknown C++ exception");
    }
    return Result();
}

bool given(const common_json & request, const char * key) {
    return request.contains(key) && !request.at(key).is_null();
}

common_chat_templates_inputs read_inputs(const common_json & request) {
    common_chat_templates_inputs inputs;
    inputs.use_jinja = true;
    inputs.messages = common_chat_msgs_parse_oaicompat(request.at("messages"));
    inputs.add_generation_prompt = request.value("add_generation_prompt", true);
    inputs.enable_thinking = request.value("enable_thinking", false);
    if (given(request, "chat_template_kwargs")) {
        for (const auto & item : request.at("chat_template_kwargs").items()) {
            inputs.chat_template_kwargs[item.key()] = item.value().dump();
        }
    }
    const auto thinking = inputs.chat_template_kwargs.find("enable_thinking");
    if (thinking != inputs.chat_template_kwargs.end()) {
        inputs.enable_thinking = thinking->second == "true";
    }
    return inputs;
}

}  // namespace

extern "C" {

struct tierbar_memory {
    size_t weights_mapped;
    size_t weights;
    size_t kv;
    size_t compute;
};

void tierbar_string_free(char * text) {
    std::free(text);
}

// The model's own Jinja template, parsed. NULL and `error` if it does not parse.
common_chat_templates * tierbar_chat_new(const llama_model * model, char ** error) {
    return guarded<common_chat_templates *>(error, [&] { return common_chat_templates_init(model, "").release(); });
}

void tierbar_chat_free(common_chat_templates * templates) {
    common_chat_templates_free(templates);
}

// Renders an OpenAI-style request, a JSON object with `messages`. Returns a JSON object with `prompt` and
// `stops`; the caller frees it with tierbar_string_free.
char * tierbar_chat_apply(const common_chat_templates * templates, const char * request, char ** error) {
    return guarded<char *>(error, [&] {
        const common_chat_params params =
            common_chat_templates_apply(templates, read_inputs(common_json::parse(request)));
        common_json out = common_json::object();
        out["prompt"] = params.prompt;
        out["stops"] = params.additional_stops;
        return copy(out.dump_safe());
    });
}

// What the context and its model hold, in bytes. A mapped weight is file-backed: its buffer type is named so.
void tierbar_memory_breakdown(const llama_context * ctx, tierbar_memory * out) {
    *out = {};
    try {
        for (const auto & [type, bytes] : llama_get_memory_breakdown(ctx)) {
            const bool mapped = std::strstr(ggml_backend_buft_name(type), "Mapped") != nullptr;
            (mapped ? out->weights_mapped : out->weights) += bytes.model;
            out->kv += bytes.context;
            out->compute += bytes.compute;
        }
    } catch (...) {
        *out = {};
    }
}

}  // extern "C"
