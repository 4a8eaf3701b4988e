//! Answers to DESCRIBE, which the node gives as rows, in cqlsh's layout.

use stdx::CursorError;
use types::CqlType;
use types::collection::Elements;

use crate::connection::{Answer, Content, Page};
use crate::session::Session;
use crate::table::{self, Format};

/// Prints the rows of a DESCRIBE.
pub fn print(session: &mut Session, page: &Page) -> Result<(), CursorError> {
    let has = |name: &str| page.columns.iter().any(|column| column.name == name);
    if session.format == Format::Json {
        let text = table::json(page)?;
        session.result(&text);
    } else if has("create_statement") {
        for row in page.rows()? {
            session.result(&format!("\n{}\n", page.text(&row, "create_statement")));
        }
    } else if has("cluster") {
        cluster(session, page)?;
    } else {
        names(session, page)?;
    }
    Ok(())
}

/// Lists of names. cqlsh lists keyspaces by themselves, everything else by keyspace.
fn names(session: &mut Session, page: &Page) -> Result<(), CursorError> {
    let rows = page.rows()?;
    let width = if session.interactive { session.width() } else { 80 };
    let of_keyspaces = rows.iter().all(|row| page.text(row, "type") == "keyspace");
    if of_keyspaces {
        let names: Vec<String> = rows.iter().map(|row| page.text(row, "name")).collect();
        if !names.is_empty() {
            session.result(&format!("\n{}\n", table::columnize(&names, width)));
        }
        return Ok(());
    }
    for group in rows.chunk_by(|a, b| page.text(a, "keyspace_name") == page.text(b, "keyspace_name")) {
        let names: Vec<String> = group.iter().map(|row| page.text(row, "name")).collect();
        session.result("\n");
        if session.keyspace.is_none() {
            let title =
                format!("Keyspace {}", group.first().map_or(String::new(), |row| page.text(row, "keyspace_name")));
            session.result(&format!("{title}\n{}\n", "-".repeat(title.chars().count())));
        }
        session.result(&table::columnize(&names, width));
    }
    session.result("\n");
    Ok(())
}

fn cluster(session: &mut Session, page: &Page) -> Result<(), CursorError> {
    for row in page.rows()? {
        session.result(&format!(
            "\nCluster: {}\nPartitioner: {}\nSnitch: {}\n\n",
            page.text(&row, "cluster"),
            page.text(&row, "partitioner"),
            page.text(&row, "snitch")
        ));
        if let Some(bytes) = page.field(&row, "range_ownership") {
            session.result(&format!("Range ownership:\n{}\n", ownership(bytes)));
        }
    }
    Ok(())
}

/// The map of tokens to the addresses of replicas.
fn ownership(bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut parts = Elements::of_map(bytes).into_iter().flatten().map_while(Result::ok);
    while let (Some(token), Some(replicas)) = (parts.next(), parts.next()) {
        let token = token.map_or(String::new(), |bytes| String::from_utf8_lossy(bytes).into_owned());
        let hosts = Elements::new(replicas.unwrap_or_default()).into_iter().flatten().map_while(Result::ok).flatten();
        let hosts: Vec<String> = hosts.map(|bytes| types::literal::to_plain_text(&CqlType::Text, bytes)).collect();
        out.push_str(&format!(" {token:>39}  [{}]\n", hosts.join(", ")));
    }
    out
}

/// The replicas of a token, of the ranges in the answer to DESCRIBE CLUSTER; None: the answer has
/// no ranges.
pub fn replicas(answer: &Answer, token: i64) -> Result<Option<Vec<String>>, CursorError> {
    let Content::Rows(page) = &answer.content else { return Ok(None) };
    let rows = page.rows()?;
    let Some(bytes) = rows.first().and_then(|row| page.field(row, "range_ownership")) else { return Ok(None) };
    let mut ranges = Vec::new();
    let mut parts = Elements::of_map(bytes).into_iter().flatten().map_while(Result::ok);
    while let (Some(end), Some(hosts)) = (parts.next(), parts.next()) {
        let end = end.and_then(|bytes| std::str::from_utf8(bytes).ok()).and_then(|text| text.parse::<i64>().ok());
        let hosts = Elements::new(hosts.unwrap_or_default()).into_iter().flatten().map_while(Result::ok).flatten();
        let hosts: Vec<String> = hosts.map(|bytes| host(&String::from_utf8_lossy(bytes)).to_owned()).collect();
        ranges.extend(end.map(|end| (end, hosts)));
    }
    ranges.sort();
    Ok(holders(&ranges, token).cloned())
}

/// The hosts of the range that a token is in; `ranges` ascend. DESCRIBE CLUSTER names a range by
/// its last token. The first range begins behind the token of the last one and goes on over the end
/// of the ring.
fn holders(ranges: &[(i64, Vec<String>)], token: i64) -> Option<&Vec<String>> {
    let found = ranges.iter().find(|(end, _)| token <= *end).or(ranges.first());
    found.map(|(_, hosts)| hosts)
}

/// The address in `/127.0.0.1:7000` or `name/127.0.0.1:7000`, as DESCRIBE CLUSTER writes hosts.
fn host(text: &str) -> &str {
    let text = text.rsplit_once('/').map_or(text, |(_, address)| address);
    let address = text.rsplit_once(':').map_or(text, |(address, _)| address);
    address.trim_start_matches('[').trim_end_matches(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A range has its last token, and not the token in front of it.
    #[test]
    fn a_token_lies_in_the_range_that_ends_at_it_or_behind_it() {
        let ranges = [-10, 0, 10].map(|end| (end, vec![format!("10.0.0.{}", end + 20)]));
        let holder = |token| holders(&ranges, token).map(|hosts| hosts.join(" "));
        let expected = [(-11, 10), (-10, 10), (-9, 20), (0, 20), (1, 30), (10, 30), (11, 10), (i64::MAX, 10)];
        for (token, last) in expected {
            assert_eq!(holder(token), Some(format!("10.0.0.{last}")), "{token}");
        }
        assert_eq!(holders(&[], 0), None);
    }

    #[test]
    fn addresses_of_hosts() {
        let hosts = ["/127.0.0.1:7000", "localhost/127.0.0.1:7000", "/[fe80::1]:7000"];
        assert_eq!(hosts.map(host), ["127.0.0.1", "127.0.0.1", "fe80::1"]);
    }
}
