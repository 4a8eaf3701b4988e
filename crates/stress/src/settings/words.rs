//! The words of one option: taken one by one by what they begin with; what nobody took is refused, with what would have been taken.

use crate::Result;
use crate::distribution::{Distribution, parse_count};

/// Words that stand behind one option.
pub struct Words {
    group: &'static str,
    words: Vec<String>,
    /// What was asked for.
    known: Vec<&'static str>,
}

impl Words {
    /// The words of an option.
    pub fn new(group: &'static str, words: Vec<String>) -> Self {
        Self { group, words, known: Vec::new() }
    }

    /// Takes the word that begins so (in any case of letters), without its beginning.
    pub fn value(&mut self, begin: &'static str) -> Option<String> {
        self.known.push(begin);
        self.take(begin)
    }

    /// Refuses the word that begins so: `why` is the rest of the sentence.
    pub fn refuse(&mut self, begin: &'static str, why: &str) -> Result<()> {
        match self.take(begin) {
            Some(rest) => Err(format!("{} {begin}{rest}: {why}", self.group).into()),
            None => Ok(()),
        }
    }

    fn take(&mut self, begin: &str) -> Option<String> {
        let begins = |word: &String| word.get(..begin.len()).is_some_and(|head| head.eq_ignore_ascii_case(begin));
        let at = self.words.iter().position(begins)?;
        Some(self.words.remove(at)[begin.len()..].to_owned())
    }

    /// Takes a word that stands for itself.
    pub fn flag(&mut self, word: &'static str) -> bool {
        self.known.push(word);
        let at = self.words.iter().position(|given| given.eq_ignore_ascii_case(word));
        at.map(|at| self.words.remove(at)).is_some()
    }

    /// Takes `name(a=b,c)`: its parts.
    pub fn list(&mut self, begin: &'static str) -> Result<Option<Vec<(String, String)>>> {
        let Some(rest) = self.value(begin) else { return Ok(None) };
        let inside = rest.strip_suffix(')').ok_or_else(|| format!("{begin}{rest} does not end with a bracket"))?;
        let part = |part: &str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (name.trim().to_owned(), value.trim().to_owned())
        };
        Ok(Some(inside.split(',').filter(|text| !text.trim().is_empty()).map(part).collect()))
    }

    /// The number behind a word, with its k, m or b.
    pub fn number(&mut self, begin: &'static str) -> Result<Option<i64>> {
        self.value(begin).map(|text| parse_count(&text)).transpose()
    }

    /// The distribution behind a word.
    pub fn distribution(&mut self, begin: &'static str) -> Result<Option<Distribution>> {
        self.value(begin).map(|text| Distribution::parse(&text)).transpose()
    }

    /// Takes all that is left.
    pub fn rest(&mut self) -> Vec<String> {
        std::mem::take(&mut self.words)
    }

    /// None stand there.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// None may stand there: `why` is the rest of the sentence.
    pub fn none(self, why: &str) -> Result<()> {
        if self.is_empty() { Ok(()) } else { Err(format!("{} {why}", self.group).into()) }
    }

    /// Nothing may be left.
    pub fn end(self) -> Result<()> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => {
                Err(format!("{} does not know '{word}'; it knows {}", self.group, self.known.join(" ")).into())
            }
        }
    }
}
