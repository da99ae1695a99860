//! GGUF headers of two parts under libFuzzer.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|bytes: &[u8]| tierbar_fuzz::parts(bytes));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let Some((at, headers)) = data[..size].split_first_chunk() else {
        return fuzzer_mutate(data, size, max_size);
    };
    let at = usize::from(u16::from_le_bytes(*at)).min(headers.len());
    let (first, second) = headers.split_at(at);
    // One of the two headers keeps its form.
    let changed = if seed % 4 == 0 {
        None
    } else {
        let mut noise = |bytes: &mut Vec<u8>| {
            let length = bytes.len();
            bytes.resize(length + 16, 0);
            let most = bytes.len();
            let length = fuzzer_mutate(bytes, length, most);
            bytes.truncate(length);
        };
        let mut mutate =
            |header: &[u8]| tierbar_fuzz::mutation::mutate(header, seed / 4, &mut noise);
        if seed % 4 == 1 {
            mutate(second).map(|second| (first.to_vec(), second))
        } else {
            mutate(first).map(|first| (first, second.to_vec()))
        }
    };
    match changed {
        Some((first, second))
            if first.len() < 1 << 16 && 2 + first.len() + second.len() <= max_size =>
        {
            let changed = [&(first.len() as u16).to_le_bytes()[..], &first, &second].concat();
            data[..changed.len()].copy_from_slice(&changed);
            changed.len()
        }
        _ => fuzzer_mutate(data, size, max_size),
    }
});
