//! What is asked of the cluster: operations, each with its weight.

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
use crate::pace::Source;

/// What an operation was for.
pub struct Done {
    pub partitions: u64,
    pub rows: u64,
}

/// One try of an operation, under way.
pub type Try<'a> = Pin<Box<dyn Future<Output = Result<Done>> + Send + 'a>>;

/// A kind of operation.
pub trait Operation: Send + Sync {
    /// Its name in results.
    fn name(&self) -> &str;

    /// How many partitions the next one is about.
    fn partitions(&self, random: &mut SmallRng) -> usize {
        let _ = random;
        1
    }

    /// Asks for these partitions. `draw` decides what is left to chance: the same for each try of an operation.
    fn run<'a>(&'a self, seeds: &'a [u64], draw: u64) -> Try<'a>;
}

/// An operation with all that is random about it decided.
pub struct Next {
    /// Its place in the workload.
    pub kind: usize,
    pub seeds: Vec<u64>,
    pub draw: u64,
}

/// Kinds of operations and how often each is wanted.
pub struct Workload {
    pub operations: Vec<Arc<dyn Operation>>,
    weights: Vec<f64>,
}

impl Workload {
    /// Operations with their weights.
    pub fn new(parts: Vec<(Arc<dyn Operation>, f64)>) -> Self {
        let (operations, weights) = parts.into_iter().unzip();
        Self { operations, weights }
    }

    /// The next operation; none once the source is at its end.
    pub fn next(&self, source: &Source, random: &mut SmallRng) -> Option<Next> {
        let mut place = random.random::<f64>() * self.weights.iter().sum::<f64>();
        let passed = |weight: &f64| {
            place -= weight;
            place < 0.0
        };
        let kind = self.weights.iter().position(passed).unwrap_or(self.weights.len() - 1);
        let wanted = self.operations[kind].partitions(random).max(1);
        let seeds: Vec<u64> = (0..wanted).map_while(|_| source.seed(random)).collect();
        (!seeds.is_empty()).then(|| Next { kind, seeds, draw: random.random() })
    }
}

/// A try that asks for one partition after the other; each gives its rows.
pub fn one_by_one<'a, F>(seeds: &'a [u64], ask: impl Fn(u64) -> F + Send + 'a) -> Try<'a>
where
    F: Future<Output = Result<u64>> + Send + 'a,
{
    Box::pin(async move {
        let mut rows = 0;
        for seed in seeds {
            rows += ask(*seed).await?;
        }
        Ok(Done { partitions: seeds.len() as u64, rows })
    })
}

/// Asks for all pages; gives the number of rows.
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
