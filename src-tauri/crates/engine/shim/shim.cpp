// What the engine needs of llama.cpp's C++: chat templates and the parsing of answers (common/chat), the constraints of a
// generation (common/reasoning-budget), and the memory breakdown (llama-ext.h).
// No exception may cross into Rust: every entry point catches, and returns the message through `error`. What runs over a
// client's input or a template runs within bounds.

#include "bounds.h"
#include "chat.h"
#include "json-schema-to-grammar.h"
#include "llama-ext.h"
#include "llama-grammar.h"
#include "llama.h"
#include "log.h"
#include "reasoning-budget.h"
#include "tools.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

// Of llama.cpp's src/llama-model.h, whose other contents are of no concern here.
const std::vector<std::pair<std::string, ggml_tensor *>> & llama_internal_get_tensor_map(const llama_model * model);

namespace {

// llama.cpp warns with the text of answers that it cannot parse. Answers must not reach the log.
[[maybe_unused]] const bool quiet = (common_log_set_verbosity_thold(LOG_LEVEL_ERROR), true);

char * copy(const std::string & text) {
    char * out = static_cast<char *>(std::malloc(text.size() + 1));
    if (out != nullptr) {
        std::memcpy(out, text.c_str(), text.size() + 1);
    }
    return out;
}

constexpr int64_t MEBIBYTE = 1 << 20;
// Calls of this kind are made on a thread whose stack has room for more: memory so bounded cannot hold a value that is
// nested so deeply that freeing it, which allocates nothing, needs more.
constexpr bounds ON_DEEP_STACK = {10000, 128 * MEBIBYTE, 16 * MEBIBYTE};
// On an ordinary thread.
constexpr bounds OF_READING = {2000, 256 * MEBIBYTE, MEBIBYTE};
constexpr int64_t BYTES_OF_CONSTRAINT = 256 * MEBIBYTE;

template <typename Result, typename Body>
Result within(bounded_call & call, char ** error, Body body) {
    try {
        return body();
    } catch (const std::exception & e) {
        call.end();
        *error = copy(call.exceeded() != nullptr ? call.exceeded() : e.what());
    } catch (...) {
        call.end();
        *error = copy("unknown C++ exception");
    }
    return Result();
}

template <typename Result, typename Body>
Result guarded(const bounds & allowed, char ** error, Body body) {
    bounded_call call(allowed);
    return within<Result>(call, error, body);
}

bool given(const common_json & request, const char * key) {
    return request.contains(key) && !request.at(key).is_null();
}

common_chat_templates_inputs read_inputs(const common_json & request) {
    common_chat_templates_inputs inputs;
    inputs.use_jinja = true;
    inputs.messages = common_chat_msgs_parse_oaicompat(request.at("messages"));
    inputs.add_generation_prompt = request.value("add_generation_prompt", true);
    inputs.reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
    inputs.enable_thinking = request.value("enable_thinking", false);
    inputs.parallel_tool_calls = request.value("parallel_tool_calls", false);
    if (given(request, "tools")) {
        inputs.tools = common_chat_tools_parse_oaicompat(request.at("tools"));
    }
    if (given(request, "tool_choice")) {
        inputs.tool_choice = common_chat_tool_choice_parse_oaicompat(request.at("tool_choice").get<std::string>());
    }
    if (given(request, "grammar")) {
        inputs.grammar = request.at("grammar").get<std::string>();
    }
    if (given(request, "json_schema")) {
        inputs.json_schema = request.at("json_schema").dump();
    }
    if (given(request, "chat_template_kwargs")) {
        for (const auto & item : request.at("chat_template_kwargs").items()) {
            inputs.chat_template_kwargs[item.key()] = item.value().dump();
        }
    }
    return inputs;
}

// Word triggers of one token become that token, as the parser of the answer gets its text too.
void add_trigger(const llama_vocab * vocab, const common_grammar_trigger & trigger, common_json & patterns,
                 common_json & tokens) {
    switch (trigger.type) {
        case COMMON_GRAMMAR_TRIGGER_TYPE_TOKEN:
            tokens.push_back(trigger.token);
            break;
        case COMMON_GRAMMAR_TRIGGER_TYPE_WORD: {
            const auto ids = common_tokenize(vocab, trigger.value, false, true);
            if (ids.size() == 1) {
                tokens.push_back(ids[0]);
            } else {
                patterns.push_back(regex_escape(trigger.value));
            }
            break;
        }
        case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN:
            patterns.push_back(trigger.value);
            break;
        case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN_FULL:
            patterns.push_back("^(?:" + trigger.value + ")$");
            break;
    }
}

common_json describe(const llama_vocab * vocab, const common_chat_params & params) {
    common_json out = common_json::object();
    out["prompt"] = params.prompt;
    out["stops"] = params.additional_stops;
    out["generation_prompt"] = params.generation_prompt;
    out["grammar"] = params.grammar;
    out["grammar_lazy"] = params.grammar_lazy;
    common_json patterns = common_json::array();
    common_json tokens = common_json::array();
    common_json starts = common_json::array();
    for (const auto & trigger : params.grammar_triggers) {
        add_trigger(vocab, trigger, patterns, tokens);
        if (trigger.type == COMMON_GRAMMAR_TRIGGER_TYPE_WORD) {
            starts.push_back(trigger.value);
        }
    }
    out["call_starts"] = starts;
    out["trigger_patterns"] = patterns;
    out["trigger_tokens"] = tokens;
    common_json preserved = common_json::array();
    for (const auto & text : params.preserved_tokens) {
        const auto ids = common_tokenize(vocab, text, false, true);
        if (ids.size() == 1) {
            preserved.push_back(ids[0]);
        }
    }
    out["preserved_tokens"] = preserved;
    out["thinking_start"] = params.thinking_start_tag;
    out["thinking_ends"] = params.thinking_end_tags;
    out["format"] = static_cast<int>(params.format);
    out["parser"] = params.parser;
    return out;
}

common_json message_json(const common_chat_msg & message) {
    common_json out = common_json::object();
    out["content"] = message.content;
    out["reasoning_content"] = message.reasoning_content;
    common_json calls = common_json::array();
    for (const auto & call : message.tool_calls) {
        common_json one = common_json::object();
        one["id"] = call.id;
        one["name"] = call.name;
        one["arguments"] = call.arguments;
        calls.push_back(one);
    }
    out["tool_calls"] = calls;
    return out;
}

// What limits the choice of the next token beside the sampler chain: a grammar and a budget for thinking.
struct constraint {
    llama_sampler * grammar = nullptr;
    llama_sampler * budget = nullptr;
    // The grammar of a call as text. It follows the answer from its beginning, and holds it once the arguments of a call begin. An
    // answer that it cannot follow is none, and is free.
    llama_sampler * written = nullptr;
    bool follows_written = false;
    bool holds_written = false;
    // The answer until the arguments begin.
    std::string begun;
    const llama_vocab * vocab = nullptr;
    bool lazy = false;
    // What the last call left allocated.
    int64_t held = 0;
    // Computing that it may still use: it grows with each token, as everyone's answers wait for it.
    int64_t milliseconds = MOST_MILLISECONDS;

