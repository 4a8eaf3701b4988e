//! Shares as `FIXED(1)/5`: a distribution divided by a number
//! (org.apache.cassandra.stress.settings.OptionRatioDistribution).

use super::{Distribution, parse_count};
use crate::Result;

/// A share between 0 and 1, drawn at random.
#[derive(Clone)]
pub struct Ratio {
    of: Distribution,
    over: f64,
}

impl Ratio {
    /// Always the whole.
    pub const ALL: Self = Self { of: Distribution::fixed(1), over: 1.0 };

    /// Reads the text form.
    pub fn parse(text: &str) -> Result<Self> {
        let (of, over) = text.rsplit_once('/').ok_or_else(|| format!("'{text}' is no share such as FIXED(1)/5"))?;
        let over = parse_count(over)?;
        if over < 1 {
            return Err(format!("'{text}' divides by less than 1").into());
        }
        Ok(Self { of: Distribution::parse(of.trim())?, over: over as f64 })
    }

    /// Draws a share between 0 and 1.
    pub fn draw(&self, seed: u64) -> f64 {
        (self.of.draw_of(seed) as f64 / self.over).clamp(0.0, 1.0)
    }

    /// The smallest share that can be drawn.
    pub fn min(&self) -> f64 {
        (self.of.min() as f64 / self.over).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        assert_eq!(Ratio::parse("FIXED(1)/4").expect("a share").draw(1), 0.25);
        assert_eq!(Ratio::parse("UNIFORM(2..5)/4").expect("a share").min(), 0.5);
        assert_eq!(Ratio::ALL.draw(1), 1.0);
        assert!(Ratio::parse("FIXED(1)").is_err());
    }
}
