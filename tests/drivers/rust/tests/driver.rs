//! The `scylla` driver against a running server (HELENUS_TEST_HOST, HELENUS_TEST_PORT): defaults,
//! schema, prepared statements, types, pages, batches, compression, events. Proven against
//! Cassandra 5.0.8.

use std::collections::HashMap;

use futures_util::TryStreamExt;
use scylla::client::Compression;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::unprepared::Statement;
use scylla::value::{CqlTimestamp, CqlTimeuuid, CqlValue, MaybeUnset};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn address() -> String {
    let host = std::env::var("HELENUS_TEST_HOST").expect("HELENUS_TEST_HOST names the server; tests/run starts one");
    let port = std::env::var("HELENUS_TEST_PORT").unwrap_or_else(|_| "9042".into());
    format!("{host}:{port}")
}

async fn connect() -> Session {
    SessionBuilder::new().known_node(address()).build().await.expect("the server takes a driver with defaults")
}

/// A keyspace of the test's own, made anew.
async fn keyspace(session: &Session, name: &str) -> Outcome {
    session.query_unpaged(format!("DROP KEYSPACE IF EXISTS {name}"), &[]).await?;
    let create =
        format!("CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}");
    session.query_unpaged(create, &[]).await?;
    Ok(())
}

async fn drop_keyspace(session: &Session, name: &str) -> Outcome {
    session.query_unpaged(format!("DROP KEYSPACE {name}"), &[]).await?;
    Ok(())
}

#[tokio::test]
async fn defaults_schema_and_metadata() -> Outcome {
    let session = connect().await;
    keyspace(&session, "rust_schema").await?;
    session.query_unpaged("CREATE TYPE rust_schema.place (name text, number int)", &[]).await?;
    let create = "CREATE TABLE rust_schema.t (k int, c timeuuid, v frozen<place>, s text static, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)";
    session.query_unpaged(create, &[]).await?;
    session.refresh_metadata().await?;
    let state = session.get_cluster_state();
    let keyspace = state.get_keyspace("rust_schema").expect("the driver has read the schema");
    let table = &keyspace.tables["t"];
    assert_eq!((&table.partition_key[..], &table.clustering_key[..]), (&["k".to_string()][..], &["c".to_string()][..]));
    assert_eq!(table.columns.len(), 4);
    assert!(keyspace.user_defined_types.contains_key("place"));
    assert_eq!(state.get_nodes_info().len(), 1);
    session.await_schema_agreement().await?;
    drop_keyspace(&session, "rust_schema").await
}

#[tokio::test]
async fn views_and_what_they_follow() -> Outcome {
    let session = connect().await;
    keyspace(&session, "rust_views").await?;
    session.query_unpaged("CREATE TABLE rust_views.t (k int, c int, v int, w text, PRIMARY KEY (k, c))", &[]).await?;
    let view = "CREATE MATERIALIZED VIEW rust_views.by_v AS SELECT v, k, c FROM rust_views.t WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY ((v, k), c)";
    session.query_unpaged(view, &[]).await?;
    session.query_unpaged("CREATE INDEX by_w ON rust_views.t (w) USING 'sai'", &[]).await?;
    let function = "CREATE FUNCTION rust_views.plus (state int, val int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return state + val;'";
    session.query_unpaged(function, &[]).await?;
    session.query_unpaged("CREATE AGGREGATE rust_views.total (int) SFUNC plus STYPE int INITCOND 5", &[]).await?;
    session.refresh_metadata().await?;
    let state = session.get_cluster_state();
    let keyspace = state.get_keyspace("rust_views").expect("the driver has read the schema");
    assert_eq!(keyspace.tables.keys().collect::<Vec<_>>(), ["t"], "an index is no table, nor is a view");
    let view = &keyspace.views["by_v"];
    assert_eq!(view.base_table_name, "t");
    let table = &view.view_metadata;
    assert_eq!((table.partition_key.join(" "), table.clustering_key.join(" ")), ("v k".into(), "c".into()));
    assert_eq!(table.columns.len(), 3);
    // this driver reads no functions and indexes; what they give has its types
    session.query_unpaged("INSERT INTO rust_views.t (k, c, v, w) VALUES (1, 2, 3, 'x')", &[]).await?;
    let found = session.prepare("SELECT rust_views.total(v) FROM rust_views.t WHERE w = ?").await?;
    let (sum,) = session.execute_unpaged(&found, ("x",)).await?.into_rows_result()?.single_row::<(i32,)>()?;
    assert_eq!(sum, 8);
    drop_keyspace(&session, "rust_views").await
}