    static constexpr int64_t MILLISECONDS_PER_TOKEN = 250;
    static constexpr int64_t MOST_MILLISECONDS = 2000;

    ~constraint() {
        llama_sampler_free(grammar);
        llama_sampler_free(budget);
        llama_sampler_free(written);
    }

    template <typename Body>
    bool within_bounds(char ** error, Body body) {
        bounded_call call({milliseconds, BYTES_OF_CONSTRAINT, MEBIBYTE}, held);
        const bool done = within<bool>(call, error, body);
        held = call.held();
        milliseconds -= call.nanoseconds() / 1000000;
        return done;
    }

    // A lazy grammar, and that of a call as text, wait until the model has thought.
    bool thinks() const {
        if (budget == nullptr || !(lazy || grammar == nullptr)) {
            return false;
        }
        const auto state = common_reasoning_budget_get_state(budget);
        return state != REASONING_BUDGET_IDLE && state != REASONING_BUDGET_DONE;
    }

    bool grammar_applies() const { return grammar != nullptr && !holds_written && !thinks(); }

    void apply(llama_token_data_array * candidates) const {
        if (holds_written) {
            llama_sampler_apply(written, candidates);
        } else if (grammar_applies()) {
            llama_sampler_apply(grammar, candidates);
        }
    }

