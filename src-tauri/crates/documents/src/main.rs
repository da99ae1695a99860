//! `tierbar-extract NAME [--pictures] < FILE`: reads one document and writes its text as lines of JSON, with nothing else within its reach.
//! What a line is says `tierbar_documents::extraction`.

use std::{
    io::{Read, Write},
    path::Path,
    process::ExitCode,
};
use tierbar_documents::{
    CountingAllocator, Part,
    extraction::{LARGEST_FILE, Line},
    limit_this_process, read,
};

#[global_allocator]
static MEMORY: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let name = arguments.next().unwrap_or_default();
    let pictures = arguments.next().is_some_and(|word| word == "--pictures");
    if limit_this_process().is_err() {
        return ExitCode::from(2);
    }
    let mut bytes = Vec::new();
    let most = LARGEST_FILE + 1;
    if std::io::stdin()
        .lock()
        .take(most)
        .read_to_end(&mut bytes)
        .is_err()
    {
        return ExitCode::FAILURE;
    }
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    let mut written = true;
    let mut write = |line: &Line| {
        // If the reader is gone, the rest is dropped.
        written = written
            && serde_json::to_writer(&mut output, line).is_ok()
            && output.write_all(b"\n").is_ok();
    };
    let outcome = read(&bytes, Path::new(&name), pictures, &mut |part| {
        write(&match part {
            Part::Block(block) => Line::Block(block),
            Part::Picture(picture) => Line::Picture(picture),
        });
    });
    write(&match outcome {
        Ok(facts) => Line::End(facts),
        Err(refusal) => Line::Refused(refusal),
    });
    match written && output.flush().is_ok() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
