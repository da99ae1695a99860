//! What earlier versions wrote into each new configuration file.

use super::{Choice, Engine, Profile, TierConfig};
use crate::{run::KvCache, tier::TierId};

/// The contexts of the first file, each with a KV cache in f16, until the context followed from the model.
const CONTEXTS: [(&str, u32); 3] = [("fast", 4096), ("primary", 8192), ("heavy", 12_288)];

impl TierConfig {
    /// Returns the context of a tier that has exactly what an earlier version wrote for it, and a model that it holds back. The user
    /// may have chosen the same, so it is for them to say.
    pub fn older_default(&self, tier: &TierId) -> Option<u32> {
        let (_, context) = CONTEXTS.into_iter().find(|(id, _)| *id == tier.as_str())?;
        let is_older = self.context == Choice::Fixed(context)
            && self.kv_cache == Choice::Fixed(KvCache::F16)
            && self.profile == Profile::Balanced
            && self.engine == Engine::Embedded
            && !self.model.trim().is_empty();
        is_older.then_some(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_an_earlier_version_wrote_is_an_older_default() {
        let tier = |id: &str| TierId::new(id).unwrap();
        let written = TierConfig {
            model: "a".to_owned(),
            context: Choice::Fixed(8192),
            kv_cache: Choice::Fixed(KvCache::F16),
            ..TierConfig::default()
        };
        assert_eq!(written.older_default(&tier("primary")), Some(8192));
        let with = |change: fn(&mut TierConfig)| {
            let mut tier = written.clone();
            change(&mut tier);
            tier
        };
        for other in [
            with(|tier| tier.context = Choice::Fixed(8193)),
            with(|tier| tier.context = Choice::Auto),
            with(|tier| tier.kv_cache = Choice::Auto),
            with(|tier| tier.kv_cache = Choice::Fixed(KvCache::Q8_0)),
            with(|tier| tier.profile = Profile::Agent),
            with(|tier| tier.model = String::new()),
        ] {
            assert_eq!(other.older_default(&tier("primary")), None, "{other:?}");
        }
        for id in ["fast", "heavy", "coder"] {
            assert_eq!(written.older_default(&tier(id)), None, "{id}");
        }
    }
}
