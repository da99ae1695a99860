//! Constraints on the next token besides the samplers: a grammar, and a budget for thinking.

use super::{
    Token,
    model::Model,
    owned_pointer::OwnedPointer,
    shim::{c_string, on_deep_stack, or_reason, take_string},
};
use crate::bad;
use llama_cpp_sys_2 as sys;
use std::ffi::c_char;
use tierbar_core::Error;

#[derive(Debug)]
#[repr(C)]
struct RawConstraint {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn tierbar_schema_grammar(schema: *const c_char, error: *mut *mut c_char) -> *mut c_char;
    fn tierbar_constraint_new(
        model: *const sys::llama_model,
        spec: *const c_char,
        error: *mut *mut c_char,
    ) -> *mut RawConstraint;
    fn tierbar_constraint_free(constraint: *mut RawConstraint);
    fn tierbar_constraint_apply(
        constraint: *mut RawConstraint,
        candidates: *mut sys::llama_token_data_array,
        grammar: bool,
        error: *mut *mut c_char,
    ) -> bool;
    fn tierbar_constraint_accept(
        constraint: *mut RawConstraint,
        token: Token,
        error: *mut *mut c_char,
    ) -> bool;
}

/// Returns the GBNF of a JSON schema.
///
/// # Errors
/// `BadRequest` if llama.cpp does not support the schema, or it exceeds the limits.
pub(crate) fn schema_grammar(schema: &str) -> Result<String, Error> {
    let schema = c_string(schema)?;
    on_deep_stack(|| {
        let grammar = or_reason(|error| {
            // SAFETY: the schema is NUL-terminated; `error` receives a string that we own.
            take_string(unsafe { tierbar_schema_grammar(schema.as_ptr(), error) })
        });
        grammar.map_err(|reason| {
            bad(format!("the JSON schema is not supported: {reason}")).hint("send a simpler schema")
        })
    })
}

#[derive(Debug)]
pub(super) struct Constraint(OwnedPointer<RawConstraint>);

impl Constraint {
    /// Creates a constraint from a JSON object for the shim's `tierbar_constraint_new`. It must not outlive the model.
    ///
    /// # Errors
    /// `BadRequest` if its grammar does not parse.
    pub(super) fn new(model: &Model, spec: &str) -> Result<Self, Error> {
        let spec = c_string(spec)?;
        on_deep_stack(|| {
            // SAFETY: the model is live; the spec is NUL-terminated; `error` receives a string that we own.
            let made = or_reason(|error| unsafe {
                let raw = tierbar_constraint_new(model.raw.as_ptr(), spec.as_ptr(), error);
                OwnedPointer::new(raw, tierbar_constraint_free)
            });
            made.map(Self).map_err(|reason| {
                bad(format!("the answer cannot be constrained: {reason}"))
                    .hint("write the grammar in GBNF with the root rule `root`")
            })
        })
    }

    /// Sets the logits of forbidden tokens to minus infinity; with `grammar` also those that the grammar forbids.
    pub(super) fn apply(
        &mut self,
        candidates: &mut sys::llama_token_data_array,
        grammar: bool,
    ) -> Result<(), Error> {
        check_outcome(|error| {
            // SAFETY: both are live; `error` receives a string that we own.
            unsafe { tierbar_constraint_apply(self.0.as_ptr(), candidates, grammar, error) }
        })
    }

    pub(super) fn accept(&mut self, token: Token) -> Result<(), Error> {
        check_outcome(|error| {
            // SAFETY: the constraint is live; `error` receives a string that we own.
            unsafe { tierbar_constraint_accept(self.0.as_ptr(), token, error) }
        })
    }
}

fn check_outcome(call: impl FnOnce(*mut *mut c_char) -> bool) -> Result<(), Error> {
    or_reason(|error| call(error).then_some(())).map_err(|reason| {
        bad(format!(
            "the grammar does not allow the answer to continue: {reason}"
        ))
        .hint("send a simpler grammar or schema")
    })
}
