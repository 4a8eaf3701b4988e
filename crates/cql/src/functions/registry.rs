//! The registry of all native functions by name. It is made once from the declarations of all
//! families, and read when statements are prepared.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.NativeFunctions`.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::factory::Factory;
use super::{Function, aggregates, blobs, casts, collections, json, masking, math, operations, time, uuids, vectors};

/// The functions.
#[derive(Default)]
pub(super) struct FunctionRegistry {
    functions: BTreeMap<Arc<str>, Vec<Arc<Function>>>,
    factories: BTreeMap<&'static str, Factory>,
}

/// All native functions.
pub(super) static REGISTRY: LazyLock<FunctionRegistry> = LazyLock::new(|| {
    let mut registry = FunctionRegistry::default();
    casts::declare(&mut registry);
    uuids::declare(&mut registry);
    time::declare(&mut registry);
    json::declare(&mut registry);
    operations::declare(&mut registry);
    aggregates::declare(&mut registry);
    collections::declare(&mut registry);
    blobs::declare(&mut registry);
    math::declare(&mut registry);
    masking::declare(&mut registry);
    vectors::declare(&mut registry);
    registry
});

impl FunctionRegistry {
    /// Adds a function.
    pub fn add(&mut self, function: Function) {
        self.functions.entry(Arc::clone(&function.name)).or_default().push(Arc::new(function));
    }

    /// Adds a function under its name and under its name before Cassandra 5.0.
    pub fn add_with_old_name(&mut self, function: Function, old: &str) {
        self.add(function.renamed(old));
        self.add(function);
    }

    /// Adds a factory.
    pub fn add_factory(&mut self, factory: Factory) {
        self.factories.insert(factory.name, factory);
    }

    /// The functions of a name.
    pub fn functions(&self, name: &str) -> &[Arc<Function>] {
        self.functions.get(name).map_or(&[], Vec::as_slice)
    }

    /// The factory of a name.
    pub fn factory(&self, name: &str) -> Option<&Factory> {
        self.factories.get(name)
    }

    /// All functions that are not made by a factory.
    #[cfg(test)]
    pub fn all(&self) -> impl Iterator<Item = &Arc<Function>> {
        self.functions.values().flatten()
    }

    /// Every factory.
    #[cfg(test)]
    pub fn factories(&self) -> impl Iterator<Item = &Factory> {
        self.factories.values()
    }
}
