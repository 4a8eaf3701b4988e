//! The client that changes the schema: tables made, given columns, dropped; one table filled and
//! truncated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use scylla::client::session::Session;

use crate::Outcome;
use crate::writer::HarmSignals;

/// Tables that there are at once.
const TABLES_MAX: usize = 12;

/// One statement.
#[derive(Clone, Debug)]
enum Change {
    Create(u32),
    Add(u32, u32),
    Drop(u32),
    Fill(i32),
    Truncate,
}

#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct State {
    /// A table's number, and how many columns were added to it.
    tables: BTreeMap<u32, u32>,
    filled: BTreeSet<i32>,
}

impl State {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Create(number) => {
                self.tables.insert(*number, 0);
            }
            Change::Add(number, column) => {
                self.tables.insert(*number, column + 1);
            }
            Change::Drop(number) => {
                self.tables.remove(number);
            }
            Change::Fill(id) => {
                self.filled.insert(*id);
            }
            Change::Truncate => self.filled.clear(),
        }
    }
}

/// The client.
pub struct Builder {
    state: State,
    pending: Option<Change>,
    random: StdRng,
    next: u32,
    /// Statements that were acknowledged.
    pub acknowledged: u64,
}

impl Builder {
    /// One with nothing.
    pub fn new(seed: u64) -> Self {
        Self { state: State::default(), pending: None, random: StdRng::seed_from_u64(!seed), next: 0, acknowledged: 0 }
    }

    /// Makes what it fills.
    pub async fn create(session: &Session) -> Outcome {
        session.query_unpaged("CREATE TABLE observed.emptied (id int PRIMARY KEY, value text)", &[]).await?;
        Ok(())
    }

    /// Changes to the end, or until a statement fails: that is an error unless harm was done
    /// before.
    pub async fn work(&mut self, session: &Session, harm: &HarmSignals) -> Outcome {
        while !harm.ended.load(Ordering::Relaxed) {
            let change = self.any();
            self.pending = Some(change.clone());
            match session.query_unpaged(text(&change), &[]).await {
                Ok(_) => {
                    self.state.apply(&change);
                    self.pending = None;
                    self.acknowledged += 1;
                }
                Err(_) if harm.done.load(Ordering::Relaxed) => return Ok(()),
                Err(error) => return Err(format!("{}: {error}", text(&change)).into()),
            }
        }
        Ok(())
    }

    fn any(&mut self) -> Change {
        let some = self.random.random_range(0..self.state.tables.len().max(1));
        let some = self.state.tables.iter().nth(some).map(|(number, columns)| (*number, *columns));
        match (self.random.random_range(0..10), some) {
            (0, Some((number, _))) => Change::Drop(number),
            (1, Some((number, columns))) => Change::Add(number, columns),
            (2, _) if self.state.tables.len() < TABLES_MAX => {
                self.next += 1;
                Change::Create(self.next)
            }
            (3, _) => Change::Truncate,
            _ => Change::Fill(self.random.random_range(0..1000)),
        }
    }

    /// Reads everything: it is what was acknowledged, with or without the statement that had no
    /// answer.
    pub async fn verify(&mut self, session: &Session) -> Outcome {
        let mut seen = State::default();
        let text = "SELECT table_name, column_name FROM system_schema.columns WHERE keyspace_name = 'observed'";
        let rows = session.query_unpaged(text, &[]).await?.into_rows_result()?;
        for row in rows.rows::<(String, String)>()? {
            let (table, column) = row?;
            if let Some(number) = table.strip_prefix("made_") {
                let added = seen.tables.entry(number.parse()?).or_default();
                *added += u32::from(column.starts_with("added_"));
            }
        }
        let rows = session.query_unpaged("SELECT id FROM observed.emptied", &[]).await?.into_rows_result()?;
        for row in rows.rows::<(i32,)>()? {
            seen.filled.insert(row?.0);
        }
        let mut with = self.state.clone();
        let pending = self.pending.take();
        if let Some(change) = &pending {
            with.apply(change);
        }
        if seen != self.state && seen != with {
            return Err(format!("the schema is {seen:?}, should be {:?}; not known is {pending:?}", self.state).into());
        }
        self.state = seen;
        for number in self.state.tables.keys() {
            session.query_unpaged(format!("SELECT * FROM observed.made_{number}"), &[]).await?;
        }
        Ok(())
    }
}

fn text(change: &Change) -> String {
    match change {
        Change::Create(number) => format!("CREATE TABLE observed.made_{number} (id int PRIMARY KEY, value text)"),
        Change::Add(number, column) => format!("ALTER TABLE observed.made_{number} ADD added_{column} int"),
        Change::Drop(number) => format!("DROP TABLE observed.made_{number}"),
        Change::Fill(id) => format!("INSERT INTO observed.emptied (id, value) VALUES ({id}, 'x')"),
        Change::Truncate => "TRUNCATE observed.emptied".to_owned(),
    }
}
