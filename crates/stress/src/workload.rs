//! The workload: operations, each with its weight.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rand::RngExt;
use rand::rngs::SmallRng;
use scylla::client::session::Session;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::serialize::row::SerializeRow;
use scylla::statement::prepared::PreparedStatement;

use crate::Result;
use crate::distribution::Distribution;
use crate::seeds::{Source, Visit};

/// The result of an operation.
pub struct Done {
    pub partitions: u64,
    pub rows: u64,
}

/// One attempt of an operation, in progress.
pub type Try<'a> = Pin<Box<dyn Future<Output = Result<Done>> + Send + 'a>>;

/// A kind of operation.
pub trait Operation: Send + Sync {
    /// The name in results.
    fn name(&self) -> &str;

    /// Whether it changes the content of its partitions.
    fn is_write(&self) -> bool {
        false
    }

    /// Called when a run begins; forgets what it remembers of the run before.
    fn begin(&self) {}

    /// The partitions of the next operation; None: nothing is left to do.
    fn next(&self, source: &Source) -> Option<Vec<Visit>> {
        Some(vec![source.visit(source.permit()?, self.is_write())?])
    }

    /// Executes an operation on these partitions. `draw` decides everything random and is the same
    /// for each attempt.
    fn run<'a>(&'a self, visits: &'a [Visit], draw: u64) -> Try<'a>;

    /// Called when an operation has ended, successfully or not.
    fn ended(&self, visits: &[Visit]) {
        let _ = visits;
    }
}

/// An operation whose random choices are made.
pub struct Next {
    /// The index of its kind in the workload.
    pub kind: usize,
    pub visits: Vec<Visit>,
    pub draw: u64,
}

/// The kinds of operations and their weights.
pub struct Workload {
    pub operations: Vec<Arc<dyn Operation>>,
    weights: Vec<f64>,
    /// How many operations of one kind a thread executes before it draws again.
    streak: Distribution,
}

/// The state of a thread: its present kind, and how many more of that kind.
#[derive(Default)]
pub struct Streak {
    kind: usize,
    left: i64,
}

impl Workload {
    /// A workload of operations with weights.
    pub fn new(parts: Vec<(Arc<dyn Operation>, f64)>, streak: Distribution) -> Self {
        let (operations, weights) = parts.into_iter().unzip();
        Self { operations, weights, streak }
    }

    /// The next operation of a thread; None: nothing is left.
    pub fn next(&self, source: &Source, streak: &mut Streak, random: &mut SmallRng) -> Option<Next> {
        if streak.left <= 0 {
            *streak = Streak { kind: self.draw(random), left: self.streak.draw(0, random).max(1) };
        }
        streak.left -= 1;
        let visits = self.operations[streak.kind].next(source)?;
        let draw = visits.first()?.draw();
        Some(Next { kind: streak.kind, visits, draw })
    }

    fn draw(&self, random: &mut SmallRng) -> usize {
        let mut place = random.random::<f64>() * self.weights.iter().sum::<f64>();
        let passed = |weight: &f64| {
            place -= weight;
            place < 0.0
        };
        self.weights.iter().position(passed).unwrap_or(self.weights.len() - 1)
    }
}

/// An attempt that reads one partition after the other; each read returns a number of rows.
pub fn one_by_one<'a, F>(visits: &'a [Visit], ask: impl Fn(u64) -> F + Send + 'a) -> Try<'a>
where
    F: Future<Output = Result<u64>> + Send + 'a,
{
    Box::pin(async move {
        let mut rows = 0;
        for visit in visits {
            rows += ask(visit.seed).await?;
        }
        Ok(Done { partitions: visits.len() as u64, rows })
    })
}

/// Reads all pages and returns the number of rows.
pub async fn count_rows(session: &Session, statement: &PreparedStatement, values: impl SerializeRow) -> Result<u64> {
    let (mut rows, mut page) = (0, PagingState::start());
    loop {
        let (answer, state) = session.execute_single_page(statement, &values, page).await?;
        if answer.is_rows() {
            rows += answer.into_rows_result()?.rows_num() as u64;
        }
        match state {
            PagingStateResponse::HasMorePages { state } => page = state,
            PagingStateResponse::NoMorePages => return Ok(rows),
        }
    }
}
