//! HELP: the shell's commands, and where CQL is described.

use crate::session::Session;
use crate::table;

/// Topic, forms, explanation.
const TOPICS: &[(&str, &str, &str)] = &[
    (
        "CAPTURE",
        "CAPTURE '<file>' | CAPTURE OFF | CAPTURE",
        "Appends results to a file instead of showing them, until CAPTURE OFF. Errors and answers of the shell's own commands are shown all the same.",
    ),
    ("CLEAR", "CLEAR | CLS", "Clears the screen."),
    (
        "CONSISTENCY",
        "CONSISTENCY [<level>]",
        "The level of requests from now on: ANY, ONE, TWO, THREE, QUORUM, ALL, LOCAL_ONE, LOCAL_QUORUM, EACH_QUORUM; for SELECT also SERIAL and LOCAL_SERIAL.",
    ),
    (
        "COPY",
        "COPY <table> [(<column>, ...)] TO ('<file>' | STDOUT) [WITH <option> = <value> [AND ...]]\nCOPY <table> [(<column>, ...)] FROM ('<file>' | STDIN) [WITH <option> = <value> [AND ...]]",
        "Writes a table to CSV, or reads one from it; file patterns such as 'dir/*.csv' are allowed behind FROM, STDIN ends with a line `\\.`.\nBoth: DELIMITER QUOTE ESCAPE HEADER NULL DATETIMEFORMAT ENCODING DECIMALSEP THOUSANDSSEP BOOLSTYLE MAXATTEMPTS REPORTFREQUENCY RATEFILE NUMPROCESSES CONFIGFILE\nTO: PAGESIZE PAGETIMEOUT BEGINTOKEN ENDTOKEN MAXREQUESTS MAXOUTPUTSIZE FLOATPRECISION DOUBLEPRECISION\nFROM: CHUNKSIZE INGESTRATE MINBATCHSIZE MAXBATCHSIZE MAXROWS SKIPROWS SKIPCOLS MAXPARSEERRORS MAXINSERTERRORS ERRFILE PREPAREDSTATEMENTS TTL",
    ),
    (
        "DESCRIBE",
        "DESCRIBE CLUSTER | KEYSPACES | TABLES | TYPES | FUNCTIONS | AGGREGATES | [FULL] SCHEMA\nDESCRIBE [KEYSPACE | TABLE | INDEX | MATERIALIZED VIEW | TYPE | FUNCTION | AGGREGATE] <name>",
        "Lists names, or prints the statements that make an object again. \\d is short for it.",
    ),
    ("EXIT", "EXIT | QUIT | \\q", "Ends the shell, as Ctrl-D does."),
    (
        "EXPAND",
        "EXPAND [ON | OFF | AUTO] | \\x",
        "ON shows each row as lines of name and value. AUTO, where a person types, does so for rows that are wider than the terminal.",
    ),
    ("FORMAT", "FORMAT [TABLE | JSON | CSV]", "The form of rows; JSON is one object a line."),
    ("HELP", "HELP [<topic>] | ?", "This text."),
    ("HISTORY", "HISTORY [<n>]", "The last statements that were typed, 50 by default."),
    ("LOGIN", "LOGIN <user> ['<password>']", "Goes on as another user. Without a password the shell asks for it."),
    ("PAGING", "PAGING [ON | OFF | <rows>]", "Whether results come in pages, and how many rows a page has (100)."),
    (
        "SERIAL",
        "SERIAL CONSISTENCY [SERIAL | LOCAL_SERIAL]",
        "The level at which conditional statements agree from now on.",
    ),
    (
        "SHOW",
        "SHOW VERSION | SHOW HOST | SHOW SESSION <id> | SHOW REPLICAS <token> [<keyspace>]",
        "Versions, the node, a trace, or the replicas of a token.",
    ),
    ("SOURCE", "SOURCE '<file>'", "Executes the statements of a file. An error does not end the file."),
    (
        "TRACING",
        "TRACING [ON | OFF]",
        "Prints the trace of each request behind its result. EXPLAIN ANALYZE tells more of a single node's work.",
    ),
];

/// Prints a topic, or the list of topics.
pub fn show(session: &mut Session, rest: &[&str]) -> Option<()> {
    if rest.is_empty() {
        let names: Vec<String> = TOPICS.iter().map(|(name, ..)| (*name).to_owned()).collect();
        session
            .say(&format!("\nShell commands:\n===============\n{}", table::columnize(&names, session.width().min(80))));
        session.say("HELP <command> tells its forms. CQL is described on https://cassandra.apache.org/doc/5.0/cassandra/reference/cql-commands/commands-toc.html");
        return Some(());
    }
    for topic in rest {
        let wanted = match topic.to_uppercase().as_str() {
            "CLS" => "CLEAR".to_owned(),
            "QUIT" => "EXIT".to_owned(),
            "DESC" => "DESCRIBE".to_owned(),
            other => other.to_owned(),
        };
        match TOPICS.iter().find(|(name, ..)| *name == wanted) {
            Some((_, forms, text)) => session.say(&format!("\n{forms}\n\n{text}\n")),
            None => session.error(&format!("*** No help on {topic}")),
        }
    }
    Some(())
}

/// Names of the topics, which are the shell's commands.
pub fn commands() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|(name, ..)| *name)
}
