//! The bytes for which a request counts while it waits: its body, and everything that is made of
//! it.
//!
//! Texts that are not prepared grow: to a tree, and to a plan for each statement. The bytes that
//! are counted are an upper estimate for statements of many short terms (docs/notes/0011). A BATCH
//! grows, too: a statement of twenty bytes is an update of many hundred.

use protocol::Request;
use protocol::request::BatchStatement;
use transport::limits::LARGE_BODY;

use crate::limits::{BOUND_SIZE, PARSED_MIN, PARSED_TIMES, PLAN_SIZE, STATEMENT_SIZE, TERM_SIZE, VALUE_TIMES};

/// Bytes for which a request counts whose body has `size` bytes once it is decompressed.
#[inline]
pub(crate) fn of(request: &Request, size: usize) -> usize {
    let made = match request {
        Request::Query(query) => parsed(&query.query, size),
        Request::Prepare(prepare) => parsed(&prepare.query, size),
        Request::Batch(batch) => batch.statements.iter().map(of_statement).sum(),
        _ => 0,
    };
    if size >= LARGE_BODY { size * VALUE_TIMES + made } else { size + made }
}

/// Bytes that are made of a statement of a batch, for as long as the batch is executed.
#[inline]
fn of_statement(statement: &BatchStatement) -> usize {
    let made = match statement {
        BatchStatement::Query { query, .. } => PLAN_SIZE + parsed(query, query.len()),
        BatchStatement::Prepared { .. } => STATEMENT_SIZE,
    };
    made + statement.values().len() * BOUND_SIZE
}

/// Bytes that are made of a text. `size`: bytes of the text and of the values that come with it.
#[inline]
fn parsed(text: &str, size: usize) -> usize {
    if size < LARGE_BODY { size * PARSED_TIMES } else { PARSED_MIN.max(terms(text) * TERM_SIZE) }
}

/// The number of words, numbers and quoted strings of a text.
#[cold]
fn terms(text: &str) -> usize {
    let (mut count, mut is_quoted, mut is_in_term) = (0, false, false);
    for byte in text.bytes() {
        if byte == b'\'' {
            is_quoted = !is_quoted;
        }
        let is_of_term =
            is_quoted || matches!(byte, b'\'' | b'"' | b'_') || byte.is_ascii_alphanumeric() || !byte.is_ascii();
        count += usize::from(is_of_term && !is_in_term);
        is_in_term = is_of_term;
    }
    count
}

#[cfg(test)]
mod tests {
    use protocol::request::{Batch, Query, QueryParameters, Value, Values};
    use types::{BatchKind, Consistency};

    use super::*;

    const DELETE: &str = "DELETE FROM t WHERE k=1 ";

    fn query(text: String) -> usize {
        let size = text.len();
        of(&Request::Query(Query { query: text.into(), parameters: QueryParameters::new(Consistency::One) }), size)
    }

    #[test]
    fn a_batch_counts_with_what_is_made_of_its_statements() {
        const COUNT: usize = 10_000;
        const SIZE: usize = 1000;
        let values = || Values::from_iter([Value::Null, Value::Unset]);
        let text = || BatchStatement::Query { query: DELETE.into(), values: Values::default() };
        let prepared = || BatchStatement::Prepared { id: vec![0; 16].into(), values: Values::default() };
        let bound = || BatchStatement::Prepared { id: vec![0; 16].into(), values: values() };
        let of_text = PLAN_SIZE + DELETE.len() * PARSED_TIMES;
        let cases: [(&dyn Fn() -> BatchStatement, usize); 3] =
            [(&text, of_text), (&prepared, STATEMENT_SIZE), (&bound, STATEMENT_SIZE + 2 * BOUND_SIZE)];
        for (statement, made) in cases {
            let statements = (0..COUNT).map(|_| statement()).collect();
            let parameters = QueryParameters::new(Consistency::One);
            let batch = Request::Batch(Batch { kind: BatchKind::Unlogged, statements, parameters });
            assert_eq!(of(&batch, SIZE), SIZE + COUNT * made);
        }
    }

    /// A long text of many short statements counts with them, one of a long value with the value.
    #[test]
    fn a_long_text_counts_with_its_terms() {
        const COUNT: usize = 50_000;
        assert!(query(format!("BEGIN BATCH {} APPLY BATCH", DELETE.repeat(COUNT))) >= COUNT * 512);
        let text = format!("INSERT INTO t (k, v) VALUES (1, '{}')", "It''s a long tale. ".repeat(COUNT));
        let size = text.len();
        assert_eq!(query(text), size * VALUE_TIMES + PARSED_MIN);
        assert_eq!(query(DELETE.to_owned()), DELETE.len() * (1 + PARSED_TIMES));
    }
}
