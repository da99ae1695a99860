//! Documents under libFuzzer: `DOCUMENT` is the name that each has.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::{env, ffi::OsString, path::Path, sync::LazyLock};

static NAME: LazyLock<OsString> = LazyLock::new(|| env::var_os("DOCUMENT").unwrap_or_default());

fuzz_target!(|bytes: &[u8]| tierbar_fuzz::document(Path::new(&*NAME), bytes));
