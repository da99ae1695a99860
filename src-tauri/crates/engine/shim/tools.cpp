#include "tools.h"

#include "chat-peg-parser.h"
#include "json-schema-to-grammar.h"
#include "peg-parser.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace {

const char * const CALL_START = "<tool_call>";
const char * const CALL_END = "</tool_call>";
// What some models put around a call in place of their template's tags, besides a code block.
const char * const OTHER_TAGS[] = {"<tool>", "<tools>", "<tool_calls>", "<function>", "<functions>", "<function_call>", "<function_calls>"};
// The longest name of a code block's language.
constexpr int LONGEST_LANGUAGE = 20;

const common_peg_tag_parser * as_tag(const common_peg_parser_variant & parser, const char * tag) {
    const auto * tagged = std::get_if<common_peg_tag_parser>(&parser);
    return tagged != nullptr && tagged->tag == tag ? tagged : nullptr;
}

common_peg_arena parser_of(const common_chat_params & params) {
    common_peg_arena arena;
    if (!params.parser.empty()) {
        arena.load(params.parser);
    }
    return arena;
}

// The schemas of functions by the names that llama.cpp gives them. Empty if rules of two functions, or of one and the form,
// have the same name.
std::map<std::string, common_chat_schema_document_ptr> schemas_of(const common_json & tools) {
    std::map<std::string, common_chat_schema_document_ptr> schemas;
    std::set<std::string> rules = {"call", "calls", "call-root", "call-first"};
    for (size_t index = 0; index < tools.size(); index++) {
        const common_json & function = tools.at(index).at("function");
        const auto name = function.at("name").get<std::string>();
        std::string rule;
        for (const char c : name) {
            const bool kept = std::isalnum(static_cast<unsigned char>(c)) || c == '-';
            if (kept || rule.empty() || rule.back() != '-') {
                rule += kept ? c : '-';
            }
        }
        if (!rules.insert(rule).second) {
            return {};
        }
        schemas["tool-" + name + "-schema"] = std::make_shared<const common_chat_schema_document>(
            common_chat_schema_from_json(common_chat_tool_parameters(function)));
    }
    // A function's name may be that of a rule in the schema of another.
    for (const auto & rule : rules) {
        for (size_t at = rule.find("-schema"); at != std::string::npos; at = rule.find("-schema", at + 1)) {
            if (rules.count(rule.substr(0, at)) > 0) {
                return {};
            }
        }
    }
    return schemas;
}

std::string grammar_of(const common_peg_arena & parser, bool lazy) {
    return build_grammar([&](const common_grammar_builder & builder) { parser.build_grammar(builder, lazy); });
}

// What is read below each parser of a form.
struct form_parts {
    struct found {
        bool text = false;
        bool thought = false;
        bool call = false;
    };
    std::vector<found> below;
    std::vector<bool> known;

    explicit form_parts(const common_peg_arena & arena) : below(arena.size()), known(arena.size(), false) {
        for (size_t id = 0; id < arena.size(); id++) {
            find(arena, id);
        }
    }

    const found & find(const common_peg_arena & arena, size_t id) {
        if (known[id]) {
            return below[id];
        }
        // JSON's rules refer to themselves.
        known[id] = true;
        found here;
        if (const auto * tag = std::get_if<common_peg_tag_parser>(&arena.get(id))) {
            here.text = tag->tag == common_chat_peg_builder::CONTENT;
            here.thought = tag->tag == common_chat_peg_builder::REASONING;
            here.call = tag->tag == common_chat_peg_builder::TOOL_NAME;
        }
        for (const size_t child : children_of(arena, id)) {
            const found & part = find(arena, child);
            here.text = here.text || part.text;
            here.thought = here.thought || part.thought;
            here.call = here.call || part.call;
        }
        return below[id] = here;
    }

