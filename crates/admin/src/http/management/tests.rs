//! The management API over a real socket, of the node of [`crate::fake`], and its table in the
//! documents.

use serde_json::{Value, json};

use super::{ENDPOINTS, EndpointAction};
use crate::http::tests::Served;
use crate::verbs::{EndpointInfo, EndpointState, RingInfo, SnapshotInfo};

/// Calls an endpoint with the token: status and body.
fn call(served: &Served, method: &str, path: &str, body: &str) -> (u16, String) {
    let bearer = format!("Bearer {}", served.token.token);
    served.client.raw_call(method, path, body, &[("Authorization", &bearer)]).expect("an answer")
}

fn get(served: &Served, path: &str) -> (u16, Value) {
    let (status, body) = served.client.raw_call("GET", path, "", &[]).expect("an answer");
    (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
}

#[test]
fn facts_of_the_node() {
    let served = Served::start();
    for (path, text) in [
        ("/api/v0/probes/liveness", "OK"),
        ("/api/v0/probes/readiness", "OK"),
        ("/api/v0/metadata/versions/release", "5.0.8"),
        ("/api/v0/metadata/localdc", "datacenter1"),
    ] {
        assert_eq!(get(&served, path), (200, json!(text)), "{path}");
    }
    assert_eq!(get(&served, "/api/v0/lifecycle/pid"), (200, json!(std::process::id())));
    let (_, endpoints) = get(&served, "/api/v0/metadata/endpoints");
    let endpoint = &endpoints["entity"][0];
    for (name, value) in [
        ("ENDPOINT_IP", "127.0.0.1"),
        ("IS_ALIVE", "true"),
        ("IS_LOCAL", "true"),
        ("CLUSTER_NAME", "Test Cluster"),
        ("PARTITIONER", "org.apache.cassandra.dht.Murmur3Partitioner"),
        ("DC", "datacenter1"),
        ("HOST_ID", "3cba1d95-7197-4a36-adab-d6f7139b492b"),
    ] {
        assert_eq!(endpoint[name], value, "{name}");
    }
    let tokens = endpoint["TOKENS"].as_str().expect("a text");
    assert!(tokens.split(',').all(|token| token.parse::<i64>().is_ok()), "{tokens}");
    assert_eq!(endpoints["mediaType"]["subtype"], "json");
}

#[test]
fn keyspaces_tables_and_ranges() {
    let served = Served::start();
    assert_eq!(get(&served, "/api/v0/ops/keyspace?keyspaceName=shop"), (200, json!(["shop"])));
    let replication = json!({"class": "org.apache.cassandra.locator.SimpleStrategy", "replication_factor": "1"});
    assert_eq!(get(&served, "/api/v0/ops/keyspace/replication?keyspaceName=shop"), (200, replication));
    assert_eq!(get(&served, "/api/v0/ops/keyspace/replication?keyspaceName=no").0, 404);
    assert_eq!(get(&served, "/api/v0/ops/keyspace/replication").0, 400);
    assert_eq!(get(&served, "/api/v0/ops/tables?keyspaceName=shop"), (200, json!(["items", "orders"])));
    let (_, tables) = get(&served, "/api/v1/ops/tables?keyspaceName=shop");
    let class = "org.apache.cassandra.db.compaction.LeveledCompactionStrategy";
    assert_eq!(tables, json!([{"name": "items", "compaction": {"class": class}}]));
    let (_, ranges) = get(&served, "/api/v2/tokens/rangetoendpoint?keyspaceName=shop");
    let range = &ranges["token_range_to_endpoints"][0];
    assert!(range["tokens"][0].is_i64() && range["endpoints"] == json!(["127.0.0.1"]), "{ranges}");
    assert_eq!(get(&served, "/api/v2/tokens/rangetoendpoint?keyspaceName=no"), (404, json!("keyspace not found")));
}

#[test]
fn snapshots_are_taken_listed_and_cleared() {
    let served = Served::start();
    let path = "/api/v0/ops/node/snapshots";
    let taken = |body: &str| call(&served, "POST", path, body);
    assert_eq!(taken(r#"{"snapshot_name": "medusa-one"}"#), (200, "OK".to_owned()));
    assert_eq!(taken(r#"{"snapshot_name": "two", "keyspaces": ["shop"], "table_name": "items"}"#).0, 200);
    assert_eq!(taken(r#"{"snapshot_name": "taken"}"#), (500, "Snapshot taken already exists.".to_owned()));
    for wrong in [
        r#"{"snapshot_name": "a/b"}"#,
        r#"{"keyspaces": ["shop"]}"#,
        r#"{"snapshot_name": "x", "table_name": "items"}"#,
        r#"{"snapshot_name": "x", "keyspaces": ["shop"], "keyspace_tables": ["shop.items"]}"#,
        r#"{"snapshot_name": "x", "keyspace_tables": ["items"]}"#,
        "no JSON",
    ] {
        assert_eq!(taken(wrong).0, 400, "{wrong}");
    }
    let snapshot = |name: &str, keyspace: &str| SnapshotInfo {
        name: name.to_owned(),
        keyspace: keyspace.to_owned(),
        table: "items".to_owned(),
        table_id: String::new(),
        true_size: 2048,
        size_on_disk: 4096,
        created_at: None,
    };
    served.node.node().0.lock().expect("no panic inside").snapshots =
        vec![snapshot("medusa-one", "shop"), snapshot("two", "shop"), snapshot("two", "other")];
    let (_, all) = get(&served, path);
    assert_eq!(all["entity"].as_array().map(Vec::len), Some(3));
    let (_, some) = get(&served, &format!("{path}?snapshotNames=two&snapshotNames=three&keyspaces=other"));
    assert_eq!(some["entity"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&some["entity"][0]["Snapshot name"], &some["entity"][0]["True size"]),
        (&json!("two"), &json!("2 KiB"))
    );
    assert_eq!(call(&served, "DELETE", &format!("{path}?snapshotNames=medusa-one"), "").0, 200);
    assert_eq!(call(&served, "DELETE", path, ""), (200, "OK".to_owned()));
    let cleared: Vec<_> = served.calls().into_iter().filter(|call| call.starts_with("clear ")).collect();
    assert_eq!(
        cleared,
        [r#"clear Some("medusa-one") []"#, r#"clear Some("medusa-one") []"#, r#"clear Some("two") []"#]
    );
}

/// Work on tables, at once and as jobs.
#[test]
fn jobs_end_and_are_told() {
    let served = Served::start();
    let request = r#"{"jobs": 1, "keyspace_name": "shop", "tables": ["items"]}"#;
    assert_eq!(call(&served, "POST", "/api/v0/ops/keyspace/cleanup", request), (200, "OK".to_owned()));
    let ended = |path: &str, body: &str| {
        let (status, id) = call(&served, "POST", path, body);
        assert_eq!(status, 202, "{path}: {id}");
        loop {
            let (status, job) = get(&served, &format!("/api/v0/ops/executor/job?job_id={id}"));
            assert_eq!((status, &job["id"]), (200, &json!(id)));
            if job["status"] != "WAITING" {
                return job;
            }
        }
    };
    let job = ended("/api/v1/ops/keyspace/cleanup", request);
    assert_eq!((&job["type"], &job["status"], &job["error"]), (&json!("CLEANUP"), &json!("COMPLETED"), &Value::Null));
    let split = r#"{"split_output": true, "user_defined": false, "start_token": "1", "keyspace_name": "shop"}"#;
    let job = ended("/api/v1/ops/tables/compact", split);
    assert_eq!(job["error"], "Invalid option combination: Can not use split-output here");
    assert_eq!(call(&served, "POST", "/api/v0/ops/tables/compact", split).0, 400);
    assert_eq!(get(&served, "/api/v0/ops/executor/job?job_id=job-9-9").0, 404);
    let calls = served.calls();
    assert_eq!(calls[0], calls[1], "the same work, at once and as a job");
    assert_eq!(calls[0], r#"cleanup ["shop"] ["items"] 1"#);
}

#[test]
fn repairs_are_jobs() {
    let served = Served::start();
    let request = json!({
        "keyspace": "shop", "tables": ["items"], "full_repair": true, "repair_parallelism": "dc_parallel",
        "repair_thread_count": 2, "associated_tokens": [{"start": -5, "end": 7}], "datacenters": [],
    });
    let (status, body) = call(&served, "PUT", "/api/v2/repairs", &request.to_string());
    assert_eq!((status, body.as_str()), (202, r#"{"repair_id":"repair-2"}"#));
    let asked = served.calls().join("\n");
    for part in ["DataCenterAware", "incremental: false", "job_threads: 2", "ranges: [(-5, 7)]"] {
        assert!(asked.contains(part), "{part} in {asked}");
    }
    let (_, job) = get(&served, "/api/v0/ops/executor/job?job_id=repair-2");
    assert_eq!((&job["status"], &job["type"]), (&json!("WAITING"), &json!("repair")));
    let change = &job["status_changes"][0];
    assert_eq!((&change["status"], &change["message"]), (&json!("START"), &json!("Starting repair command #1")));
    // one replica of everything
    let (status, id) = call(&served, "POST", "/api/v1/ops/node/repair", r#"{"keyspace_name": "alone"}"#);
    assert_eq!((status, id.as_str()), (202, "repair-0"));
    assert_eq!(get(&served, "/api/v0/ops/executor/job?job_id=repair-0").1["status"], "COMPLETED");
    assert_eq!(call(&served, "PUT", "/api/v2/repairs", "{}"), (400, "keyspaceName must be specified".to_owned()));
    assert_eq!(call(&served, "PUT", "/api/v2/repairs", r#"{"keyspace": "shop", "repair_thread_count": 0}"#).0, 400);
    assert_eq!(call(&served, "DELETE", "/api/v2/repairs", "").0, 202);
    assert_eq!(served.calls().last().map(String::as_str), Some("stop repairs"));
}

/// Of three nodes in two racks one is down.
#[test]
fn the_ring_is_asked_for_a_consistency() {
    let served = Served::start();
    let endpoint = |number: u16, rack: &str, is_up: bool| EndpointInfo {
        address: format!("10.0.0.{number}"),
        storage_port: 7000,
        rpc_address: format!("10.0.0.{number}"),
        native_port: 9042,
        host_id: number.to_string(),
        data_center: "datacenter1".to_owned(),
        rack: rack.to_owned(),
        is_up,
        state: EndpointState::Normal,
        load: None,
        release_version: None,
        schema_version: None,
        tokens: vec![i64::from(number) * 100],
        owns: None,
    };
    let endpoints = vec![endpoint(1, "r1", true), endpoint(2, "r1", true), endpoint(3, "r2", false)];
    served.node.node().0.lock().expect("no panic inside").ring = Some(RingInfo { endpoints, ..RingInfo::default() });
    let probe = |query: &str| get(&served, &format!("/api/v0/probes/cluster?{query}"));
    assert_eq!(probe("").0, 200, "two of three");
    assert_eq!(probe("consistency_level=ALL&rf_per_dc=3").0, 500);
    // the node of the second rack has every range, with one of the other two
    let (status, bad) = probe("consistency_level=LOCAL_QUORUM&rf_per_dc=2");
    let down = json!(["10.0.0.3:7000"]);
    assert_eq!((status, bad), (500, json!({"[300, 100]": down, "[100, 200]": down, "[200, 300]": down})));
    let (_, bad) = probe("consistency_level=ONE&rf_per_dc=1");
    assert_eq!(bad, json!({"[200, 300]": ["10.0.0.3:7000"]}));
    assert_eq!(probe("consistency_level=QUORUM&rf_per_dc=5").1["[100, 200]"], down);
    assert_eq!(probe("consistency_level=ANY").0, 400);
    assert_eq!(probe("rf_per_dc=0").0, 400);
}

/// A change needs the token, as a header or as the password of a URL.
#[test]
fn changes_need_the_token_unless_the_node_says_otherwise() {
    let served = Served::start();
    let drain = |served: &Served, headers: &[(&str, &str)]| {
        served.client.raw_call("POST", "/api/v0/ops/node/drain", "", headers).expect("an answer").0
    };
    let basic = |password: &str| {
        use base64::Engine;
        format!("Basic {}", base64::prelude::BASE64_STANDARD.encode(format!("medusa:{password}")))
    };
    assert_eq!(drain(&served, &[]), 401);
    assert_eq!(drain(&served, &[("Authorization", "Basic !")]), 401);
    assert_eq!(drain(&served, &[("Authorization", &basic("wrong"))]), 401);
    assert_eq!(served.calls(), [""; 0]);
    assert_eq!(drain(&served, &[("Authorization", &basic(&served.token.token))]), 200);
    assert_eq!(served.calls(), ["drain"]);
    let open = Served::start_open();
    assert_eq!(drain(&open, &[]), 200);
    for of_browser in ["Origin", "Sec-Fetch-Site"] {
        assert_eq!(drain(&open, &[(of_browser, "http://evil.example")]), 401, "{of_browser}");
    }
    assert_eq!(drain(&open, &[("Authorization", "Bearer wrong")]), 401);
    assert_eq!(open.client.raw_post("/api/drain", "{}", &[]).expect("an answer").0, 401, "only the management API");
}

#[test]
fn what_is_not_here_says_so() {
    let served = Served::start();
    assert_eq!(get(&served, "/api/v0/nosuch").0, 404);
    assert_eq!(get(&served, "/api/v0/ops/node/drain").0, 405);
    let (status, why) = call(&served, "POST", "/api/v0/lifecycle/start", "");
    assert_eq!((status, why.starts_with("not here: systemd")), (501, true), "{why}");
    // no endpoint falls through to another answer than its own
    for endpoint in ENDPOINTS.iter().filter(|endpoint| !endpoint.path.ends_with("drain")) {
        let status = call(&served, endpoint.method, endpoint.path, "").0;
        assert_eq!(status == 501, matches!(endpoint.action, EndpointAction::Refused(_)), "{}: {status}", endpoint.path);
        assert!(![401, 404, 405].contains(&status), "{}: {status}", endpoint.path);
    }
}

/// The table of docs/management-api.md says of each endpoint what the code says.
#[test]
fn the_document_has_the_table() {
    let document = include_str!("../../../../../docs/management-api.md");
    let mut lines = String::new();
    for endpoint in ENDPOINTS {
        let (word, why) = match endpoint.action {
            EndpointAction::Refused(why) => ("not here", why),
            _ if !endpoint.differs.is_empty() => ("differs", endpoint.differs),
            _ => ("works", ""),
        };
        lines += &format!("| `{} {}` | {word} | {why} |\n", endpoint.method, endpoint.path);
    }
    assert!(document.contains(&lines), "docs/management-api.md should have:\n{lines}");
}