    // Has the grammar of a call as text begin with the next token.
    void begin_written() {
        if (written != nullptr) {
            llama_sampler_reset(written);
            begun.clear();
            follows_written = true;
        }
    }

    void follow_written(llama_token token) {
        if (!follows_written || llama_vocab_is_eog(vocab, token)) {
            return;
        }
        try {
            llama_sampler_accept(written, token);
        } catch (const std::runtime_error &) {
            // It is no call, or no token of the model fits.
            follows_written = holds_written = false;
            return;
        }
        if (!holds_written) {
            begun += common_token_to_piece(vocab, token);
            holds_written = begun.find("\"arguments\"") != std::string::npos;
        }
    }

    void accept(llama_token token) {
        const bool thought = thinks();
        const bool applied = grammar_applies();
        if (budget != nullptr) {
            llama_sampler_accept(budget, token);
            const bool done = common_reasoning_budget_get_state(budget) == REASONING_BUDGET_DONE;
            if (grammar != nullptr && thought && done) {
                // The end of the thinking may hold what triggers the grammar.
                if (const llama_tokens * end = common_reasoning_budget_get_end_match(budget)) {
                    for (const llama_token one : *end) {
                        llama_sampler_accept(grammar, one);
                    }
                }
            }
        }
        if (holds_written || !(thought || thinks())) {
            follow_written(token);
        } else if (!thinks()) {
            begin_written();
        }
        if (applied) {
            check_end(token);
            llama_sampler_accept(grammar, token);
        }
    }

    // llama.cpp aborts the process where an answer ends that must go on, as it does if no token was allowed.
    void check_end(llama_token token) {
        if (!llama_vocab_is_eog(vocab, token)) {
            return;
        }
        llama_token_data one = {token, 0.0f, 0.0f};
        llama_token_data_array end = {&one, 1, -1, false};
        llama_sampler_apply(grammar, &end);
        if (one.logit < 0.0f) {
            throw std::runtime_error("it must go on, and no token of the model fits");
        }
    }
};

// llama.cpp follows the leftmost rules of each rule without remembering where it was: this counts its steps before it
// takes them.
struct leftmost_steps {
    static constexpr int64_t MOST = 10000000;
    static constexpr size_t MOST_RULES = 50000;

    const llama_grammar_rules & rules;
    std::vector<int64_t> steps;  // 0: not known; -1: being counted

    explicit leftmost_steps(const llama_grammar_rules & rules) : rules(rules), steps(rules.size(), 0) {}

    static bool ends(const llama_grammar_element & element) {
        return element.type == LLAMA_GRETYPE_END || element.type == LLAMA_GRETYPE_ALT;
    }

    bool may_be_empty(size_t rule) const {
        bool at_start = true;
        for (const auto & element : rules[rule]) {
            if (ends(element) && at_start) {
                return true;
            }
            at_start = ends(element);
        }
        return false;
    }

