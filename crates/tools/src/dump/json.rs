//! Writes JSON text with the spacing of Jackson as sstabledump sets it up.
//!
//! Lines: nothing between tokens. Pretty: members and elements each on a line of their own, two spaces a level, but for objects or
//! arrays that are switched to compact, where a space stands instead of the line. The switch counts where a separator
//! is written, not where an object began: callers flip it in the order in which JsonTransformer does.

/// Text with a place in it.
#[derive(Debug)]
pub struct Json {
    text: String,
    pretty: bool,
    /// Objects, or arrays, go on in the same line.
    pub compact_objects: bool,
    /// The same of arrays.
    pub compact_arrays: bool,
    /// Of the open objects and arrays: how many members or elements there are.
    counts: Vec<u32>,
    /// A member's name was written; its value follows.
    after_name: bool,
}

impl Json {
    /// Empty text.
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

    /// What was written; the caller may take it out.
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

    /// What stands before a value: of a member nothing, of an element the separator, at the root a line's end or a space.
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

    /// `{`
    #[inline]
    pub fn start_object(&mut self) {
        self.before_value();
        self.text.push('{');
        self.counts.push(0);
    }

    /// `}`
    #[inline]
    pub fn end_object(&mut self) {
        self.end('}', self.compact_objects);
    }

    /// `[`
    #[inline]
    pub fn start_array(&mut self) {
        self.before_value();
        self.text.push('[');
        self.counts.push(0);
    }

    /// `]`
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

    /// The name of a member, which needs no escapes.
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

    /// A string, escaped.
    #[inline]
    pub fn string(&mut self, text: &str) {
        self.before_value();
        types::json::put_json_string(&mut self.text, text);
    }

    /// A string that needs no escapes, written by the caller.
    #[inline]
    pub fn plain_string(&mut self, put: impl FnOnce(&mut String)) {
        self.before_value();
        self.text.push('"');
        put(&mut self.text);
        self.text.push('"');
    }

    /// A value whose text is written by the caller.
    #[inline]
    pub fn value(&mut self, put: impl FnOnce(&mut String)) {
        self.before_value();
        put(&mut self.text);
    }

    /// A number.
    #[inline]
    pub fn number(&mut self, number: impl itoa::Integer) {
        self.before_value();
        self.text.push_str(itoa::Buffer::new().format(number));
    }

    /// `true` or `false`.
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
