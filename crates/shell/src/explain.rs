//! The answer to EXPLAIN, drawn as a tree.
//!
//! The node answers with lines of `step`, `object`, `figure`, `value` and `detail`
//! (docs/explain.md). Steps of the statement stand at the trunk. A source (memtable, SSTable,
//! replica, row cache, filter) hangs on the partition or range before it, and the figures of one
//! object stand in one line. Nothing is left out.

use stdx::CursorError;

use crate::connection::Page;
use crate::session::Session;
use crate::value::{BLUE, CYAN, DIM, YELLOW};

const COLUMNS: [&str; 5] = ["step", "object", "figure", "value", "detail"];
/// Steps that hang on the partition or range before them.
const SOURCES: [&str; 4] = ["memtable", "flushing", "sstable", "row cache"];

/// Whether these are the columns of an explanation.
pub fn is_explanation(page: &Page) -> bool {
    page.columns.iter().map(|column| column.name.as_str()).eq(COLUMNS)
}

/// A figure of an object.
#[derive(Debug, PartialEq, Eq)]
struct Figure {
    name: String,
    value: Option<i64>,
    detail: String,
}

/// An object of a step with its figures.
#[derive(Debug)]
struct Node {
    step: String,
    object: String,
    figures: Vec<Figure>,
    children: Vec<Node>,
}

/// Prints the tree.
pub fn print(session: &mut Session, page: &Page) -> Result<(), CursorError> {
    let text = draw(&nodes(page)?, &|text, color| session.paint(text, color));
    session.result(&format!("\n{text}"));
    Ok(())
}

fn nodes(page: &Page) -> Result<Vec<Node>, CursorError> {
    let mut roots: Vec<Node> = Vec::new();
    for row in page.rows()? {
        let text =
            |at: usize| row.get(at).copied().flatten().map_or("".into(), String::from_utf8_lossy).trim().to_owned();
        let value = row.get(3).copied().flatten().and_then(|bytes| bytes.try_into().ok()).map(i64::from_be_bytes);
        let (step, object) = (text(0), text(1));
        let figure = Figure { name: text(2), value, detail: text(4) };
        let is_source = SOURCES.contains(&step.as_str());
        let parent =
            roots.last_mut().filter(|root| is_source && matches!(root.step.as_str(), "partition" | "range" | "index"));
        let siblings = match parent {
            Some(parent) => &mut parent.children,
            None => &mut roots,
        };
        match siblings.last_mut().filter(|last| last.step == step && last.object == object) {
            Some(last) => last.figures.push(figure),
            None => siblings.push(Node { step, object, figures: vec![figure], children: Vec::new() }),
        }
    }
    Ok(roots)
}

type Paint<'p> = &'p dyn Fn(&str, &str) -> String;

fn draw(roots: &[Node], paint: Paint<'_>) -> String {
    let mut out = String::new();
    for (at, root) in roots.iter().enumerate() {
        draw_node(&mut out, root, "", at + 1 == roots.len(), paint);
    }
    out
}

fn draw_node(out: &mut String, node: &Node, indent: &str, is_last: bool, paint: Paint<'_>) {
    let branch = if is_last { "└─ " } else { "├─ " };
    let below = format!("{indent}{}", if is_last { "   " } else { "│  " });
    let object = if node.object.is_empty() { String::new() } else { format!(" {}", node.object) };
    let color = if node.step == "hint" { YELLOW } else { CYAN };
    out.push_str(&format!("{indent}{branch}{}{object}\n", paint(&node.step, color)));
    let trunk = if node.children.is_empty() { "   " } else { "│  " };
    let width = node.figures.iter().map(|figure| figure.name.chars().count()).max().unwrap_or(0);
    let digits =
        node.figures.iter().filter_map(|figure| figure.value).map(|value| grouped(value).len()).max().unwrap_or(0);
    for figure in &node.figures {
        let value = figure.value.map_or(String::new(), grouped);
        let padding = " ".repeat(width - figure.name.chars().count());
        let line = format!("{}{padding} {}", figure.name, paint(&format!("{value:>digits$}"), BLUE));
        let detail = if figure.detail.is_empty() { String::new() } else { format!("  {}", paint(&figure.detail, DIM)) };
        out.push_str(format!("{below}{trunk}{line}{detail}").trim_end());
        out.push('\n');
    }
    for (at, child) in node.children.iter().enumerate() {
        draw_node(out, child, &below, at + 1 == node.children.len(), paint);
    }
}

/// A number with commas between groups of three digits.
fn grouped(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if value < 0 { format!("-{out}") } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(step: &str, object: &str, figures: &[(&str, i64, &str)], children: Vec<Node>) -> Node {
        let figure = |(name, value, detail): &(&str, i64, &str)| Figure {
            name: (*name).into(),
            value: Some(*value),
            detail: (*detail).into(),
        };
        Node { step: step.into(), object: object.into(), figures: figures.iter().map(figure).collect(), children }
    }

    #[test]
    fn sources_hang_on_their_partition() {
        let source = node("sstable", "da-1-bti", &[("read", 1, ""), ("bytes", 87105, "of Data.db")], Vec::new());
        let roots = [
            node("access", "music.plays", &[("slice", 1, "from the start")], Vec::new()),
            node("partition", "'ada'", &[("shard", 5, "of 8")], vec![source]),
        ];
        let expected = "\
├─ access music.plays
│     slice 1  from the start
└─ partition 'ada'
   │  shard 5  of 8
   └─ sstable da-1-bti
         read       1
         bytes 87,105  of Data.db
";
        assert_eq!(draw(&roots, &|text, _| text.to_owned()), expected);
    }
}