    int64_t of(size_t rule) {
        if (steps[rule] < 0) {
            throw std::runtime_error("a rule begins with itself: write it so that it ends with itself");
        }
        if (steps[rule] > 0) {
            return steps[rule];
        }
        steps[rule] = -1;
        int64_t sum = 1;
        bool leftmost = true;
        for (const auto & element : rules[rule]) {
            if (element.type == LLAMA_GRETYPE_RULE_REF && leftmost) {
                sum = std::min(MOST, sum + of(element.value));
                leftmost = may_be_empty(element.value);
            } else {
                leftmost = ends(element);
            }
        }
        return steps[rule] = sum;
    }
};

void check_grammar(const llama_vocab * vocab, const std::string & text) {
    llama_grammar_parser parser(vocab);
    if (!parser.parse(text.c_str()) || parser.symbol_ids.find("root") == parser.symbol_ids.end()) {
        throw std::runtime_error("the grammar does not parse, repeats too often, or has no rule `root`");
    }
    if (parser.rules.size() > leftmost_steps::MOST_RULES) {
        throw std::runtime_error("the grammar has too many rules: repeat less");
    }
    leftmost_steps steps(parser.rules);
    int64_t sum = 0;
    for (size_t rule = 0; rule < parser.rules.size(); rule++) {
        sum += steps.of(rule);
    }
    if (sum >= leftmost_steps::MOST) {
        throw std::runtime_error("the grammar's rules begin with one another in too many ways");
    }
}

// Whether llama.cpp can follow the grammar.
bool is_sound(const llama_vocab * vocab, const std::string & grammar) {
    try {
        check_grammar(vocab, grammar);
        return true;
    } catch (const std::runtime_error &) {
        return false;
    }
}

// Renders the request, with its tools in the template's own form, or, with `generic_tools`, in one that the messages tell.
// A required call is always held to its schema, in whichever form can. In the generic form, an answer that is no call may have a
// form of its own.
common_chat_params render(const common_chat_templates * templates, const llama_vocab * vocab, const common_json & request) {
    common_chat_templates_inputs inputs = read_inputs(request);
    const bool generic = request.value("generic_tools", false);
    const bool offers = !inputs.tools.empty() && inputs.tool_choice != COMMON_CHAT_TOOL_CHOICE_NONE;
    const bool required = inputs.tool_choice == COMMON_CHAT_TOOL_CHOICE_REQUIRED;
    const call_rules rules = {required, inputs.parallel_tool_calls, inputs.enable_thinking};
    const bool formed = generic && offers && given(request, "json_schema");
    if (generic) {
        inputs.tools.clear();
    }
    if (formed) {
        inputs.json_schema.clear();
    }
    common_chat_params params = common_chat_templates_apply(templates, inputs);
    if (!offers) {
        return params;
    }
    const common_json & tools = request.at("tools");
    const common_json & held = given(request, "held_tools") ? request.at("held_tools") : tools;
    if (!generic) {
        mend_form(params, held);
    }
    const bool native = !generic && (!required || (begin_at_call(params, held, rules) && is_sound(vocab, params.grammar)));
    if (!native) {
        use_generic_calls(params, held, rules, formed ? &request.at("json_schema") : nullptr);
    } else if (!required && given(request, "held_tools")) {
        const std::string grammar = grammar_with(params, held);
        params.grammar = is_sound(vocab, grammar) ? grammar : params.grammar;
    }
    return params;
}

// The grammar of a call as text; empty if a function's schema has none.
std::string written_grammar(const common_json & tools) {
    try {
        return written_call_grammar(tools);
    } catch (const std::exception &) {
        return {};
    }
}

llama_sampler * read_grammar(const llama_vocab * vocab, const common_json & spec) {
    const auto text = spec.value("grammar", std::string());
    if (text.empty()) {
        return nullptr;
    }
    check_grammar(vocab, text);
    llama_sampler * grammar = nullptr;
    if (spec.value("grammar_lazy", false)) {
        const auto patterns = spec.at("trigger_patterns").get<std::vector<std::string>>();
        const auto tokens = spec.at("trigger_tokens").get<std::vector<llama_token>>();
        std::vector<const char *> pointers;
        for (const auto & pattern : patterns) {
            pointers.push_back(pattern.c_str());
        }
        grammar = llama_sampler_init_grammar_lazy_patterns(vocab, text.c_str(), "root", pointers.data(), pointers.size(),
                                                           tokens.data(), tokens.size());
    } else {
        grammar = llama_sampler_init_grammar(vocab, text.c_str(), "root");
    }
    if (grammar == nullptr) {
        throw std::runtime_error("the grammar does not parse");
    }
    return grammar;
}

}  // namespace

