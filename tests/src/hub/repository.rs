//! The stand-in's repositories.

use crate::binaries;
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{fs, io::Read, path::PathBuf, sync::Arc};

/// A public repository with both test models.
pub const PUBLIC: &str = "tierbar-tests/tiny-GGUF";
/// The same behind a license.
pub const GATED: &str = "tierbar-tests/gated-GGUF";
pub const SMOLLM2: &str = binaries::STARTER;
pub const GEMMA: &str = "gemma-3-270m-q4_k_m.gguf";
/// As `bundle/models` checks them.
const HASHES: [(&str, &str); 4] = [
    (
        SMOLLM2,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    (
        GEMMA,
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
    (
        binaries::QWEN,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    (
        binaries::MINILM,
        "5d320339f2ad95d09845c2500dbfa20acadbbe76c57c1c55fc0af19589dcea4e",
    ),
];

/// The default models of the catalog, with the quants that a set-up chooses among.
const DEFAULTS: [(&str, &[&str]); 3] = [
    ("unsloth/gemma-4-E2B-it-GGUF", &["Q4_K_M", "UD-Q4_K_XL"]),
    ("unsloth/gemma-4-E4B-it-GGUF", &["Q4_K_M", "UD-Q4_K_XL"]),
    (
        "unsloth/Qwen3.5-35B-A3B-GGUF",
        &["UD-IQ2_M", "UD-IQ3_XXS", "UD-IQ4_XS", "Q4_K_M", "Q8_0"],
    ),
];

#[derive(Debug, Clone)]
pub struct HubRepository {
    /// `owner/name`.
    pub id: String,
    pub gated: bool,
    pub licence: String,
    pub downloads: u64,
    pub files: Vec<HubFile>,
    /// More raw entries of the tree, which a real hub would not return.
    pub entries: Vec<Value>,
}

#[derive(Debug, Clone)]
pub struct HubFile {
    pub path: String,
    pub content: Content,
    /// The hash in the tree; the content may differ.
    pub sha256: String,
}

#[derive(Debug, Clone)]
pub enum Content {
    Disk(PathBuf),
    Memory(Arc<[u8]>),
}

impl Content {
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            Self::Disk(path) => fs::metadata(path).map_or(0, |file| file.len()),
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }
}

impl HubFile {
    #[must_use]
    pub fn new(path: &str, bytes: &[u8]) -> Self {
        Self {
            path: path.to_owned(),
            content: Content::Memory(bytes.into()),
            sha256: HEXLOWER.encode(&Sha256::digest(bytes)),
        }
    }

    /// A file on disk, at `path` in the repository.
    ///
    /// # Panics
    /// If it cannot be read.
    #[must_use]
    pub fn on_disk(path: &str, file: PathBuf) -> Self {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let known = HASHES.iter().find(|(known, _)| *known == name);
        let sha256 = known.map_or_else(|| hash_of(&file), |(_, hash)| (*hash).to_owned());
        Self {
            path: path.to_owned(),
            content: Content::Disk(file),
            sha256,
        }
    }

    /// One of the test models, at `path` in the repository.
    #[must_use]
    pub fn model(path: &str, model: &str) -> Self {
        Self::on_disk(path, binaries::model(model))
    }

    /// Whether it is kept on the second server, as models are.
    pub(super) fn is_large(&self) -> bool {
        self.path.ends_with(".gguf") || self.path.ends_with(".GGUF")
    }

    fn entry(&self) -> Value {
        let size = self.content.size();
        // A blob's id in git; of a large file the pointer's.
        let oid = &HEXLOWER.encode(&Sha256::digest(format!("blob {}", self.sha256)))[..40];
        if self.is_large() {
            json!({
                "type": "file", "oid": oid, "size": size, "path": self.path,
                "lfs": {"oid": self.sha256, "size": size, "pointerSize": 134},
                "xetHash": HEXLOWER.encode(&Sha256::digest(format!("xet {}", self.sha256))),
            })
        } else {
            json!({"type": "file", "oid": oid, "size": size, "path": self.path})
        }
    }
}

impl HubRepository {
    #[must_use]
    pub fn new(id: &str, files: Vec<HubFile>) -> Self {
        let readme = b"---\nlicense: apache-2.0\n---\n# Models for tests\n";
        let mut all = vec![
            HubFile::new(
                ".gitattributes",
                b"*.gguf filter=lfs diff=lfs merge=lfs -text\n",
            ),
            HubFile::new("README.md", readme),
        ];
        all.extend(files);
        Self {
            id: id.to_owned(),
            gated: false,
            licence: "apache-2.0".to_owned(),
            downloads: 1000,
            files: all,
            entries: Vec::new(),
        }
    }

    /// The repositories of the tiers' default models, each quant's file made by `file` from its name.
    #[must_use]
    pub fn defaults(file: impl Fn(&str) -> HubFile) -> Vec<Self> {
        let repositories = DEFAULTS.iter().map(|(id, quants)| {
            let name = id
                .rsplit('/')
                .next()
                .unwrap_or(id)
                .trim_end_matches("-GGUF");
            let files = quants
                .iter()
                .map(|quant| file(&format!("{name}-{quant}.gguf")));
            Self::new(id, files.collect())
        });
        repositories.collect()
    }

    /// [`PUBLIC`].
    #[must_use]
    pub fn tests_models() -> Self {
        Self::new(
            PUBLIC,
            vec![
                HubFile::model(SMOLLM2, SMOLLM2),
                HubFile::model(GEMMA, GEMMA),
            ],
        )
    }

    /// [`GATED`].
    #[must_use]
    pub fn gated() -> Self {
        Self {
            gated: true,
            licence: "gemma".to_owned(),
            downloads: 10,
            ..Self::new(GATED, vec![HubFile::model(GEMMA, GEMMA)])
        }
    }

    /// Changes with what the repository holds.
    #[must_use]
    pub fn commit(&self) -> String {
        let mut digest = Sha256::new();
        digest.update(&self.id);
        for file in &self.files {
            digest.update(format!("{}\0{}\0", file.path, file.sha256));
        }
        HEXLOWER.encode(&digest.finalize())[..40].to_owned()
    }

    /// All entries, folders among them, sorted by path.
    pub(super) fn tree(&self) -> Vec<Value> {
        let mut folders: Vec<&str> = self
            .files
            .iter()
            .flat_map(|file| file.path.match_indices('/').map(|(at, _)| &file.path[..at]))
            .collect();
        folders.sort_unstable();
        folders.dedup();
        let folder = |path: &&str| {
            let oid = &HEXLOWER.encode(&Sha256::digest(format!("tree {path}")))[..40];
            json!({"type": "directory", "oid": oid, "size": 0, "path": path})
        };
        let mut entries: Vec<Value> = folders
            .iter()
            .map(folder)
            .chain(self.files.iter().map(HubFile::entry))
            .collect();
        entries.sort_by(|a, b| a["path"].as_str().cmp(&b["path"].as_str()));
        entries.extend(self.entries.iter().cloned());
        entries
    }

    pub(super) fn info(&self) -> Value {
        let names = self
            .files
            .iter()
            .map(|file| json!({"rfilename": file.path}));
        let mut info = self.summary();
        info["sha"] = json!(self.commit());
        info["cardData"] = json!({"license": self.licence});
        info["siblings"] = names.collect();
        info["usedStorage"] = json!(
            self.files
                .iter()
                .map(|file| file.content.size())
                .sum::<u64>()
        );
        info
    }

    /// As a search lists it.
    pub(super) fn summary(&self) -> Value {
        json!({
            "_id": &HEXLOWER.encode(&Sha256::digest(&self.id))[..24], "id": self.id, "modelId": self.id,
            "author": self.id.split('/').next(), "private": false, "disabled": false,
            "gated": if self.gated { json!("manual") } else { json!(false) },
            "downloads": self.downloads, "likes": self.downloads / 100,
            "lastModified": "2026-01-15T12:00:00.000Z", "createdAt": "2025-12-01T12:00:00.000Z",
            "tags": ["gguf", "text-generation", format!("license:{}", self.licence)],
            "pipeline_tag": "text-generation", "library_name": "gguf",
        })
    }
}

fn hash_of(path: &PathBuf) -> String {
    let mut file = fs::File::open(path).expect("the file");
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = file.read(&mut buffer).expect("the file's bytes");
        if count == 0 {
            return HEXLOWER.encode(&digest.finalize());
        }
        digest.update(&buffer[..count]);
    }
}
