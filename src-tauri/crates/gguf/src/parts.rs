//! A model split over several files: the part that a header names, and all parts read as one.
//!
//! The first part has the model's keys, and perhaps no tensors; the others have tensors and their numbers alone. As
//! llama.cpp reads them (`llama-model-loader.cpp`).

use crate::{
    fault::{Fault, invalid, unsupported},
    header::{Header, HeaderValue, MAX_TENSORS, open_header},
    split::{Split, split_of},
};
use std::{collections::HashSet, path::Path};
use tierbar_core::{Code, Error};

/// Missing parts that an error names.
const NAMED: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartHeader {
    /// From 0.
    number: u16,
    pub(crate) count: u16,
    /// Of all parts together.
    tensors: u64,
}

impl PartHeader {
    /// `None` if the file is a whole model.
    pub(crate) fn from_header(header: &Header) -> Result<Option<Self>, Fault> {
        let integer = |key| match header.pairs.get(key) {
            None => Ok(None),
            Some(HeaderValue::Integer(number)) => Ok(Some(*number)),
            Some(_) => invalid(format!("its {key} is not a number")),
        };
        let count = match integer("split.count")? {
            None | Some(0 | 1) => return Ok(None),
            Some(count) => u16::try_from(count)
                .or_else(|_| invalid(format!("it claims to be one of {count} parts")))?,
        };
        let number = integer("split.no")?
            .and_then(|number| u16::try_from(number).ok())
            .filter(|&number| number < count);
        let tensors = integer("split.tensors.count")?
            .and_then(|tensors| u64::try_from(tensors).ok())
            .filter(|tensors| (1..=MAX_TENSORS).contains(tensors));
        match (number, tensors) {
            (Some(number), Some(tensors)) => Ok(Some(Self {
                number,
                count,
                tensors,
            })),
            (None, _) => invalid(format!(
                "it is one of {count} parts of a model, without its number"
            )),
            (_, None) => invalid(format!(
                "it is one of {count} parts of a model, without the number of tensors"
            )),
        }
    }

    /// The first part represents the model; the engine loads the others itself.
    pub(crate) fn first(self) -> Result<Self, Fault> {
        if self.number == 0 {
            return Ok(self);
        }
        unsupported(
            format!("it is {self}"),
            &format!("choose the first part, {}", self.ending(0)),
        )
    }

    fn ending(self, number: u16) -> String {
        let named = Split {
            prefix: "NAME".to_owned(),
            number: number + 1,
            count: self.count,
        };
        named.to_string()
    }
}

impl std::fmt::Display for PartHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "part {} of {} of a model", self.number + 1, self.count)
    }
}

/// Adds the tensors of the other parts, which lie beside the first, to its header. Answers the bytes of all files.
pub(crate) fn join_parts(
    path: &Path,
    header: &mut Header,
    part: PartHeader,
    first_bytes: u64,
) -> Result<u64, Error> {
    let shown = path.display().to_string();
    let split = path
        .file_name()
        .and_then(|name| split_of(name.to_str()?))
        .filter(|split| (split.number, split.count) == (1, part.count));
    let Some(split) = split else {
        let misnamed = unsupported(
            format!("it is {part}, but its name is not {}", part.ending(0)),
            "restore the original names of the parts; the engine needs them",
        );
        return misnamed.map_err(|fault: Fault| fault.into_error(&shown));
    };
    let others: Vec<_> = split.parts().skip(1).collect();
    let missing: Vec<_> = others
        .iter()
        .filter(|name| !path.with_file_name(name).is_file())
        .collect();
    if let [_, ..] = missing[..] {
        return Err(missing_parts(&shown, part.count, &missing));
    }

    let mut bytes = first_bytes;
    let mut names: HashSet<String> = header.tensors.iter().map(|t| t.name.clone()).collect();
    for (number, name) in (1u16..).zip(&others) {
        let other_path = path.with_file_name(name);
        let (mut other, other_bytes) = open_header(&other_path)?;
        check_belongs(&other, header, PartHeader { number, ..part })
            .and_then(|()| {
                let twice = other.tensors.iter().find(|t| !names.insert(t.name.clone()));
                match twice {
                    Some(tensor) => different_part(format!("{} is in two of them", tensor.name)),
                    None if names.len() as u64 > part.tensors => different_part(format!(
                        "they have more tensors than the model's {}",
                        part.tensors
                    )),
                    None => Ok(()),
                }
            })
            .map_err(|fault| fault.into_error(other_path.display()))?;
        for tensor in &mut other.tensors {
            tensor.part = number;
        }
        header.tensors.extend(other.tensors);
        bytes = bytes.saturating_add(other_bytes);
    }
    if header.tensors.len() as u64 != part.tensors {
        let why = format!(
            "they have {} tensors of the model's {}",
            header.tensors.len(),
            part.tensors
        );
        return different_part(why).map_err(|fault: Fault| fault.into_error(&shown));
    }
    Ok(bytes)
}

fn missing_parts(shown: &str, count: u16, missing: &[&String]) -> Error {
    let named = missing.iter().take(NAMED).map(|name| name.as_str());
    let mut list = named.collect::<Vec<_>>().join(", ");
    if missing.len() > NAMED {
        list.push_str(" and others");
    }
    let missing = missing.len();
    Error::new(
        Code::ModelMissing,
        format!("of the {count} parts of the model {shown}, {missing} are missing: {list}"),
    )
    .hint("download the missing parts into the same folder")
    .detail("missing_parts", missing)
}

/// Checks that the other file is the part in its name and belongs to the same model.
fn check_belongs(other: &Header, first: &Header, expected: PartHeader) -> Result<(), Fault> {
    match PartHeader::from_header(other)? {
        Some(part) if part == expected => {}
        Some(part) if part.tensors != expected.tensors => {
            return different_part(format!(
                "it belongs to a model of {} tensors, the first part to one of {}",
                part.tensors, expected.tensors
            ));
        }
        Some(part) => return different_part(format!("it is {part}, not {expected}")),
        None => return different_part(format!("it is a complete model, not {expected}")),
    }
    for key in ["general.architecture", "general.name"] {
        let value = other.pairs.get(key);
        if value.is_some() && value != first.pairs.get(key) {
            return different_part(format!("it has another {key} than the first part"));
        }
    }
    Ok(())
}

fn different_part<T>(why: String) -> Result<T, Fault> {
    invalid(format!("its parts do not belong together: {why}"))
}
