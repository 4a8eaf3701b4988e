//! Passwords that were just found right: many logins with one password cost one hash.
//!
//! An entry is a digest of a secret of this process, the hash and the password, so neither can be
//! read from it, and it says nothing to another process. A password that was changed has another
//! hash: an entry never outlives its password. Wrong passwords are not kept, because they would
//! push the right ones out, and each guess is to cost as much as the first.
//!
//! Cassandra hashes at each login; its cache of credentials keeps the hashes that it has read.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use env::{Env, Instant};
use sha2::{Digest as _, Sha256};

/// Most passwords that are kept. A further one is hashed at each login.
const VERIFIED_MAX: usize = 1024;

/// A hash and a password that is compared with it. Nothing else in this process has the same value.
pub(super) type Comparison = [u8; 32];

/// The passwords that were found right of late.
pub(super) struct Verified {
    /// Chosen at the first login.
    secret: OnceLock<[u8; 32]>,
    /// Time for which a password is kept; zero: none is.
    validity: Duration,
    /// When each was found right.
    entries: Mutex<BTreeMap<Comparison, Instant>>,
}

impl Verified {
    /// Keeps passwords for `validity`.
    pub fn new(validity: Duration) -> Self {
        Self { secret: OnceLock::new(), validity, entries: Mutex::default() }
    }

    /// The comparison of a password with a hash.
    pub fn comparison(&self, env: &Env, hash: &str, password: &str) -> Comparison {
        let secret = self.secret.get_or_init(|| {
            let mut secret = [0; 32];
            env.random.fill(&mut secret);
            secret
        });
        let mut digest = Sha256::new();
        digest.update(secret);
        digest.update((hash.len() as u64).to_be_bytes());
        digest.update(hash);
        digest.update(password);
        digest.finalize().into()
    }

    /// Whether the password was found right less than the validity ago.
    pub fn has(&self, comparison: &Comparison, now: Instant) -> bool {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.get(comparison).is_some_and(|found| now.since(*found) < self.validity)
    }

    /// The password has been found right.
    pub fn add(&self, comparison: Comparison, now: Instant) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|_, found| now.since(*found) < self.validity);
        if !self.validity.is_zero() && entries.len() < VERIFIED_MAX {
            entries.insert(comparison, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use env::sim::Sim;

    use super::*;

    #[test]
    fn a_password_is_kept_for_its_validity_and_with_its_hash_only() {
        let sim = Sim::new(1);
        let (env, at) = (sim.env(), |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000));
        let verified = Verified::new(Duration::from_secs(2));
        let of = |hash: &str, password: &str| verified.comparison(&env, hash, password);
        verified.add(of("hash", "password"), at(10));
        assert!(verified.has(&of("hash", "password"), at(11)));
        assert!(!verified.has(&of("hash", "password"), at(12)));
        for (hash, password) in [("other", "password"), ("hash", "other"), ("hashp", "assword")] {
            assert!(!verified.has(&of(hash, password), at(11)), "{hash} {password}");
        }
    }

    #[test]
    fn no_more_passwords_are_kept_than_may_be() {
        let verified = Verified::new(Duration::from_secs(2));
        let (number, at) = (|number: usize| [(number / 256) as u8, (number % 256) as u8], Instant::from_nanos);
        let comparison = |of: usize| {
            let mut comparison = [0; 32];
            comparison[..2].copy_from_slice(&number(of));
            comparison
        };
        (0..VERIFIED_MAX + 10).for_each(|of| verified.add(comparison(of), at(0)));
        assert!(verified.has(&comparison(VERIFIED_MAX - 1), at(1)) && !verified.has(&comparison(VERIFIED_MAX), at(1)));
        verified.add(comparison(VERIFIED_MAX), at(2_000_000_000));
        assert!(verified.has(&comparison(VERIFIED_MAX), at(2_000_000_001)), "those before have made room");
        let none = Verified::new(Duration::ZERO);
        none.add(comparison(1), at(0));
        assert!(!none.has(&comparison(1), at(0)));
    }
}
