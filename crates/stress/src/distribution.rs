//! Distributions of whole numbers: `FIXED(1)`, `UNIFORM(1..10)`, `~EXP(1..1000)`, with the texts
//! and meanings of cassandra-stress (org.apache.cassandra.stress.settings.OptionDistribution).
//!
//! The caller supplies the randomness of a draw, so the result follows from a seed. Every draw lies
//! within the bounds.

mod ratio;

use std::fmt::Write as _;

use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution as _, Exp, Normal, Weibull};

use crate::{Error, Result};
pub use ratio::Ratio;

/// A distribution over whole numbers, bounds included.
#[derive(Clone, Debug)]
pub struct Distribution {
    shape: Shape,
    min: i64,
    max: i64,
    /// Whether the distribution is inverted (`~`): numbers that would be drawn most often are drawn
    /// least.
    inverted: bool,
}

#[derive(Clone, Debug)]
enum Shape {
    Fixed,
    Uniform,
    Exponential(Exp<f64>),
    Gaussian(Normal<f64>),
    Extreme(Weibull<f64>),
    /// Extreme, in this many parts of the range; within a part all numbers have the same chance.
    QuantizedExtreme(Weibull<f64>, i64),
    /// The numbers in order, by the number of the draw.
    Sequence,
}

impl Distribution {
    /// Gives the same number always.
    pub const fn fixed(value: i64) -> Self {
        Self { shape: Shape::Fixed, min: value, max: value, inverted: false }
    }

    /// Gives every number from `min` to `max` with the same chance.
    pub const fn uniform(min: i64, max: i64) -> Self {
        Self { shape: Shape::Uniform, min, max, inverted: false }
    }

    /// A normal distribution whose mean is the middle of the range and whose edges are three
    /// standard deviations away.
    pub fn gaussian(min: i64, max: i64) -> Result<Self> {
        Self::of("gaussian", &[&format!("{min}..{max}")])
    }

    /// Reads `NAME(PARAMETERS)`; `~` before it inverts the distribution.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || -> Error {
            format!("'{text}' is no distribution; one looks like FIXED(1), UNIFORM(1..10), GAUSSIAN(1..10), EXP(1..10), EXTREME(1..10,2), ~EXP(1..10)").into()
        };
        let (inverted, rest) = text.strip_prefix('~').map_or((false, text), |rest| (true, rest));
        let (name, rest) = rest.split_once('(').ok_or_else(wrong)?;
        let parameters: Vec<&str> = rest.strip_suffix(')').ok_or_else(wrong)?.split(',').map(str::trim).collect();
        let mut read = Self::of(&name.to_ascii_lowercase(), &parameters).map_err(|error| format!("{text}: {error}"))?;
        read.inverted = inverted;
        Ok(read)
    }

    fn of(name: &str, parameters: &[&str]) -> Result<Self> {
        if name == "fixed" {
            let [value] = parameters else { return Err("FIXED takes one number".into()) };
            return Ok(Self::fixed(parse_count(value)?));
        }
        let [range, rest @ ..] = parameters else { return Err("a range such as 1..10 is missing".into()) };
        let (min, max) = parse_range(range)?;
        let width = (max - min) as f64;
        let number = |text: &&str| text.parse::<f64>().map_err(|_| format!("'{text}' is no number"));
        // a chance of about one in the range for its far end; the square root makes it less skewed
        let far = 1.0 / width.max(1.0).sqrt();
        let weibull = |shape: f64| Weibull::new(width.max(1.0) / (-far.ln()).powf(1.0 / shape), shape);
        let shape = match (name, rest) {
            ("uniform", []) => Shape::Uniform,
            ("seq", []) => Shape::Sequence,
            ("exp", []) => Shape::Exponential(Exp::new(-far.ln() / width.max(1.0))?),
            ("gaussian" | "gauss" | "normal" | "norm", [mean, deviation]) => {
                Shape::Gaussian(Normal::new(number(mean)?, number(deviation)?)?)
            }
            ("gaussian" | "gauss" | "normal" | "norm", [] | [_]) => {
                let edge = rest.first().map(number).transpose()?.unwrap_or(3.0);
                Shape::Gaussian(Normal::new((min + max) as f64 / 2.0, width / 2.0 / edge)?)
            }
            ("extreme" | "extr" | "weibull", [shape]) => Shape::Extreme(weibull(number(shape)?)?),
            ("qextreme" | "qextr" | "qweibull", [shape, parts]) => {
                Shape::QuantizedExtreme(weibull(number(shape)?)?, parse_count(parts)?.max(1))
            }
            _ => {
                return Err("known are FIXED(n), UNIFORM(a..b), SEQ(a..b), EXP(a..b), GAUSSIAN(a..b[,deviations to the edge | ,mean,deviation]), EXTREME(a..b,shape) and QEXTREME(a..b,shape,parts)".into());
            }
        };
        Ok(Self { shape, min, max, inverted: false })
    }

    /// Smallest number that can be drawn.
    pub fn min(&self) -> i64 {
        self.min
    }

    /// Greatest number that can be drawn.
    pub fn max(&self) -> i64 {
        self.max
    }

    /// Draws a number. Only a sequence uses the `number` of the draw, the others use `random`.
    pub fn draw(&self, number: u64, random: &mut impl Rng) -> i64 {
        let drawn = match &self.shape {
            Shape::Fixed => self.min,
            Shape::Uniform => random.random_range(self.min..=self.max),
            Shape::Sequence => self.min + (number % (self.max - self.min + 1) as u64) as i64,
            Shape::Exponential(exponential) => self.offset(exponential.sample(random)),
            Shape::Gaussian(normal) => (normal.sample(random).round() as i64).clamp(self.min, self.max),
            Shape::Extreme(weibull) => self.offset(weibull.sample(random)),
            Shape::QuantizedExtreme(weibull, parts) => {
                self.quantized(self.offset(weibull.sample(random)), *parts, random)
            }
        };
        if self.inverted { self.max - (drawn - self.min) } else { drawn }
    }

    /// Draws the number that belongs to `seed`, the same one each time.
    pub fn draw_of(&self, seed: u64) -> i64 {
        match self.shape {
            Shape::Fixed => self.min,
            _ => self.draw(seed, &mut rand::rngs::SmallRng::seed_from_u64(seed)),
        }
    }

    fn offset(&self, distance: f64) -> i64 {
        self.min.saturating_add(distance as i64).clamp(self.min, self.max)
    }

    fn quantized(&self, drawn: i64, parts: i64, random: &mut impl Rng) -> i64 {
        let size = ((self.max - self.min) / parts).max(1);
        let begin = self.min + (drawn - self.min) / size * size;
        random.random_range(begin..=(begin + size - 1).min(self.max))
    }

    /// The text of `print`: how often each of ten parts of the range was drawn.
    pub fn histogram(&self, draws: u64) -> String {
        const PARTS: usize = 10;
        let mut random = rand::rngs::SmallRng::seed_from_u64(0);
        let mut counts = [0u64; PARTS];
        let width = (self.max - self.min + 1) as f64;
        for number in 0..draws {
            let place = (self.draw(number, &mut random) - self.min) as f64 / width;
            counts[((place * PARTS as f64) as usize).min(PARTS - 1)] += 1;
        }
        let mut text = String::new();
        for (part, count) in counts.iter().enumerate() {
            let from = self.min + (width * part as f64 / PARTS as f64) as i64;
            let _ = writeln!(text, "from {from:>12}: {:>6.2} %", *count as f64 * 100.0 / draws.max(1) as f64);
        }
        text
    }
}

