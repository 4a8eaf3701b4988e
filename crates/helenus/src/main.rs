//! The `helenus` program: command line and start-up.
fn main() {}
