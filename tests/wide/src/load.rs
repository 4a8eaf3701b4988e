//! Writing: unlogged batches of one partition, many under way at once; every batch is acknowledged
//! before the end.

use std::sync::Arc;
use std::time::Instant;

use futures_util::stream::{StreamExt, TryStreamExt, iter};
use scylla::client::session::Session;
use scylla::statement::batch::{Batch, BatchType};

use crate::Outcome;
use crate::data::{KEYSPACE, Table, key, name, value, widths};

/// Rows of a batch; 200 of 60 bytes make a request of 12 KiB.
const BATCH_ROWS: u64 = 200;
/// Batches under way.
const UNDER_WAY: usize = 64;

/// Makes the tables anew and writes every partition up to `cells_max`.
pub async fn run(session: Session, cells_max: u64) -> Outcome {
    create(&session).await?;
    let session = Arc::new(session);
    let begun = Instant::now();
    let mut rows = 0;
    for table in Table::ALL {
        for width in widths(cells_max) {
            let part = Instant::now();
            partition(&session, table, width).await?;
            rows += width;
            println!("{:<16} {width:>9} cells in {:>8.2?}", table.name(), part.elapsed());
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("loaded {rows} rows in {seconds:.1} s, {:.0} rows/s", rows as f64 / seconds);
    Ok(())
}

async fn create(session: &Session) -> Outcome {
    session.query_unpaged(format!("DROP KEYSPACE IF EXISTS {KEYSPACE}"), &[]).await?;
    let create =
        format!("CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}");
    session.query_unpaged(create, &[]).await?;
    for table in Table::ALL {
        let (name, order) = (table.name(), table.order());
        let create = format!(
            "CREATE TABLE {name} (key text, name text, value text, PRIMARY KEY (key, name)) WITH CLUSTERING ORDER BY (name {order})"
        );
        session.query_unpaged(create, &[]).await?;
    }
    session.await_schema_agreement().await?;
    Ok(())
}

async fn partition(session: &Arc<Session>, table: Table, width: u64) -> Outcome {
    let insert = session.prepare(format!("INSERT INTO {} (key, name, value) VALUES (?, ?, ?)", table.name())).await?;
    let mut full = Batch::new(BatchType::Unlogged);
    (0..BATCH_ROWS.min(width)).for_each(|_| full.append_statement(insert.clone()));
    let full = Arc::new(session.prepare_batch(&full).await?);
    assert!(width.is_multiple_of(BATCH_ROWS.min(width)), "widths are whole numbers of batches");
    let key = key(width);
    iter(0..width.div_ceil(BATCH_ROWS))
        .map(|number| {
            let first = number * BATCH_ROWS;
            let rows: Vec<_> = (first..width.min(first + BATCH_ROWS))
                .map(|i| (key.clone(), name(i), value(table, width, i)))
                .collect();
            let (session, batch) = (session.clone(), full.clone());
            async move {
                tokio::spawn(async move { session.batch(&batch, rows).await.map(drop) })
                    .await
                    .expect("a writing task does not panic")
            }
        })
        .buffer_unordered(UNDER_WAY)
        .try_collect::<()>()
        .await?;
    Ok(())
}