/// Reads a count with k, m or b (thousand, million, milliard) behind it.
pub fn parse_count(text: &str) -> Result<i64> {
    let lower = text.trim().to_ascii_lowercase();
    let (digits, factor) = match lower.as_bytes().last() {
        Some(b'k') => (&lower[..lower.len() - 1], 1_000),
        Some(b'm') => (&lower[..lower.len() - 1], 1_000_000),
        Some(b'b') => (&lower[..lower.len() - 1], 1_000_000_000),
        _ => (lower.as_str(), 1),
    };
    let number: i64 = digits.parse().map_err(|_| format!("'{text}' is no whole number"))?;
    number.checked_mul(factor).ok_or_else(|| format!("'{text}' is too large").into())
}

/// Reads `a..b`, the smaller number first.
pub fn parse_range(text: &str) -> Result<(i64, i64)> {
    let (from, to) = text.split_once("..").ok_or_else(|| format!("'{text}' is no range such as 1..10"))?;
    let (from, to) = (parse_count(from)?, parse_count(to)?);
    if from > to {
        return Err(format!("the range {text} ends before it begins").into());
    }
    Ok((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_distribution_stays_in_its_bounds_and_reaches_both_halves() {
        for text in [
            "UNIFORM(1..100)",
            "exp(1..100)",
            "GAUSSIAN(1..100)",
            "norm(1..100,50,20)",
            "EXTREME(1..100,1.5)",
            "qextr(1..100,2,10)",
            "SEQ(1..100)",
            "~EXP(1..100)",
        ] {
            let distribution = Distribution::parse(text).expect(text);
            let mut random = rand::rngs::SmallRng::seed_from_u64(7);
            let drawn: Vec<i64> = (0..10_000).map(|number| distribution.draw(number, &mut random)).collect();
            assert!(drawn.iter().all(|value| (1..=100).contains(value)), "{text}");
            assert!(drawn.iter().any(|value| *value <= 50) && drawn.iter().any(|value| *value > 50), "{text}");
        }
    }

    #[test]
    fn the_inverted_one_turns_the_weight_round() {
        let mean = |text: &str| {
            let distribution = Distribution::parse(text).expect(text);
            let mut random = rand::rngs::SmallRng::seed_from_u64(7);
            (0..10_000).map(|number| distribution.draw(number, &mut random)).sum::<i64>() / 10_000
        };
        assert!(mean("EXP(1..1000)") < 500, "most are small");
        assert!(mean("~EXP(1..1000)") > 500, "most are large");
    }

    #[test]
    fn a_draw_of_a_seed_is_the_same_each_time() {
        let distribution = Distribution::parse("GAUSSIAN(1..1m)").expect("a distribution");
        assert_eq!(distribution.draw_of(42), distribution.draw_of(42));
        assert_ne!(distribution.draw_of(42), distribution.draw_of(43));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, word) in [
            ("UNIFORM(9..1)", "before it begins"),
            ("FIXED(x)", "whole number"),
            ("HUMP(1..2)", "known are"),
            ("FIXED", "no distribution"),
        ] {
            let error = Distribution::parse(text).expect_err(text).to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
