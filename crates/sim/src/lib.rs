//! Machines from one seed: the programs that run on them, the troubles that happen to them, and
//! the judges of a run.
//!
//! A run is a pure function of its seed. [`env::sim::World`] is the machines and their network; a
//! *subject* is the programs that run on them ([`node`]: Helenus as it is; [`register`]: a small
//! example
//! protocol, to test the harness itself); [`faults`] are the troubles that happen to them; clients
//! write down their requests and the answers ([`history`]); [`judges`] look at that, one file for
//! each property. To follow a run, start at [`run::run`].
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
