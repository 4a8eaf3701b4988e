//! gc_grace_seconds of tables that are loaded in several parts, one after the other.
//!
//! A part is live in the ring, and is compacted there, while the next one still comes. A compaction
//! forgets deletions that are older than gc_grace_seconds once nothing in the ring is left for them
//! to delete. Rows of a later part that such a deletion had covered would then be alive again. So
//! gc_grace_seconds is raised until all parts are there.
//!
//! The raised value is the value before plus [`RAISE`]. The table itself says with it that a load
//! is under way, and what the value was: a load that was interrupted leaves the raised value, and
//! the load that is repeated sets it back at its end.

use std::collections::{BTreeMap, BTreeSet};

use env::Env;
use schema::system::is_system_keyspace;
use stdx::Cursor;
use types::ident::{qualified, quote_text};

use crate::native::{Access, Answer, NativeConnection};
use crate::run::on_thread;

/// Keyspace and name of a table.
pub type TableName = (String, String);

/// gc_grace_seconds by table.
pub type Graces = BTreeMap<TableName, i32>;

/// Seconds that are added to gc_grace_seconds while a table is loaded: ten years and a second. No
/// deletion of a backup is as old as that.
///
/// - Nodes keep the state of a conditional write with gc_grace_seconds as its TTL. Cassandra
///   refuses a TTL of more than 20 years, and its version 4 refuses what expires after January
///   2038. With a greater value no conditional write to the table would succeed meanwhile.
/// - A gc_grace_seconds of ten years, which somebody may have chosen, does not look raised.
pub const RAISE: i32 = 315_360_001;

/// A gc_grace_seconds of two years or more stays as it is. Otherwise a value of more than ten years
/// that somebody has chosen would be taken for a raised one and be set back. With two years hardly
/// any deletion is forgotten while a backup is loaded.
const RAISED_BELOW: i32 = 63_072_000;

/// A change of gc_grace_seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GraceChange {
    /// [`RAISE`] is added.
    Raise,
    /// [`RAISE`] is taken off again.
    SetBack,
}

impl GraceChange {
    /// The value after the change; None: the value stays.
    fn of(self, seconds: i32) -> Option<i32> {
        let (changed, step) = match self {
            Self::Raise => (0..RAISED_BELOW, RAISE),
            Self::SetBack => (RAISE..RAISE + RAISED_BELOW, -RAISE),
        };
        changed.contains(&seconds).then_some(seconds.saturating_add(step))
    }
}

/// As [`graces`], on a thread of its own; waits for the end.
pub fn learn_graces(env: &Env, access: &Access) -> Result<Graces, String> {
    let (of_thread, access) = (env.clone(), access.clone());
    on_thread(env, move || Box::pin(async move { graces(&of_thread, &access).await }))
}

/// As [`set_graces`], on a thread of its own; waits for the end.
pub fn change_graces(
    env: &Env,
    access: &Access,
    tables: BTreeSet<TableName>,
    change: GraceChange,
) -> Result<(), String> {
    let (of_thread, access) = (env.clone(), access.clone());
    on_thread(env, move || Box::pin(async move { set_graces(&of_thread, &access, &tables, change).await }))
}

/// gc_grace_seconds of all tables that the ring has.
pub async fn graces(env: &Env, access: &Access) -> Result<Graces, String> {
    let mut connection = access.open(env).await?;
    let question = "SELECT keyspace_name, table_name, gc_grace_seconds FROM system_schema.tables";
    let answer = connection.ask(question).await?;
    let mut found = Graces::new();
    for row in 0..answer.rows.len() {
        let text = |column: &str| answer.text(row, column).unwrap_or_default();
        found.insert((text("keyspace_name"), text("table_name")), seconds(&answer, row)?);
    }
    Ok(found)
}

/// Changes gc_grace_seconds of tables. A table that the ring lacks is passed over, and so are
/// built-in tables, which nobody may alter.
pub async fn set_graces(
    env: &Env,
    access: &Access,
    tables: &BTreeSet<TableName>,
    change: GraceChange,
) -> Result<(), String> {
    let mut connection = access.open(env).await?;
    for (keyspace, name) in tables.iter().filter(|(keyspace, _)| !is_system_keyspace(keyspace)) {
        change_one(&mut connection, keyspace, name, change).await?;
    }
    Ok(())
}

/// Changes gc_grace_seconds of one table.
pub(crate) async fn change_one(
    connection: &mut NativeConnection,
    keyspace: &str,
    name: &str,
    change: GraceChange,
) -> Result<(), String> {
    let question = format!(
        "SELECT gc_grace_seconds FROM system_schema.tables WHERE keyspace_name = {} AND table_name = {}",
        quote_text(keyspace),
        quote_text(name)
    );
    let answer = connection.ask(&question).await?;
    if answer.rows.is_empty() {
        return Ok(());
    }
    let Some(changed) = change.of(seconds(&answer, 0)?) else { return Ok(()) };
    let statement = format!("ALTER TABLE {} WITH gc_grace_seconds = {changed}", qualified(keyspace, name));
    connection.execute(&statement).await.map_err(|why| format!("{why}: {statement}"))
}

fn seconds(answer: &Answer, row: usize) -> Result<i32, String> {
    let value = answer.value(row, "gc_grace_seconds").and_then(|bytes| Cursor::new(bytes).i32().ok());
    value.ok_or_else(|| "gc_grace_seconds of a table of the ring cannot be read".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_value_has_the_one_before_in_it() {
        for seconds in [0, 1, 864_000, RAISED_BELOW - 1] {
            let raised = GraceChange::Raise.of(seconds).expect("it has a raised form");
            assert_eq!(GraceChange::SetBack.of(raised), Some(seconds));
            assert_eq!(GraceChange::Raise.of(raised), None, "a repeated load raises nothing twice");
        }
        for stays in [RAISED_BELOW, RAISE - 1, RAISE + RAISED_BELOW, i32::MAX] {
            assert_eq!((GraceChange::Raise.of(stays), GraceChange::SetBack.of(stays)), (None, None), "{stays}");
        }
    }

    /// The states of conditional writes expire after gc_grace_seconds.
    #[test]
    fn a_raised_value_can_be_a_ttl() {
        let of = |seconds: i32| i64::from(GraceChange::Raise.of(seconds).expect("it has a raised form"));
        let twenty_years = 20 * 365 * 24 * 60 * 60;
        assert!(of(RAISED_BELOW - 1) <= twenty_years);
        let (ten_days, start_of_2027) = (864_000, 1_798_761_600_i64);
        assert!(start_of_2027 + of(ten_days) < i64::from(i32::MAX));
    }
}