    static std::vector<size_t> children_of(const common_peg_arena & arena, size_t id) {
        return std::visit(
            [&](const auto & parser) -> std::vector<size_t> {
                using T = std::decay_t<decltype(parser)>;
                if constexpr (std::is_same_v<T, common_peg_sequence_parser> || std::is_same_v<T, common_peg_choice_parser>) {
                    return parser.children;
                } else if constexpr (std::is_same_v<T, common_peg_ref_parser>) {
                    return {arena.get_rule(parser.name)};
                } else if constexpr (std::is_same_v<T, common_peg_repetition_parser> || std::is_same_v<T, common_peg_rule_parser> ||
                                     std::is_same_v<T, common_peg_tag_parser> || std::is_same_v<T, common_peg_atomic_parser>) {
                    return {parser.child};
                } else {
                    // What looks ahead reads nothing, and the others are of arguments.
                    return {};
                }
            },
            arena.get(id));
    }
};

// The most characters of what a call has besides its arguments, such as an id.
constexpr int LONGEST_WORD = 40;

common_peg_chars_parser word() {
    return {"[A-Za-z0-9_-]", {{'A', 'Z'}, {'a', 'z'}, {'0', '9'}, {'_', '_'}, {'-', '-'}}, false, 1, LONGEST_WORD};
}

// Takes from a parser what is neither a call nor, if the model thinks, a thought, and what could go on without an end.
void allow_only_calls(common_peg_arena & arena, size_t id, const form_parts & parts, const call_rules & rules) {
    common_peg_parser_variant & parser = arena.get(id);
    const auto & [text, thought, call] = parts.below[id];
    if (as_tag(parser, common_chat_peg_builder::CONTENT) != nullptr ||
        (as_tag(parser, common_chat_peg_builder::REASONING) != nullptr && !rules.thinks)) {
        parser = common_peg_space_parser{};
    } else if (const auto * known = as_tag(parser, common_chat_peg_builder::TOOL_ID)) {
        if (std::holds_alternative<common_peg_until_parser>(arena.get(known->child))) {
            arena.get(known->child) = word();
        }
    } else if (std::holds_alternative<common_peg_string_parser>(parser)) {
        parser = word();
    } else if (auto * chars = std::get_if<common_peg_chars_parser>(&parser)) {
        chars->max_count = chars->max_count < 0 ? LONGEST_WORD : chars->max_count;
    } else if (auto * choice = std::get_if<common_peg_choice_parser>(&parser)) {
        if (thought || call) {
            // Otherwise empty messages.
            auto & ways = choice->children;
            const auto is_text = [&](size_t way) {
                const auto & part = parts.below[way];
                return part.text && !part.thought && !part.call;
            };
            ways.erase(std::remove_if(ways.begin(), ways.end(), is_text), ways.end());
        }
    } else if (auto * repeated = std::get_if<common_peg_repetition_parser>(&parser)) {
        const bool is_message = repeated->min_count == 0 && !call;
        // Text alone is blanks by now.
        const bool wraps_text = text && !thought && !std::holds_alternative<common_peg_space_parser>(arena.get(repeated->child));
        if (is_message && repeated->max_count < 0 && thought && rules.thinks) {
            repeated->max_count = 1;
        } else if (is_message && (wraps_text || (repeated->max_count < 0 && thought))) {
            parser = common_peg_epsilon_parser{};
        }
    } else if (const auto * rule = std::get_if<common_peg_rule_parser>(&parser)) {
        // Some forms repeat calls whatever the request says.
        auto * calls = std::get_if<common_peg_repetition_parser>(&arena.get(rule->child));
        if (!rules.parallel && rule->trigger && calls != nullptr) {
            calls->max_count = 1;
        }
    }
}

// Has arguments follow the schemas, which what is saved of a parser does not include. Returns how many do.
size_t hold_to_schemas(common_peg_arena & arena, const common_json & tools) {
    const auto schemas = schemas_of(tools);
    size_t held = 0;
    for (size_t id = 0; id < arena.size(); id++) {
        if (auto * schema = std::get_if<common_peg_schema_parser>(&arena.get(id))) {
            const auto known = schemas.find(schema->name);
            if (known == schemas.end()) {
                return 0;
            }
            schema->doc = known->second;
            schema->node = known->second->root.get();
            held++;
        }
    }
    return held;
}

