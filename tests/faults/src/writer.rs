//! One client: it writes one statement after the other, waits for each answer, and knows what has
//! to be there. Of the last statement, whose answer may not have come, it does not know; what is
//! read next decides, and then stays.

use std::sync::atomic::{AtomicBool, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use scylla::client::session::Session;
use scylla::response::query_result::QueryResult;
use scylla::value::Counter;

use crate::Outcome;
use crate::partition::{Action, Answer, NUMBERS, Partition, any_action, brief_answer, short_text, statement};

/// A table for each way in which rows may be kept. What is deleted may go at once, so that nothing
/// hides a resurrection.
const TABLES: [(&str, &str); 4] = [
    ("observed.unified", "compaction = {'class': 'UnifiedCompactionStrategy', 'min_sstable_size': '0B'}"),
    (
        "observed.sized",
        "compaction = {'class': 'SizeTieredCompactionStrategy', 'min_threshold': '2'} AND caching = {'keys': 'ALL', 'rows_per_partition': 'ALL'}",
    ),
    (
        "observed.leveled",
        "compaction = {'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': '1'} AND compression = {'class': 'ZstdCompressor', 'chunk_length_in_kb': '4'}",
    ),
    (
        "observed.windows",
        "compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'MINUTES', 'compaction_window_size': '1'} AND caching = {'keys': 'NONE', 'rows_per_partition': '10'}",
    ),
];

/// Makes what writers write to.
pub async fn create(session: &Session) -> Outcome {
    let keyspace = "CREATE KEYSPACE observed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    session.query_unpaged(keyspace, &[]).await?;
    for (table, options) in TABLES {
        let columns =
            "part int, number int, fixed text static, value text, parts map<int, text>, PRIMARY KEY (part, number)";
        session
            .query_unpaged(format!("CREATE TABLE {table} ({columns}) WITH gc_grace_seconds = 0 AND {options}"), &[])
            .await?;
    }
    session.query_unpaged("CREATE TABLE observed.counted (id int PRIMARY KEY, n counter)", &[]).await?;
    session.query_unpaged("CREATE TABLE observed.decided (id int PRIMARY KEY, n int)", &[]).await?;
    Ok(())
}

/// Signals to the writers.
#[derive(Default)]
pub struct HarmSignals {
    /// Something was done to the server: a statement may fail.
    pub done: AtomicBool,
    /// Enough is written.
    pub ended: AtomicBool,
}

/// A statement that was sent and has no answer yet.
#[derive(Clone, Debug)]
enum Pending {
    /// Actions on the first or the second partition: all of them or none.
    Rows(Vec<(usize, Action)>),
    /// One more.
    Count,
    /// One more, if the number is what it should be.
    Decide,
}

/// The rows of one writer.
#[derive(Clone, Default)]
struct State {
    partitions: [Partition; 2],
    counted: i64,
    decided: Option<i32>,
}

impl State {
    fn apply(&mut self, pending: &Pending) {
        match pending {
            Pending::Rows(actions) => actions.iter().for_each(|(which, action)| self.partitions[*which].apply(action)),
            Pending::Count => self.counted += 1,
            Pending::Decide => self.decided = Some(self.decided.map_or(0, |number| number + 1)),
        }
    }
}

/// A client and its two partitions, its counter and its decided number.
pub struct Writer {
    id: i32,
    table: &'static str,
    state: State,
    pending: Option<Pending>,
    random: StdRng,
    /// Statements that were acknowledged.
    pub acknowledged: u64,
}

impl Writer {
    /// A writer with nothing.
    pub fn new(id: i32, seed: u64) -> Self {
        let random = StdRng::seed_from_u64(seed ^ (id as u64) << 32);
        let table = TABLES[id as usize % TABLES.len()].0;
        Self { id, table, state: State::default(), pending: None, random, acknowledged: 0 }
    }

    /// Writes to the end, or until a statement fails: that is an error unless harm was done before.
    pub async fn work(&mut self, session: &Session, harm: &HarmSignals) -> Outcome {
        while !harm.ended.load(Ordering::Relaxed) {
            let done = self.one(session).await;
            match done {
                Ok(()) => self.acknowledged += 1,
                Err(_) if harm.done.load(Ordering::Relaxed) => return Ok(()),
                Err(error) => return Err(format!("writer {}: {}", self.id, short(&error.to_string())).into()),
            }
        }
        Ok(())
    }

    async fn one(&mut self, session: &Session) -> Outcome {
        let pending = match self.random.random_range(0..100) {
            0..4 => Pending::Count,
            4..8 => Pending::Decide,
            8..12 => return self.read(session).await,
            12..16 => Pending::Rows(self.batch()),
            _ => Pending::Rows(vec![(self.random.random_range(0..2), any_action(&mut self.random))]),
        };
        self.pending = Some(pending.clone());
        let answer = session.query_unpaged(self.text(&pending), &[]).await?;
        if matches!(pending, Pending::Decide) {
            decided(answer)?;
        }
        self.state.apply(&pending);
        self.pending = None;
        Ok(())
    }

    /// Inserts into both partitions.
    fn batch(&mut self) -> Vec<(usize, Action)> {
        let first = self.random.random_range(0..NUMBERS - 4);
        (first..first + 4)
            .map(|number| (number as usize % 2, Action::Insert(number, short_text(&mut self.random))))
            .collect()
    }

    fn text(&self, pending: &Pending) -> String {
        match pending {
            Pending::Rows(actions) if actions.len() == 1 => self.statement(&actions[0]),
            Pending::Rows(actions) => {
                let statements: Vec<String> = actions.iter().map(|action| self.statement(action) + ";").collect();
                format!("BEGIN BATCH {} APPLY BATCH", statements.join(" "))
            }
            Pending::Count => format!("UPDATE observed.counted SET n = n + 1 WHERE id = {}", self.id),
            Pending::Decide => {
                let next = self.state.decided.map_or(0, |number| number + 1);
                let now = self.state.decided.map_or("null".to_owned(), |number| number.to_string());
                format!("UPDATE observed.decided SET n = {next} WHERE id = {} IF n = {now}", self.id)
            }
        }
    }

    fn statement(&self, (which, action): &(usize, Action)) -> String {
        statement(action, self.table, self.part(*which))
    }

    fn part(&self, which: usize) -> i32 {
        self.id * 2 + which as i32
    }

    /// Reads one partition while nothing is under way.
    async fn read(&mut self, session: &Session) -> Outcome {
        let which = self.random.random_range(0..2);
        let seen = self.partition(session, which).await?;
        let want = &self.state.partitions[which];
        if want.is(&seen) { Ok(()) } else { Err(self.differs(which, want, &seen).into()) }
    }

    fn differs(&self, which: usize, want: &Partition, seen: &[Answer]) -> String {
        let (table, part) = (self.table, self.part(which));
        format!("{table} part {part} has {} and should have {}", brief_answer(seen), want.brief())
    }

    async fn partition(&self, session: &Session, which: usize) -> Outcome<Vec<Answer>> {
        let text = format!("SELECT number, fixed, value, parts FROM {} WHERE part = {}", self.table, self.part(which));
        let rows = session.query_unpaged(text, &[]).await?.into_rows_result()?;
        Ok(rows.rows::<Answer>()?.collect::<Result<_, _>>()?)
    }

    /// Each answer is what was acknowledged or an error: how many are errors. Nothing may be under
    /// way.
    pub async fn right_or_refused(&self, session: &Session) -> Outcome<u32> {
        let mut refused = 0;
        for which in 0..2 {
            let want = &self.state.partitions[which];
            match self.partition(session, which).await {
                Ok(seen) if !want.is(&seen) => return Err(self.differs(which, want, &seen).into()),
                Ok(_) => {}
                Err(error) => refused += refusal(error)?,
            }
        }
        match self.number::<Counter>(session, "counted").await {
            Ok(seen) if seen.map_or(0, |counter| counter.0) != self.state.counted => {
                return Err(format!("{seen:?} counted, {} acknowledged", self.state.counted).into());
            }
            Ok(_) => {}
            Err(error) => refused += refusal(error)?,
        }
        match self.number::<i32>(session, "decided").await {
            Ok(seen) if seen != self.state.decided => {
                Err(format!("{seen:?} decided, {:?} acknowledged", self.state.decided).into())
            }
            Ok(_) => Ok(refused),
            Err(error) => Ok(refused + refusal(error)?),
        }
    }

    /// Reads everything: it is what was acknowledged, with or without the statement that had no
    /// answer. That is decided by it.
    pub async fn verify(&mut self, session: &Session) -> Outcome {
        let seen = [self.partition(session, 0).await?, self.partition(session, 1).await?];
        let counted = self.number::<Counter>(session, "counted").await?.map(|counter| counter.0);
        let decided: Option<i32> = self.number(session, "decided").await?;
        let mut with = self.state.clone();
        let pending = self.pending.take();
        if let Some(pending) = &pending {
            with.apply(pending);
        }
        let is = |state: &State| {
            state.partitions.iter().zip(&seen).all(|(partition, seen)| partition.is(seen))
                && state.counted == counted.unwrap_or(0)
                && state.decided == decided
        };
        if is(&self.state) {
            return Ok(());
        }
        if is(&with) {
            self.state = with;
            return Ok(());
        }
        for (which, seen) in seen.iter().enumerate() {
            if !self.state.partitions[which].is(seen) && !with.partitions[which].is(seen) {
                let without = self.differs(which, &self.state.partitions[which], seen);
                return Err(format!("{without}; not known is {}", short(&format!("{pending:?}"))).into());
            }
        }
        let state = &self.state;
        let all =
            format!("counted {counted:?}, decided {decided:?}; acknowledged {} and {:?}", state.counted, state.decided);
        Err(format!("writer {}: {all}; not known is {}", self.id, short(&format!("{pending:?}"))).into())
    }

    async fn number<T>(&self, session: &Session, table: &str) -> Outcome<Option<T>>
    where
        T: for<'a, 'b> scylla::deserialize::value::DeserializeValue<'a, 'b>,
    {
        let text = format!("SELECT n FROM observed.{table} WHERE id = {}", self.id);
        let rows = session.query_unpaged(text, &[]).await?.into_rows_result()?;
        Ok(rows.maybe_first_row::<(Option<T>,)>()?.and_then(|(number,)| number))
    }
}

fn decided(answer: QueryResult) -> Outcome {
    let rows = answer.into_rows_result()?;
    let row = rows.first_row::<scylla::value::Row>()?;
    match row.columns.first() {
        Some(Some(scylla::value::CqlValue::Boolean(true))) => Ok(()),
        _ => Err(format!("a condition did not hold: {row:?}").into()),
    }
}

/// One, if the server said so; an error of the connection is none of its answers.
fn refusal(error: Box<dyn std::error::Error + Send + Sync>) -> Outcome<u32> {
    use scylla::errors::{ExecutionError, RequestAttemptError};
    match error.downcast_ref::<ExecutionError>() {
        Some(ExecutionError::LastAttemptError(RequestAttemptError::DbError(..))) => Ok(1),
        _ => Err(error),
    }
}

/// Long values make long errors.
fn short(text: &str) -> &str {
    let end = (0..=text.len().min(600)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}
