//! Constraints on the next token besides the samplers: a grammar, and a budget for thinking.

use super::{
    Token,
    model::Model,
    shim::{c_string, on_deep_stack, take_result, take_string},
};
use llama_cpp_sys_2 as sys;
use std::{
    ffi::c_char,
    ptr::{self, NonNull},
};
use tierbar_core::{Code, Error};

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
        let mut error = ptr::null_mut();
        // SAFETY: the schema is NUL-terminated; `error` receives a string that we own.
        let grammar = unsafe { tierbar_schema_grammar(schema.as_ptr(), &raw mut error) };
        take_result(grammar, error).map_err(|reason| {
            Error::new(
                Code::BadRequest,
                format!("the JSON schema is not supported: {reason}"),
            )
            .hint("send a simpler schema")
        })
    })
}

#[derive(Debug)]
pub(super) struct Constraint(NonNull<RawConstraint>);

// SAFETY: bound to no thread; `&mut self` guards what changes it.
unsafe impl Send for Constraint {}

impl Constraint {
    /// Creates a constraint from a JSON object for the shim's `tierbar_constraint_new`. It must not outlive the model.
    ///
    /// # Errors
    /// `BadRequest` if its grammar does not parse.
    pub(super) fn new(model: &Model, spec: &str) -> Result<Self, Error> {
        let spec = c_string(spec)?;
        on_deep_stack(|| {
            let mut error = ptr::null_mut();
            // SAFETY: the model is live; the spec is NUL-terminated; `error` receives a string that we own.
            let raw = unsafe {
                tierbar_constraint_new(model.raw.as_ptr(), spec.as_ptr(), &raw mut error)
            };
            NonNull::new(raw).map(Self).ok_or_else(|| {
                let reason = take_string(error).unwrap_or_default();
                Error::new(
                    Code::BadRequest,
                    format!("the answer cannot be constrained: {reason}"),
                )
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
        let mut error = ptr::null_mut();
        // SAFETY: both are live; `error` receives a string that we own.
        let applied = unsafe {
            tierbar_constraint_apply(self.0.as_ptr(), candidates, grammar, &raw mut error)
        };
        check_outcome(applied, error)
    }

    pub(super) fn accept(&mut self, token: Token) -> Result<(), Error> {
        let mut error = ptr::null_mut();
        // SAFETY: the constraint is live; `error` receives a string that we own.
        let accepted = unsafe { tierbar_constraint_accept(self.0.as_ptr(), token, &raw mut error) };
        check_outcome(accepted, error)
    }
}

fn check_outcome(done: bool, error: *mut c_char) -> Result<(), Error> {
    if done {
        return Ok(());
    }
    let reason = take_string(error).unwrap_or_default();
    let message = format!("the grammar does not allow the answer to continue: {reason}");
    Err(Error::new(Code::BadRequest, message).hint("send a simpler grammar or schema"))
}

impl Drop for Constraint {
    fn drop(&mut self) {
        // SAFETY: created by tierbar_constraint_new, freed once.
        unsafe { tierbar_constraint_free(self.0.as_ptr()) }
    }
}
