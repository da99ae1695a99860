//! A cache of a fixed size that drops the least recently used entry first.

use std::collections::VecDeque;

const MOST: usize = 256;

#[derive(Debug)]
pub(super) struct Recent<K, V>(VecDeque<(K, V)>);

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<K: PartialEq, V: Copy> Recent<K, V> {
    pub(super) fn get(&mut self, key: &K) -> Option<V> {
        let place = self.0.iter().position(|(known, _)| known == key)?;
        let found = self.0.remove(place)?;
        let value = found.1;
        self.0.push_back(found);
        Some(value)
    }

    pub(super) fn put(&mut self, key: K, value: V) {
        self.0.retain(|(known, _)| *known != key);
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((key, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut recent = Recent::default();
        for key in 0..MOST {
            recent.put(key, key * 2);
        }
        assert_eq!(recent.get(&0), Some(0));
        recent.put(MOST, 1);
        assert_eq!(recent.get(&1), None);
        assert_eq!((recent.get(&0), recent.get(&MOST)), (Some(0), Some(1)));
        recent.put(0, 7);
        assert_eq!(recent.get(&0), Some(7));
        assert_eq!(recent.0.len(), MOST);
    }
}
