//! The disks that models are on, and how full they are.

use crate::volume::Volume;
use std::{
    collections::HashSet,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};
use tierbar_core::{
    fit::Keeper,
    volume::{KeptModels, ModelDisk},
};
use tierbar_library::Entry;

/// What a model or a projector takes of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredFile {
    path: PathBuf,
    bytes: u64,
    keeper: Keeper,
}

/// Returns what these models take, a projector of several models once.
pub(super) fn stored(entries: &[Entry]) -> Vec<StoredFile> {
    let models = entries.iter().map(|entry| StoredFile {
        path: entry.path.clone(),
        bytes: entry.size_bytes,
        keeper: entry.keeper,
    });
    let mut known = HashSet::new();
    let projectors = entries.iter().filter_map(|entry| {
        let projector = entry.projector.as_ref()?;
        known.insert(&projector.path).then(|| StoredFile {
            path: projector.path.clone(),
            bytes: projector.size_bytes,
            keeper: entry.keeper,
        })
    });
    models.chain(projectors).collect()
}

/// Returns the disks of these files, first that of the models folder. Disks that cannot be read are left out. Blocking.
pub(super) fn disks(models_dir: &Path, stored: &[StoredFile]) -> Vec<ModelDisk> {
    let mut disks = Vec::new();
    disk_of(&mut disks, models_dir);
    for StoredFile {
        path,
        bytes,
        keeper,
    } in stored
    {
        let Some(disk) = disk_of(&mut disks, path) else {
            continue;
        };
        match disk.models.iter_mut().find(|kept| kept.keeper == *keeper) {
            Some(kept) => kept.bytes = kept.bytes.saturating_add(*bytes),
            None => disk.models.push(KeptModels {
                keeper: *keeper,
                bytes: *bytes,
            }),
        }
    }
    disks.into_iter().map(|(_, disk)| disk).collect()
}

/// Returns the disk of a file or folder among those known by their device, to which it is added.
fn disk_of<'a>(disks: &'a mut Vec<(u64, ModelDisk)>, path: &Path) -> Option<&'a mut ModelDisk> {
    let metadata = std::fs::metadata(path).ok()?;
    let device = metadata.dev();
    let known = disks.iter().position(|(known, _)| *known == device);
    let at = if let Some(at) = known {
        at
    } else {
        let folder = if metadata.is_dir() {
            path
        } else {
            path.parent()?
        };
        let volume = Volume::of(folder).ok()?;
        disks.push((
            device,
            ModelDisk {
                folder: folder.display().to_string(),
                size_bytes: volume.size,
                free_bytes: volume.free,
                models: Vec::new(),
            },
        ));
        disks.len() - 1
    };
    disks.get_mut(at).map(|(_, disk)| disk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_of_a_disk_are_summed_by_their_keeper() {
        let home = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes, keeper| {
            let path = home.path().join(name);
            std::fs::write(&path, "").unwrap();
            StoredFile {
                path,
                bytes,
                keeper,
            }
        };
        let mut stored = vec![
            file("a.gguf", 5, Keeper::Tierbar),
            file("b.gguf", 7, Keeper::Ollama),
            file("c.gguf", 1, Keeper::Tierbar),
        ];
        stored.push(StoredFile {
            path: home.path().join("gone.gguf"),
            bytes: 9,
            keeper: Keeper::Folder,
        });
        let found = disks(home.path(), &stored);
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
