//! Nothing but tests: see `tests/driver.rs`. Needs HELENUS_TEST_HOST and HELENUS_TEST_PORT, which
//! `tests/run` sets.
