//! Machines from one seed: what runs on them, what happens to them, and the judges of what was
//! seen.
//!
//! A run is a pure function of its seed. [`env::sim::World`] is the machines and their network; a
//! *subject* is what runs on them ([`node`]: Helenus as it is; [`register`]: a small example
//! protocol, to test the harness itself); [`faults`] is what happens to them; clients write down
//! what they asked and what they heard ([`history`]); [`judges`] look at that, one file a property.
//! To follow a run, start at [`run::run`].
//!
//! Not here: the simulated machines themselves (`env::sim`), and the random histories of the
//! storage engine alone, which need no network (`storage`, `tests/model`).

pub mod faults;
pub mod history;
pub mod judges;
pub mod node;
pub mod register;
pub mod report;
pub mod run;
pub mod starting;
