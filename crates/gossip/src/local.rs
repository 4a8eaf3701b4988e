//! The state that this node tells of itself: a counter, a heartbeat, values.

use internode::payload::gossip::{ApplicationState, EndpointState, VersionedValue};

/// This node's state. Every change takes the counter's next value, so that no version is used twice
/// in a generation.
#[derive(Clone, Debug)]
pub struct Local {
    counter: i32,
    state: EndpointState,
}

impl Local {
    /// A state without values. `generation` must be greater than that of every earlier start:
    /// seconds since 1970 at the start, but at least one more than the stored generation.
    pub fn new(generation: i32) -> Self {
        Self { counter: 0, state: EndpointState { generation, heartbeat: 0, values: Vec::new() } }
    }

    /// The state as others are told it.
    pub fn state(&self) -> &EndpointState {
        &self.state
    }

    /// Begins a new generation with the same values, so that others take all of them anew.
    /// `generation` must be greater than the present one.
    pub fn begin_generation(&mut self, generation: i32) {
        assert!(generation > self.state.generation, "generations of a node ascend");
        self.state.generation = generation;
        self.increment_heartbeat();
    }

    /// Raises the heartbeat. Called once a second.
    pub fn increment_heartbeat(&mut self) {
        self.state.heartbeat = self.next();
        self.check();
    }

    /// Sets a value. Values that belong together are set in the order in which others must see
    /// them: TOKENS before the status.
    pub fn set(&mut self, state: ApplicationState, value: impl Into<String>) {
        let value = VersionedValue { value: value.into(), version: self.next() };
        put(&mut self.state, state, value);
        self.check();
    }

    fn check(&self) {
        assert_eq!(self.state.max_version(), self.counter, "the last change has the greatest version");
    }

    fn next(&mut self) -> i32 {
        self.counter = self.counter.checked_add(1).expect("a generation ends before its counter: 68 years of seconds");
        self.counter
    }
}

/// Sets a value of a state; values stay in the order of their states' numbers.
pub(crate) fn put(of: &mut EndpointState, state: ApplicationState, value: VersionedValue) {
    match of.values.binary_search_by_key(&state, |(known, _)| *known) {
        Ok(place) => of.values[place].1 = value,
        Err(place) => of.values.insert(place, (state, value)),
    }
    let ascend = |pair: &[(ApplicationState, VersionedValue)]| pair[0].0 < pair[1].0;
    assert!(of.values.windows(2).all(ascend), "the values of a state that is kept ascend by their numbers");
}