extern "C" {

struct tierbar_memory {
    size_t weights_mapped;
    size_t weights;
    size_t weights_device;
    size_t kv;
    size_t compute;
};

void tierbar_string_free(char * text) {
    std::free(text);
}

// The model's own Jinja template, or the given one if it is not empty, parsed. NULL and `error` if it does not parse.
common_chat_templates * tierbar_chat_new(const llama_model * model, const char * given, char ** error) {
    return guarded<common_chat_templates *>(ON_DEEP_STACK, error, [&] {
        for (const char * text : {given, llama_model_chat_template(model, nullptr), llama_model_chat_template(model, "tool_use")}) {
            // llama.cpp divides without a look at the divisor, and a zero ends the process.
            if (text != nullptr && std::strstr(text, "divisibleby") != nullptr) {
                throw std::runtime_error("it uses the test `divisibleby`, which is not supported");
            }
        }
        return common_chat_templates_init(model, given).release();
    });
}

void tierbar_chat_free(common_chat_templates * templates) {
    common_chat_templates_free(templates);
}

// Renders an OpenAI-style request, a JSON object with `messages`. Returns a JSON object with the prompt and with how the
// answer is to be constrained and parsed; the caller frees it with tierbar_string_free.
char * tierbar_chat_apply(const common_chat_templates * templates, const llama_model * model, const char * request,
                          char ** error) {
    bounds allowed = ON_DEEP_STACK;
    allowed.bytes += 16 * static_cast<int64_t>(std::strlen(request));
    return guarded<char *>(allowed, error, [&] {
        const llama_vocab * vocab = llama_model_get_vocab(model);
        const common_json from = common_json::parse(request);
        const common_chat_params params = render(templates, vocab, from);
        common_json out = describe(vocab, params);
        if (from.value("written_calls", false)) {
            out["written_grammar"] = written_grammar(given(from, "held_tools") ? from.at("held_tools") : from.at("tools"));
        }
        const bool offered = given(from, "tools") && !from.at("tools").empty();
        out["calls_only"] = offered && from.value("tool_choice", std::string()) == "required";
        out["one_call"] = offered && !from.value("parallel_tool_calls", false);
        if (from.value("try_tools", false)) {
            const auto caps = common_chat_templates_get_caps(templates);
            const auto tools = caps.find("supports_tools");
            out["calls_tools"] = tools != caps.end() && tools->second && reads_calls(params);
        }
        return copy(out.dump_safe());
    });
}

// Makes the parser of the answer to a rendered request. `spec` is what tierbar_chat_apply returned.
common_chat_parser_params * tierbar_parser_new(const char * spec, char ** error) {
    return guarded<common_chat_parser_params *>(ON_DEEP_STACK, error, [&] {
        const common_json from = common_json::parse(spec);
        auto params = std::make_unique<common_chat_parser_params>();
        params->format = static_cast<common_chat_format>(from.at("format").get<int>());
        params->reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
        params->generation_prompt = from.at("generation_prompt").get<std::string>();
        const auto parser = from.at("parser").get<std::string>();
        if (!parser.empty()) {
            params->parser.load(parser);
        }
        return params.release();
    });
}

void tierbar_parser_free(common_chat_parser_params * parser) {
    delete parser;
}

// Reads the answer so far; `deep`: on a deep stack. Returns a JSON object with `content`, `reasoning_content` and `tool_calls`.
char * tierbar_parser_read(const common_chat_parser_params * parser, const char * text, bool partial, bool deep,
                           char ** error) {
    return guarded<char *>(deep ? ON_DEEP_STACK : OF_READING, error,
                           [&] { return copy(message_json(common_chat_parse(text, partial, *parser)).dump_safe()); });
}

// The GBNF of what follows a JSON schema; the caller frees it with tierbar_string_free.
char * tierbar_schema_grammar(const char * schema, char ** error) {
    return guarded<char *>(ON_DEEP_STACK, error, [&] {
        const std::string grammar = json_schema_to_grammar(common_json::parse(schema));
        check_grammar(nullptr, grammar);
        return copy(grammar);
    });
}

// Makes a constraint of a JSON object with `grammar`, `written_grammar` and the like, as tierbar_chat_apply returns them, `prefill`
// (whether the grammar begins with the generation prompt), and `thinking_budget` in tokens, below 0 for none.
constraint * tierbar_constraint_new(const llama_model * model, const char * spec, char ** error) {
    return guarded<constraint *>(ON_DEEP_STACK, error, [&] {
        const llama_vocab * vocab = llama_model_get_vocab(model);
        const common_json from = common_json::parse(spec);
        auto made = std::make_unique<constraint>();
        made->vocab = vocab;
        made->lazy = from.value("grammar_lazy", false);
        made->grammar = read_grammar(vocab, from);
        const auto written = from.value("written_grammar", std::string());
        if (!written.empty() && (made->lazy || made->grammar == nullptr) && is_sound(vocab, written)) {
            made->written = llama_sampler_init_grammar(vocab, written.c_str(), "root");
            made->follows_written = made->written != nullptr;
        }
        const auto begun = common_tokenize(vocab, from.value("generation_prompt", std::string()), false, true);
        if (made->grammar != nullptr && !made->lazy && from.value("prefill", false)) {
            for (const llama_token token : begun) {
                llama_sampler_accept(made->grammar, token);
            }
        }
        const auto start = from.value("thinking_start", std::string());
        const auto ends = given(from, "thinking_ends") ? from.at("thinking_ends").get<std::vector<std::string>>()
                                                       : std::vector<std::string>();
        const int budget = from.value("thinking_budget", -1);
        if (!start.empty() && !ends.empty() && (made->lazy || made->written != nullptr || budget >= 0)) {
            std::vector<llama_tokens> end_tokens;
            for (const auto & end : ends) {
                end_tokens.push_back(common_tokenize(vocab, end, false, true));
            }
            made->budget = common_reasoning_budget_init(vocab, {common_tokenize(vocab, start, false, true)}, end_tokens,
                                                        end_tokens.front(), budget < 0 ? INT_MAX : budget);
            for (const llama_token token : begun) {
                llama_sampler_accept(made->budget, token);
            }
        }
        return made.release();
    });
}

void tierbar_constraint_free(constraint * made) {
    delete made;
}

// Takes away what the budget does not allow; with `grammar`, also what the grammar does not.
bool tierbar_constraint_apply(constraint * made, llama_token_data_array * candidates, bool grammar, char ** error) {
    return made->within_bounds(error, [&] {
        if (made->budget != nullptr) {
            llama_sampler_apply(made->budget, candidates);
        }
        if (grammar) {
            made->apply(candidates);
        }
        return true;
    });
}

bool tierbar_constraint_accept(constraint * made, llama_token token, char ** error) {
    made->milliseconds = std::min(made->milliseconds + constraint::MILLISECONDS_PER_TOKEN, constraint::MOST_MILLISECONDS);
    return made->within_bounds(error, [&] {
        made->accept(token);
        return true;
    });
}

// Calls with the name and the address of each weight that the CPU reads from the mapping of a file.
void tierbar_each_mapped_weight(const llama_model * model, void (*each)(void *, const char *, size_t), void * data) {
    for (const auto & [name, tensor] : llama_internal_get_tensor_map(model)) {
        const bool mapped = tensor->buffer != nullptr && ggml_backend_buffer_is_host(tensor->buffer) &&
                            std::strcmp(ggml_backend_buffer_name(tensor->buffer), "CPU_Mapped") == 0;
        if (mapped) {
            each(data, name.c_str(), reinterpret_cast<size_t>(tensor->data));
        }
    }
}

// What the context and its model hold, in bytes. Weights are counted tensor by tensor: a buffer over the mapping spans all
// of the file, those that were copied out of it too.
void tierbar_memory_breakdown(const llama_context * ctx, tierbar_memory * out) {
    *out = {};
    try {
        for (const auto & [name, tensor] : llama_internal_get_tensor_map(llama_get_model(ctx))) {
            if (tensor->buffer == nullptr) {
                continue;
            }
            // A mapped weight is file-backed: its buffer is named so.
            const bool mapped = std::strstr(ggml_backend_buffer_name(tensor->buffer), "Mapped") != nullptr;
            // A layout of the CPU's own is not `host` to ggml, but lies in the process all the same.
            const auto type = ggml_backend_buffer_get_type(tensor->buffer);
            const auto device = ggml_backend_buft_get_device(type);
            const bool host = device == nullptr || ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU;
            (mapped ? out->weights_mapped : host ? out->weights : out->weights_device) +=
                ggml_backend_buffer_get_alloc_size(tensor->buffer, tensor);
        }
        for (const auto & [type, bytes] : llama_get_memory_breakdown(ctx)) {
            out->kv += bytes.context;
            out->compute += bytes.compute;
        }
    } catch (...) {
        *out = {};
    }
}

}  // extern "C"
