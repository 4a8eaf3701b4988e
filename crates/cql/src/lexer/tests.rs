//! Each line of `testdata/lexer.txt` is a text, ` => `, and its tokens.

use super::{Kind, Lexer};

fn tokens(text: &str) -> String {
    let mut lexer = Lexer::new(text);
    let mut out = Vec::new();
    loop {
        match lexer.next_token() {
            Ok(token) if token.kind == Kind::End => return out.join(" "),
            Ok(token) => {
                let kind = match token.kind {
                    Kind::Keyword(keyword) => format!("K_{}", keyword.text()),
                    kind => format!("{kind:?}"),
                };
                out.push(format!("{kind}({})", lexer.text(token)));
            }
            Err(error) => {
                out.push(format!("error at {}: {}", error.pos.0, error.what));
                return out.join(" ");
            }
        }
    }
}

#[test]
fn tokens_of_texts() {
    for line in include_str!("../../testdata/lexer.txt").lines().filter(|line| !line.starts_with('#')) {
        let (text, expected) = line.split_once(" => ").expect("a line has an arrow");
        assert_eq!(tokens(&text.replace("\\n", "\n")), expected, "{text}");
    }
}
