#include "tools.h"

#include "chat-peg-parser.h"
#include "json-schema-to-grammar.h"
#include "peg-parser.h"

#include <cctype>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace {

const char * const CALL_START = "<tool_call>";
const char * const CALL_END = "</tool_call>";

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
    return schemas;
}

std::string grammar_of(const common_peg_arena & parser, bool lazy) {
    return build_grammar([&](const common_grammar_builder & builder) { parser.build_grammar(builder, lazy); });
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
    const auto schemas = schemas_of(tools);
    size_t held = 0;
    for (size_t id = 0; id < arena.size(); id++) {
        common_peg_parser_variant & parser = arena.get(id);
        if (as_tag(parser, common_chat_peg_builder::TOOL_ARG) != nullptr) {
            // Each argument has a place of its own, where texts are held to nothing.
            return false;
        }
        const bool is_thought = as_tag(parser, common_chat_peg_builder::REASONING) != nullptr;
        if (as_tag(parser, common_chat_peg_builder::CONTENT) != nullptr || (is_thought && !rules.thinks)) {
            parser = common_peg_space_parser{};
        } else if (auto * schema = std::get_if<common_peg_schema_parser>(&parser)) {
            // What is saved of a parser does not include the schemas.
            const auto known = schemas.find(schema->name);
            if (known == schemas.end()) {
                return false;
            }
            schema->doc = known->second;
            schema->node = known->second->root.get();
            held++;
        } else if (const auto * rule = std::get_if<common_peg_rule_parser>(&parser)) {
            // Some forms repeat calls whatever the request says.
            auto * calls = std::get_if<common_peg_repetition_parser>(&arena.get(rule->child));
            if (!rules.parallel && rule->trigger && calls != nullptr) {
                calls->max_count = 1;
            }
        }
    }
    if (held < tools.size()) {
        return false;
    }
    params.grammar = grammar_of(arena, false);
    params.grammar_lazy = false;
    params.grammar_triggers.clear();
    return true;
}

void use_generic_calls(common_chat_params & params, const common_json & tools, const call_rules & rules) {
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
            auto thoughts = rules.thinks || !rules.required ? p.until_one_of(ends) : p.space();
            thinking = p.optional(p.optspace(start) + p.reasoning(thoughts) + end + p.space());
        }
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
        auto call = p.rule("call", p.literal(CALL_START) + p.space() + functions + p.space() + p.literal(CALL_END));
        auto calls = p.trigger_rule("calls", rules.parallel ? call + p.zero_or_more(p.space() + call) : call);
        auto answer = rules.required ? p.space() + calls : p.optional(p.content(p.until(CALL_START))) + p.optional(calls + p.space());
        return (p.prefix(params.generation_prompt, start) << thinking) + answer + p.end();
    });
    params.format = COMMON_CHAT_FORMAT_PEG_NATIVE;
    params.parser = parser.save();
    params.grammar = grammar_of(parser, !rules.required);
    params.grammar_lazy = !rules.required;
    params.grammar_triggers.clear();
    if (!rules.required) {
        params.grammar_triggers.push_back({COMMON_GRAMMAR_TRIGGER_TYPE_WORD, CALL_START});
    }
    // In some vocabularies these are control tokens.
    params.preserved_tokens.insert(params.preserved_tokens.end(), {CALL_START, CALL_END});
}
