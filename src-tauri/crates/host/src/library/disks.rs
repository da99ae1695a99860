//! The disks that models are on, and how full they are.

use crate::volume::Volume;
use std::{collections::HashSet, iter, os::unix::fs::MetadataExt, path::Path};
use tierbar_core::volume::{KeptModels, ModelDisk};
use tierbar_library::Entry;

/// Returns the disks of these models and their projectors, first that of the models folder. A projector of several models counts once.
/// Disks that cannot be read are left out. Blocking.
pub(super) fn disks(models_dir: &Path, entries: &[Entry]) -> Vec<ModelDisk> {
    let mut disks = Vec::new();
    disk_of(&mut disks, models_dir);
    let mut counted = HashSet::new();
    for entry in entries {
        let keeper = entry.keeper;
        let projector = entry.projector.as_ref();
        let projector = projector.filter(|projector| counted.insert(&projector.path));
        let projector = projector.map(|projector| (&projector.path, projector.size_bytes));
        for (path, bytes) in iter::once((&entry.path, entry.size_bytes)).chain(projector) {
            let Some(disk) = disk_of(&mut disks, path) else {
                continue;
            };
            match disk.models.iter_mut().find(|kept| kept.keeper == keeper) {
                Some(kept) => kept.bytes = kept.bytes.saturating_add(bytes),
                None => disk.models.push(KeptModels { keeper, bytes }),
            }
        }
    }
    disks.into_iter().map(|(_, disk)| disk).collect()
}

/// Returns the disk of a file or folder among those known by their device, to which it is added.
fn disk_of<'a>(disks: &'a mut Vec<(u64, ModelDisk)>, path: &Path) -> Option<&'a mut ModelDisk> {
    let metadata = std::fs::metadata(path).ok()?;
    let device = metadata.dev();
    let known = disks.iter().position(|(known, _)| *known == device);
    if known.is_none() {
        let folder = match metadata.is_dir() {
            true => path,
            false => path.parent()?,
        };
        let volume = Volume::of(folder).ok()?;
        let disk = ModelDisk {
            folder: folder.display().to_string(),
            size_bytes: volume.size,
            free_bytes: volume.free,
            models: Vec::new(),
        };
        disks.push((device, disk));
    }
    let at = known.unwrap_or(disks.len() - 1);
    disks.get_mut(at).map(|(_, disk)| disk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::{Code, Error, ModelId, fit::Keeper};

    #[test]
    fn the_models_of_a_disk_are_summed_by_their_keeper() {
        let home = tempfile::tempdir().unwrap();
        let entry = |name: &str, size_bytes, keeper| Entry {
            id: ModelId(name.to_owned()),
            path: home.path().join(name),
            parts: Vec::new(),
            size_bytes,
            modified: None,
            keeper,
            projector: None,
            record: None,
            account: Err(Error::new(Code::ModelInvalid, "empty")),
        };
        let entries = [
            entry("a.gguf", 5, Keeper::Tierbar),
            entry("b.gguf", 7, Keeper::Ollama),
            entry("c.gguf", 1, Keeper::Tierbar),
            entry("gone.gguf", 9, Keeper::Folder),
        ];
        for entry in &entries[..3] {
            std::fs::write(&entry.path, "").unwrap();
        }
        let found = disks(home.path(), &entries);
        assert_eq!(found.len(), 1, "{found:?}");
        let disk = &found[0];
        assert_eq!(disk.folder, home.path().display().to_string());
        assert!(disk.free_bytes <= disk.size_bytes && disk.size_bytes > 0);
        let kept = |keeper, bytes| KeptModels { keeper, bytes };
        assert_eq!(
            disk.models,
            [kept(Keeper::Tierbar, 6), kept(Keeper::Ollama, 7)]
        );
        assert!(disks(Path::new("/nonexistent/models"), &[]).is_empty());
    }
}
