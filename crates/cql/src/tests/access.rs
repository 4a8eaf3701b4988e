//! Statements of a user who was granted certain permissions: which are carried out, and which
//! permission the others lack.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::BatchKind;

use super::memory::{Memory, block_on};
use super::{KEYSPACE, spell};
use crate::ast::Permission::{self, Alter, Drop, Execute, Modify, Select};
use crate::auth::{AuthSettings, PermissionSet, Role, Roles};
use crate::options::{ClientState, Limits, QueryOptions};
use crate::{Coordinator, PreparedStatement, UserFunctionLimits, ddl, execute, execute_batch, prepare};

const SCHEMA: [&str; 10] = [
    "CREATE TABLE t (k int PRIMARY KEY, v int)",
    "CREATE TABLE base (k int, c int, v int, PRIMARY KEY (k, c))",
    "CREATE MATERIALIZED VIEW first AS SELECT * FROM base WHERE k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, k)",
    "CREATE MATERIALIZED VIEW second AS SELECT * FROM base WHERE k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, k)",
    "CREATE TYPE pair (x int, y int)",
    "CREATE FUNCTION f (x text, y list<int>, z tuple<int, text>) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return 1;'",
    "CREATE FUNCTION twice (x int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return x * 2;'",
    "CREATE FUNCTION plus (s int, x int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return s + x;'",
    "CREATE FUNCTION g (x text) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return 1;'",
    "CREATE AGGREGATE total (int) SFUNC plus STYPE int FINALFUNC twice INITCOND 0",
];

fn options() -> QueryOptions {
    let switches = ddl::Switches { user_functions: true, views: true, ..ddl::Switches::default() };
    QueryOptions { limits: Limits { switches, ..Limits::default() }, protocol_version: 5, ..QueryOptions::default() }
}