common_json sequence_of(const std::vector<size_t> & children) {
    common_json sequence = common_json::object();
    sequence["type"] = "sequence";
    sequence["children"] = children;
    return sequence;
}

// Returns where a call opens if its name ends with the marker of the arguments, and the marker comes again behind an id.
const common_peg_tag_parser * doubly_marked(const common_peg_arena & arena, const common_peg_sequence_parser & call) {
    if (call.children.size() < 3) {
        return nullptr;
    }
    const auto * atomic = std::get_if<common_peg_atomic_parser>(&arena.get(call.children[0]));
    const auto * open = atomic == nullptr ? nullptr : as_tag(arena.get(atomic->child), common_chat_peg_builder::TOOL_OPEN);
    const auto * name = open == nullptr ? nullptr : std::get_if<common_peg_sequence_parser>(&arena.get(open->child));
    const auto * marker = std::get_if<common_peg_literal_parser>(&arena.get(call.children[2]));
    if (name == nullptr || name->children.empty() || marker == nullptr || marker->literal.empty() ||
        !std::holds_alternative<common_peg_repetition_parser>(arena.get(call.children[1]))) {
        return nullptr;
    }
    const auto * end = std::get_if<common_peg_literal_parser>(&arena.get(name->children.back()));
    return end != nullptr && end->literal == marker->literal ? open : nullptr;
}

// Where an id may stand between a function's name and its arguments, llama.cpp reads the marker of the arguments in front of the
// id, too. Has it read once, as the template writes it. Returns whether it was so.
bool drop_doubled_markers(common_peg_arena & arena) {
    common_json form;
    bool found = false;
    for (size_t id = 0; id < arena.size(); id++) {
        const auto * call = std::get_if<common_peg_sequence_parser>(&arena.get(id));
        const auto * open = call == nullptr ? nullptr : doubly_marked(arena, *call);
        if (open == nullptr) {
            continue;
        }
        if (!found) {
            form = arena.to_json();
            found = true;
        }
        common_json & parsers = form.at("parsers");
        const auto & name = std::get<common_peg_sequence_parser>(arena.get(open->child)).children;
        const auto arguments = call->children.begin() + 3;
        parsers.at(open->child) = sequence_of({name.begin(), name.end() - 1});
        // As one: of a name that begins another one, no part is read.
        common_json whole = common_json::object();
        whole["type"] = "atomic";
        whole["child"] = parsers.size();
        parsers.push_back(sequence_of({call->children.begin(), arguments}));
        std::vector<size_t> rest = {parsers.size()};
        parsers.push_back(whole);
        rest.insert(rest.end(), arguments, call->children.end());
        parsers.at(id) = sequence_of(rest);
    }
    if (found) {
        arena = common_peg_arena::from_json(form);
    }
    return found;
}

// A call as JSON, with arguments that follow the schema of its function.
common_peg_parser json_call(common_chat_peg_builder & p, const common_json & tools) {
    auto functions = p.choice();
    for (size_t index = 0; index < tools.size(); index++) {
        const common_json & function = tools.at(index).at("function");
        const auto number = std::to_string(index);
        auto name = p.literal("\"name\"") + p.space() + p.literal(":") + p.space() +
                    p.atomic(p.literal("\"") + p.tool_name(p.literal(function.at("name").get<std::string>())) + p.literal("\""));
        auto arguments = p.literal("\"arguments\"") + p.space() + p.literal(":") + p.space() +
                         p.tool_args(p.schema(p.json(), "arguments-" + number, common_chat_tool_parameters(function)));
        functions |= p.rule("function-" + number, p.tool(p.tool_open(p.literal("{")) + p.space() + name + p.space() + p.literal(",") +
                                                          p.space() + arguments + p.space() + p.tool_close(p.literal("}"))));
    }
    return functions;
}

}  // namespace

bool reads_calls(const common_chat_params & params) {
    const common_peg_arena arena = parser_of(params);
    for (size_t id = 0; id < arena.size(); id++) {
        if (as_tag(arena.get(id), common_chat_peg_builder::TOOL_NAME) != nullptr) {
            return true;
        }
    }
    return false;
}

