//! The words of one option. Readers take them one by one by their beginnings; a word that nobody
//! took is refused, with a list of the words that are known.

use crate::Result;
use crate::distribution::{Distribution, parse_count};

/// The words behind one option.
pub struct Words {
    group: &'static str,
    words: Vec<String>,
    /// The beginnings that readers have asked for.
    known: Vec<&'static str>,
}

impl Words {
    /// The words of an option.
    pub fn new(group: &'static str, words: Vec<String>) -> Self {
        Self { group, words, known: Vec::new() }
    }

    /// Takes the word with this beginning (in any case) and returns the rest of it.
    pub fn value(&mut self, begin: &'static str) -> Option<String> {
        self.known.push(begin);
        self.take(begin)
    }

    /// Refuses the word with this beginning; `why` is the rest of the sentence.
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

    /// Takes a word without a value; returns whether it was there.
    pub fn flag(&mut self, word: &'static str) -> bool {
        self.known.push(word);
        let at = self.words.iter().position(|given| given.eq_ignore_ascii_case(word));
        at.map(|at| self.words.remove(at)).is_some()
    }

    /// Takes `name(a=b,c)` and returns its parts.
    pub fn list(&mut self, begin: &'static str) -> Result<Option<Vec<(String, String)>>> {
        let Some(rest) = self.value(begin) else { return Ok(None) };
        let inside = rest.strip_suffix(')').ok_or_else(|| format!("{begin}{rest} does not end with a bracket"))?;
        let part = |part: &str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (name.trim().to_owned(), value.trim().to_owned())
        };
        Ok(Some(inside.split(',').filter(|text| !text.trim().is_empty()).map(part).collect()))
    }

    /// Takes a number, which may end with k, m or b.
    pub fn number(&mut self, begin: &'static str) -> Result<Option<i64>> {
        self.value(begin).map(|text| parse_count(&text)).transpose()
    }

    /// Takes a distribution.
    pub fn distribution(&mut self, begin: &'static str) -> Result<Option<Distribution>> {
        self.value(begin).map(|text| Distribution::parse(&text)).transpose()
    }

    /// Takes all remaining words.
    pub fn rest(&mut self) -> Vec<String> {
        std::mem::take(&mut self.words)
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Refuses any words; `why` is the rest of the sentence.
    pub fn none(self, why: &str) -> Result<()> {
        if self.is_empty() { Ok(()) } else { Err(format!("{} {why}", self.group).into()) }
    }

    /// Refuses remaining words.
    pub fn end(self) -> Result<()> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => {
                Err(format!("{} does not know '{word}'; it knows {}", self.group, self.known.join(" ")).into())
            }
        }
    }
}