fn node() -> Memory {
    UserFunctionLimits { enabled: true, fail_timeout_ms: 100, warn_timeout_ms: 0 }.put_in_force();
    let node = Memory::new();
    for statement in SCHEMA {
        let prepared = prepare(statement, Some(KEYSPACE), &node.schema()).expect("valid");
        let made = block_on(execute(&prepared, &[], &options(), &ClientState::default(), &node));
        made.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    node
}

/// Names of resources, each with the permissions that the user has on it.
type Granted<'a> = &'a [(&'a str, &'a [Permission])];

/// The client of a user with these permissions.
fn client(granted: Granted<'_>) -> ClientState {
    let settings = AuthSettings { authenticates: true, authorizes: true, ..AuthSettings::default() };
    let mut on = BTreeMap::new();
    for (resource, permissions) in granted {
        on.insert((*resource).to_owned(), permissions.iter().copied().collect::<PermissionSet>());
    }
    let permissions = BTreeMap::from([("ann".to_owned(), on)]);
    let ann = Role { can_login: true, ..Role::default() };
    let roles = Roles { settings, permissions, roles: BTreeMap::from([("ann".to_owned(), ann)]), ..Roles::default() };
    ClientState { keyspace: None, access: Some(Arc::new(roles.access("ann"))) }
}

/// Carries out the statement, and as part of a BATCH message where it can be.
fn answers(node: &Memory, statement: &str, client: &ClientState) -> Vec<String> {
    let prepared = prepare(statement, Some(KEYSPACE), &node.schema()).expect("valid");
    let mut answers = vec![spell::answer(&block_on(execute(&prepared, &[], &options(), client, node)))];
    let of_batch: &[(&PreparedStatement, &[_])] = &[(&prepared, &[])];
    if prepared.modification(&[]).is_ok() {
        let answer = block_on(execute_batch(BatchKind::Logged, of_batch, &options(), client, node));
        answers.push(spell::answer(&answer));
    }
    answers
}

/// The name of a function as a resource. The arguments are marshal classes without their package.
fn function(name: &str, arguments: &[&str]) -> String {
    let classes: Vec<_> = arguments.iter().map(|class| format!("org.apache.cassandra.db.marshal.{class}")).collect();
    format!("functions/{KEYSPACE}/{name}[{}]", classes.join("^"))
}

#[test]
fn statements_take_the_permissions_that_they_take_in_cassandra() {
    let (t, base) = (("data/answers/t", &[Select, Modify][..]), ("data/answers/base", &[Select, Modify][..]));
    let only_modify = ("data/answers/base", &[Modify][..]);
    let views = [("data/answers/first", &[Modify][..]), ("data/answers/second", &[Modify][..])];
    let [twice, plus, total] =
        [("twice", &["Int32Type"][..]), ("plus", &["Int32Type", "Int32Type"][..]), ("total", &["Int32Type"][..])]
            .map(|(name, arguments)| function(name, arguments));
    let [twice, plus, total] = [&twice, &plus, &total].map(|name| (name.as_str(), &[Execute][..]));
    let may = |permission: &'static [Permission]| ("functions/answers", permission);
    let f = "<function answers.f(text, list<int>, frozen<tuple<int, text>>)>";
    let replaced = "CREATE OR REPLACE FUNCTION f (a varchar, b list<int>, c frozen<tuple<int, varchar>>) \
         CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return 2;'";
    let insert = "INSERT INTO base (k, c, v) VALUES (1, 1, 1)";
    let cases: &[(Granted<'_>, &str, &str)] = &[
        // a user-defined function is found however its types are spelled
        (&[], "DROP FUNCTION f (varchar, list<int>, tuple<int, varchar>)", &format!("DROP permission on {f}")),
        (&[], "DROP FUNCTION f (text, list<int>, frozen<tuple<int, text>>)", &format!("DROP permission on {f}")),
        (&[], "DROP FUNCTION f", &format!("DROP permission on {f}")),
        (&[], "DROP FUNCTION g (varchar)", "DROP permission on <function answers.g(text)>"),
        (&[], "DROP AGGREGATE total (int)", "DROP permission on <function answers.total(int)>"),
        (&[may(&[Drop])], "DROP FUNCTION f (varchar, list<int>, tuple<int, varchar>)", ""),
        (&[], "DROP FUNCTION g (nosuch)", "error 2200 Unknown type answers.nosuch"),
        (&[may(&[Permission::Create])], replaced, &format!("ALTER permission on {f}")),
        (&[may(&[Alter])], replaced, ""),
        // views: what they get is read from the base
        (&[only_modify, views[0], views[1]], insert, "SELECT permission on <table answers.base>"),
        (&[base], insert, "MODIFY permission on <table answers.first>"),
        (&[base, views[0]], insert, "MODIFY permission on <table answers.second>"),
        (&[base, views[0], views[1]], insert, ""),
        (&[("data/answers/t", &[Modify])], "DELETE FROM t WHERE k = 1", ""),
        // functions, and those that an aggregate is made of
        (&[t], "INSERT INTO t (k, v) VALUES (1, twice(1))", "EXECUTE permission on <function answers.twice(int)>"),
        (&[t, twice], "INSERT INTO t (k, v) VALUES (1, twice(1))", ""),
        (&[t, plus, twice], "SELECT total(v) FROM t", "EXECUTE permission on <function answers.total(int)>"),
        (&[t, total, twice], "SELECT total(v) FROM t", "EXECUTE permission on <function answers.plus(int, int)>"),
        (&[t, total, plus], "SELECT total(v) FROM t", "EXECUTE permission on <function answers.twice(int)>"),
        (&[t, total, plus, twice], "SELECT total(v) FROM t", ""),
    ];
    for (granted, statement, lacks) in cases {
        let expected = match *lacks {
            lacks if lacks.starts_with("error") => lacks.to_owned(),
            lacks => format!("error 2100 User ann has no {lacks} or any of its parents"),
        };
        for found in answers(&node(), statement, &client(granted)) {
            match lacks.is_empty() {
                true => assert!(!found.starts_with("error"), "{granted:?} {statement}: {found}"),
                false => assert_eq!(found, expected, "{granted:?} {statement}"),
            }
        }
    }
}