#[tokio::test]
async fn prepared_statements_and_types() -> Outcome {
    let session = connect().await;
    keyspace(&session, "rust_types").await?;
    session
        .query_unpaged("CREATE TABLE rust_types.t (k int PRIMARY KEY, a text, b bigint, c blob, d list<int>, e map<text, int>, f tuple<int, text>, g timestamp, h timeuuid, i vector<float, 3>)", &[])
        .await?;
    let insert = session
        .prepare("INSERT INTO rust_types.t (k, a, b, c, d, e, f, g, h, i) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        .await?;
    let map = HashMap::from([("x".to_string(), 1), ("y".to_string(), 2)]);
    let id = CqlTimeuuid::from_bytes([
        0x8a, 0xc6, 0xd1, 0xdc, 0xfb, 0xeb, 0x11, 0xe9, 0x8f, 0x0b, 0x36, 0x2b, 0x9e, 0x15, 0x56, 0x67,
    ]);
    let row = (
        1,
        "text",
        i64::MIN,
        vec![0u8, 255],
        vec![3, 1, 2],
        &map,
        (7, "seven"),
        CqlTimestamp(1_700_000_000_123),
        id,
        vec![1.5f32, -2.0, 0.0],
    );
    session.execute_unpaged(&insert, row).await?;
    type Row =
        (i32, String, i64, Vec<u8>, Vec<i32>, HashMap<String, i32>, (i32, String), CqlTimestamp, CqlTimeuuid, Vec<f32>);
    let select = session.prepare("SELECT k, a, b, c, d, e, f, g, h, i FROM rust_types.t WHERE k = ?").await?;
    let got = session.execute_unpaged(&select, (1,)).await?.into_rows_result()?.single_row::<Row>()?;
    let want = (
        1,
        "text".to_string(),
        i64::MIN,
        vec![0, 255],
        vec![3, 1, 2],
        map,
        (7, "seven".to_string()),
        CqlTimestamp(1_700_000_000_123),
        id,
        vec![1.5, -2.0, 0.0],
    );
    assert_eq!(got, want);

    let partial = session.prepare("INSERT INTO rust_types.t (k, a, b) VALUES (?, ?, ?)").await?;
    session.execute_unpaged(&partial, (1, MaybeUnset::<&str>::Unset, None::<i64>)).await?;
    let got = session.query_unpaged("SELECT a, b FROM rust_types.t WHERE k = 1", &[]).await?;
    assert_eq!(got.into_rows_result()?.single_row::<(Option<String>, Option<i64>)>()?, (Some("text".into()), None));
    let named = session.prepare("SELECT a FROM rust_types.t WHERE k = :key").await?;
    let got = session.execute_unpaged(&named, HashMap::from([("key", 1)])).await?.into_rows_result()?;
    assert_eq!(got.single_row::<(String,)>()?.0, "text");
    drop_keyspace(&session, "rust_types").await
}

#[tokio::test]
async fn pages_forwards_and_reversed() -> Outcome {
    let session = connect().await;
    keyspace(&session, "rust_pages").await?;
    session.query_unpaged("CREATE TABLE rust_pages.t (k int, c int, PRIMARY KEY (k, c))", &[]).await?;
    let insert = session.prepare("INSERT INTO rust_pages.t (k, c) VALUES (1, ?)").await?;
    for c in 0..250 {
        session.execute_unpaged(&insert, (c,)).await?;
    }
    for (order, page) in [("ASC", 7), ("DESC", 7), ("ASC", 250), ("DESC", 1000)] {
        let statement =
            Statement::new(format!("SELECT c FROM rust_pages.t WHERE k = 1 ORDER BY c {order}")).with_page_size(page);
        let got: Vec<i32> = session
            .query_iter(statement, &[])
            .await?
            .rows_stream::<(i32,)>()?
            .map_ok(|row| row.0)
            .try_collect()
            .await?;
        let mut want: Vec<i32> = (0..250).collect();
        if order == "DESC" {
            want.reverse();
        }
        assert_eq!(got, want);
    }
    drop_keyspace(&session, "rust_pages").await
}

#[tokio::test]
async fn batches() -> Outcome {
    let session = connect().await;
    keyspace(&session, "rust_batch").await?;
    session.query_unpaged("CREATE TABLE rust_batch.t (k int, c int, v text, PRIMARY KEY (k, c))", &[]).await?;
    let insert = session.prepare("INSERT INTO rust_batch.t (k, c, v) VALUES (?, ?, ?)").await?;
    for kind in [BatchType::Logged, BatchType::Unlogged] {
        let mut batch = Batch::new(kind);
        let rows: Vec<(i32, i32, String)> = (0..40).map(|c| (1, c, format!("{kind:?} {c}"))).collect();
        rows.iter().for_each(|_| batch.append_statement(insert.clone()));
        session.batch(&batch, rows).await?;
        let got = session.query_unpaged("SELECT c, v FROM rust_batch.t WHERE k = 1", &[]).await?.into_rows_result()?;
        let got: Vec<(i32, String)> = got.rows()?.collect::<Result<_, _>>()?;
        assert_eq!(got, (0..40).map(|c| (c, format!("{kind:?} {c}"))).collect::<Vec<_>>());
    }
    drop_keyspace(&session, "rust_batch").await
}

#[tokio::test]
async fn compression() -> Outcome {
    for kind in [Compression::Lz4, Compression::Snappy] {
        let session = SessionBuilder::new().known_node(address()).compression(Some(kind)).build().await?;
        let result = session.query_unpaged("SELECT * FROM system_schema.columns", &[]).await?.into_rows_result()?;
        assert!(result.rows_num() > 100);
    }
    Ok(())
}

/// How often two sessions are asked for the schema version while other tests change it.
const ATTEMPTS_TO_AGREE: usize = 20;

/// This driver registers for events but reads the schema again only when asked to: the schema
/// version and agreement are what it goes by.
#[tokio::test]
async fn another_session_agrees_and_sees_the_schema() -> Outcome {
    let (session, watcher) = (connect().await, connect().await);
    keyspace(&session, "rust_events").await?;
    session.query_unpaged("CREATE TABLE rust_events.seen (k int PRIMARY KEY)", &[]).await?;
    let mut agree = false;
    // the other tests change the schema of the same server, also between two questions
    for _ in 0..ATTEMPTS_TO_AGREE {
        agree |= session.await_schema_agreement().await? == watcher.await_schema_agreement().await?;
    }
    assert!(agree, "two sessions never saw one schema version");
    watcher.refresh_metadata().await?;
    let state = watcher.get_cluster_state();
    assert!(state.get_keyspace("rust_events").is_some_and(|found| found.tables.contains_key("seen")));
    drop_keyspace(&session, "rust_events").await
}

#[tokio::test]
async fn tracing_and_errors() -> Outcome {
    let session = connect().await;
    let mut traced = Statement::new("SELECT key FROM system.local");
    traced.set_tracing(true);
    let id = session.query_unpaged(traced, &[]).await?.tracing_id().expect("a traced request has a tracing id");
    let info = session.get_tracing_info(&id).await?;
    assert!(!info.events.is_empty());
    let error = session.query_unpaged("SELECT nosuch FROM system.local", &[]).await.expect_err("no such column");
    assert!(error.to_string().contains("nosuch"), "{error}");
    let error = session.query_unpaged("SELEC", &[]).await.expect_err("no such statement");
    assert!(error.to_string().contains("line 1"), "{error}");
    Ok(())
}

#[tokio::test]
async fn many_requests_on_one_connection() -> Outcome {
    let session = connect().await;
    keyspace(&session, "rust_many").await?;
    session.query_unpaged("CREATE TABLE rust_many.t (k int PRIMARY KEY, v text)", &[]).await?;
    let insert = session.prepare("INSERT INTO rust_many.t (k, v) VALUES (?, ?)").await?;
    let writes =
        (0..5000).map(|k| session.execute_unpaged(&insert, (k, CqlValue::Text(format!("v{k}")))).into_future());
    futures_util::future::try_join_all(writes).await?;
    let select = session.prepare("SELECT v FROM rust_many.t WHERE k = ?").await?;
    let reads = (0..5000).map(|k| session.execute_unpaged(&select, (k,)).into_future());
    for (k, result) in futures_util::future::try_join_all(reads).await?.into_iter().enumerate() {
        assert_eq!(result.into_rows_result()?.single_row::<(String,)>()?.0, format!("v{k}"));
    }
    drop_keyspace(&session, "rust_many").await
}