bool begin_at_call(common_chat_params & params, const common_json & tools, const call_rules & rules) {
    common_peg_arena arena = parser_of(params);
    const form_parts parts(arena);
    for (size_t id = 0; id < arena.size(); id++) {
        if (as_tag(arena.get(id), common_chat_peg_builder::TOOL_ARG) != nullptr) {
            // Each argument has a place of its own, where texts are held to nothing.
            return false;
        }
        allow_only_calls(arena, id, parts, rules);
    }
    if (hold_to_schemas(arena, tools) < tools.size()) {
        return false;
    }
    params.grammar = grammar_of(arena, false);
    params.grammar_lazy = false;
    params.grammar_triggers.clear();
    return true;
}

void mend_form(common_chat_params & params, const common_json & tools) {
    common_peg_arena arena = parser_of(params);
    if (!drop_doubled_markers(arena)) {
        return;
    }
    params.parser = arena.save();
    hold_to_schemas(arena, tools);
    params.grammar = grammar_of(arena, params.grammar_lazy);
}

std::string grammar_with(const common_chat_params & params, const common_json & tools) {
    common_peg_arena arena = parser_of(params);
    if (params.grammar.empty() || hold_to_schemas(arena, tools) < tools.size()) {
        return params.grammar;
    }
    return grammar_of(arena, params.grammar_lazy);
}

void use_generic_calls(common_chat_params & params, const common_json & tools, const call_rules & rules, const common_json * form) {
    const bool lazy = !rules.required && form == nullptr;
    const std::string & start = params.thinking_start_tag;
    const auto & ends = params.thinking_end_tags;
    const common_peg_arena parser = build_chat_peg_parser([&](common_chat_peg_builder & p) {
        auto thinking = p.eps();
        if (!start.empty() && !ends.empty()) {
            auto end = p.choice();
            for (const auto & tag : ends) {
                end |= p.literal(tag);
            }
            // Text that is not constrained yet is read, whether the model was to think or not.
            auto thoughts = rules.thinks || lazy ? p.until_one_of(ends) : p.space();
            thinking = p.optional(p.optspace(start) + p.reasoning(thoughts) + end + p.space());
        }
        auto call = p.rule("call", p.literal(CALL_START) + p.space() + json_call(p, tools) + p.space() + p.literal(CALL_END));
        auto calls = p.trigger_rule("calls", rules.parallel ? call + p.zero_or_more(p.space() + call) : call);
        auto answer = p.optional(p.content(p.until(CALL_START))) + p.optional(calls + p.space());
        if (rules.required) {
            answer = p.space() + calls;
        } else if (form != nullptr) {
            answer = p.space() + (calls | p.content(p.schema(p.json(), "response-format", *form))) + p.space();
        }
        return (p.prefix(params.generation_prompt, start) << thinking) + answer + p.end();
    });
    params.format = COMMON_CHAT_FORMAT_PEG_NATIVE;
    params.parser = parser.save();
    params.grammar = grammar_of(parser, lazy);
    params.grammar_lazy = lazy;
    params.grammar_triggers.clear();
    if (lazy) {
        params.grammar_triggers.push_back({COMMON_GRAMMAR_TRIGGER_TYPE_WORD, CALL_START});
    }
    // In some vocabularies these are control tokens.
    params.preserved_tokens.insert(params.preserved_tokens.end(), {CALL_START, CALL_END});
}

std::string written_call_grammar(const common_json & tools) {
    const common_peg_arena parser = build_chat_peg_parser([&](common_chat_peg_builder & p) {
        auto tag = p.choice();
        for (const char * name : OTHER_TAGS) {
            tag |= p.literal(name);
        }
        const auto block = p.literal("```") + p.chars("[a-z]", 0, LONGEST_LANGUAGE) + p.literal("\n");
        return p.space() + p.optional(block) + p.optional(tag) + p.space() + p.optional(p.literal("[")) + p.space() +
               json_call(p, tools) + p.rest();
    });
    return grammar_of(parser, false);
}
