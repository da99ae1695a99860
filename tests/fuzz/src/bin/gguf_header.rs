//! A GGUF header under libFuzzer.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|bytes: &[u8]| tierbar_fuzz::header(bytes));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    // Half of them lose the form.
    let changed = (seed % 2 == 0)
        .then(|| {
            tierbar_fuzz::mutation::mutate(&data[..size], seed / 2, &mut |bytes| {
                let length = bytes.len();
                bytes.resize(length + 16, 0);
                let most = bytes.len();
                let length = fuzzer_mutate(bytes, length, most);
                bytes.truncate(length);
            })
        })
        .flatten();
    match changed {
        Some(changed) if changed.len() <= max_size => {
            data[..changed.len()].copy_from_slice(&changed);
            changed.len()
        }
        _ => fuzzer_mutate(data, size, max_size),
    }
});
