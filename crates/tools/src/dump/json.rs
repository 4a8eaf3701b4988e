//! Writes JSON text with the spacing of the library Jackson as sstabledump configures it.
//!
//! With lines, nothing stands between tokens. Pretty, each member and element stands on a line of
//! its own, indented by two spaces a level; in objects or arrays that are switched to compact a
//! space stands instead of the line break. The switch has its effect when a separator is written,
//! not when an object begins: callers flip it in the order in which JsonTransformer does.

/// JSON text that is being written, with the nesting at its end.
#[derive(Debug)]
pub struct Json {
    text: String,
    pretty: bool,
    /// Members of objects go on in the same line.
    pub compact_objects: bool,
    /// Elements of arrays go on in the same line.
    pub compact_arrays: bool,
    /// For each open object or array, the number of its members or elements so far.
    counts: Vec<u32>,
    /// Whether a member's name was written whose value follows.
    after_name: bool,
}

impl Json {
    /// An empty text.
    pub fn new(pretty: bool) -> Self {
        Self {
            text: String::with_capacity(2 * super::BUFFER),
            pretty,
            compact_objects: false,
            compact_arrays: false,
            counts: Vec::with_capacity(16),
            after_name: false,
        }
    }

    /// The text so far, which the caller may take out.
    pub fn text(&mut self) -> &mut String {
        &mut self.text
    }

    fn indent(&mut self, compact: bool) {
        if compact {
            self.text.push(' ');
            return;
        }
        self.text.push('\n');
        for _ in 0..self.counts.len() {
            self.text.push_str("  ");
        }
    }

    /// Writes what stands before a value: nothing for a member, the separator for an element, a
    /// line break or a space at the root.
    #[inline]
    fn before_value(&mut self) {
        if std::mem::take(&mut self.after_name) {
            return;
        }
        let Some(count) = self.counts.last_mut() else { return };
        *count += 1;
        if *count > 1 {
            self.text.push(',');
        }
        if self.pretty {
            self.indent(self.compact_arrays);
        }
    }

    /// Writes `{`.
    #[inline]
    pub fn start_object(&mut self) {
        self.before_value();
        self.text.push('{');
        self.counts.push(0);
    }

    /// Writes `}`.
    #[inline]
    pub fn end_object(&mut self) {
        self.end('}', self.compact_objects);
    }

    /// Writes `[`.
    #[inline]
    pub fn start_array(&mut self) {
        self.before_value();
        self.text.push('[');
        self.counts.push(0);
    }

    /// Writes `]`.
    #[inline]
    pub fn end_array(&mut self) {
        self.end(']', self.compact_arrays);
    }

    #[inline]
    fn end(&mut self, bracket: char, compact: bool) {
        let count = self.counts.pop().unwrap_or_default();
        if self.pretty {
            if count == 0 { self.text.push(' ') } else { self.indent(compact) }
        }
        self.text.push(bracket);
    }

    /// Writes the name of a member, which needs no escapes.
    #[inline]
    pub fn name(&mut self, name: &str) {
        if let Some(count) = self.counts.last_mut() {
            *count += 1;
            if *count > 1 {
                self.text.push(',');
            }
        }
        if self.pretty {
            self.indent(self.compact_objects);
        }
        self.text.push('"');
        self.text.push_str(name);
        self.text.push_str(if self.pretty { "\" : " } else { "\":" });
        self.after_name = true;
    }

    /// Writes a string, escaped.
    #[inline]
    pub fn string(&mut self, text: &str) {
        self.before_value();
        types::json::put_json_string(&mut self.text, text);
    }

    /// Writes a string that needs no escapes, whose text the caller writes.
    #[inline]
    pub fn plain_string(&mut self, put: impl FnOnce(&mut String)) {
        self.before_value();
        self.text.push('"');
        put(&mut self.text);
        self.text.push('"');
    }

    /// Writes a value whose text the caller writes.
    #[inline]
    pub fn value(&mut self, put: impl FnOnce(&mut String)) {
        self.before_value();
        put(&mut self.text);
    }

    /// Writes a number.
    #[inline]
    pub fn number(&mut self, number: impl itoa::Integer) {
        self.before_value();
        self.text.push_str(itoa::Buffer::new().format(number));
    }

    /// Writes `true` or `false`.
    pub fn boolean(&mut self, value: bool) {
        self.before_value();
        self.text.push_str(if value { "true" } else { "false" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spacing_is_that_of_jackson() {
        let write = |pretty: bool| {
            let mut json = Json::new(pretty);
            json.start_array();
            json.start_object();
            json.name("a");
            json.number(1u8);
            json.name("b");
            json.compact_arrays = true;
            json.start_array();
            json.string("x\"");
            json.boolean(true);
            json.end_array();
            json.compact_arrays = false;
            json.name("c");
            json.start_array();
            json.end_array();
            json.end_object();
            json.end_array();
            std::mem::take(json.text())
        };
        assert_eq!(write(false), r#"[{"a":1,"b":["x\"",true],"c":[]}]"#);
        assert_eq!(write(true), "[\n  {\n    \"a\" : 1,\n    \"b\" : [ \"x\\\"\", true ],\n    \"c\" : [ ]\n  }\n]");
    }
}
