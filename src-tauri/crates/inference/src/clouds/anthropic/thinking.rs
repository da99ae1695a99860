//! Whether the model thinks before it answers, and how much of it.

use super::model::Generation;
use serde_json::{Value, json};

/// The least budget that is taken.
const LEAST: u64 = 1024;

/// What a request says of it.
#[derive(Debug, Default)]
pub(super) struct ThinkingRequest {
    pub(super) thinks: Option<bool>,
    pub(super) effort: Option<String>,
    pub(super) budget: Option<u64>,
}

/// What stands in the way of thinking.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// A tool must be called: thinking excludes that.
    pub(super) forced: bool,
    /// The answer goes on from a tool's result. Earlier models want their own thoughts before it, signed, which OpenAI's
    /// messages have no place for.
    pub(super) after_tool: bool,
    /// Thoughts count among them.
    pub(super) max_tokens: Option<u64>,
}

/// What is sent.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Thinking {
    pub(super) field: Option<Value>,
    pub(super) effort: Option<&'static str>,
    /// Tokens that it may take, where the request does not bound the answer.
    pub(super) room: u64,
}

impl Thinking {
    /// A temperature, too, excludes it.
    pub(super) fn is_on(&self) -> bool {
        let kind = self.field.as_ref().and_then(|field| field["type"].as_str());
        kind.is_some_and(|kind| kind != "disabled")
    }
}

impl ThinkingRequest {
    pub(super) fn thinking(&self, model: Generation, bounds: Bounds) -> Thinking {
        let budget = self.budget.unwrap_or(match self.effort.as_deref() {
            Some("minimal" | "low") => 2 << 10,
            Some("high" | "xhigh" | "max") => 16 << 10,
            _ => 8 << 10,
        });
        let mut thinking = Thinking {
            effort: self.effort(model),
            // Some cannot be kept from it.
            room: if model == Generation::Thinking {
                budget
            } else {
                0
            },
            ..Thinking::default()
        };
        match self.thinks {
            Some(false) if model == Generation::Thinking => {
                thinking.effort = thinking.effort.or(Some("low"));
            }
            // Some think unasked.
            Some(false) if model == Generation::Other => {
                thinking.field = Some(json!({"type": "disabled"}));
            }
            Some(true) if bounds.forced => {}
            Some(true) if model.has_effort() => {
                thinking.room = budget;
                thinking.field = Some(if model == Generation::Adaptive {
                    json!({"type": "adaptive"})
                } else {
                    // Their reasoning is sent only on request.
                    json!({"type": "adaptive", "display": "summarized"})
                });
            }
            Some(true) if model == Generation::Other || !bounds.after_tool => {
                let most = bounds.max_tokens.map_or(u64::MAX, |most| most / 2);
                let budget = budget.max(LEAST).min(most);
                if budget >= LEAST {
                    thinking.room = budget;
                    thinking.field = Some(json!({"type": "enabled", "budget_tokens": budget}));
                }
            }
            _ => {}
        }
        thinking
    }

    fn effort(&self, model: Generation) -> Option<&'static str> {
        if !model.has_effort() {
            return None;
        }
        match self.effort.as_deref()? {
            "minimal" | "low" => Some("low"),
            "medium" => Some("medium"),
            "xhigh" if model > Generation::Adaptive => Some("xhigh"),
            "high" | "xhigh" => Some("high"),
            "max" => Some("max"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Generation::{Adaptive, Budgeted, Other, Unsampled};

    const FREE: Bounds = Bounds {
        forced: false,
        after_tool: false,
        max_tokens: None,
    };

    fn on(effort: &str) -> ThinkingRequest {
        ThinkingRequest {
            thinks: Some(true),
            effort: Some(effort.to_owned()),
            budget: None,
        }
    }

    #[test]
    fn each_generation_gets_the_fields_it_supports() {
        let field = |model| on("high").thinking(model, FREE).field;
        let enabled = json!({"type": "enabled", "budget_tokens": 16384});
        assert_eq!(field(Other), Some(enabled.clone()));
        assert_eq!(field(Budgeted), Some(enabled));
        assert_eq!(field(Adaptive), Some(json!({"type": "adaptive"})));
        let reply = json!({"type": "adaptive", "display": "summarized"});
        assert_eq!(field(Unsampled), Some(reply.clone()));
        assert_eq!(field(Generation::Thinking), Some(reply));
        let effort = |model, effort| on(effort).thinking(model, FREE).effort;
        assert_eq!(effort(Budgeted, "high"), None);
        assert_eq!(effort(Adaptive, "xhigh"), Some("high"));
        assert_eq!(effort(Unsampled, "xhigh"), Some("xhigh"));
        assert_eq!(effort(Adaptive, "minimal"), Some("low"));
    }

    #[test]
    fn thinking_is_turned_off_in_the_models_own_form() {
        let off = ThinkingRequest {
            thinks: Some(false),
            ..ThinkingRequest::default()
        };
        let disabled = off.thinking(Other, FREE);
        assert_eq!(disabled.field, Some(json!({"type": "disabled"})));
        assert!(!disabled.is_on());
        assert_eq!(off.thinking(Adaptive, FREE), Thinking::default());
        let always = off.thinking(Generation::Thinking, FREE);
        assert_eq!((always.field, always.effort), (None, Some("low")));
        assert_eq!(always.room, 8192);
        for model in [Other, Budgeted, Adaptive, Unsampled] {
            assert_eq!(
                ThinkingRequest::default().thinking(model, FREE),
                Thinking::default()
            );
        }
    }

    #[test]
    fn thinking_respects_its_limits_and_exclusions() {
        let bounded = |max_tokens| Bounds {
            max_tokens: Some(max_tokens),
            ..FREE
        };
        let budget = |bounds| {
            let field = on("low").thinking(Budgeted, bounds).field?;
            field["budget_tokens"].as_u64()
        };
        assert_eq!(budget(FREE), Some(2048));
        assert_eq!(budget(bounded(3000)), Some(1500));
        assert_eq!(budget(bounded(2047)), None);
        let (mut forced, mut after_tool) = (FREE, FREE);
        (forced.forced, after_tool.after_tool) = (true, true);
        assert_eq!(budget(forced), None);
        assert_eq!(budget(after_tool), None);
        assert!(!on("low").thinking(Adaptive, forced).is_on());
        assert!(on("low").thinking(Adaptive, after_tool).is_on());
    }
}
