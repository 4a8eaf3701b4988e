//! How long a statement of Paxos v2 that was overtaken waits before it tries again:
//! `paxos_contention_min_wait`, `_max_wait`, `_min_delta` and `_wait_randomizer`.
//!
//! ```text
//! bound      = time | [time "<="] base ["*" [number] [("*" | "^") "attempts"]] ["<=" time]
//! base       = "p" digits "(" ("r" | "w" | "rw" | "wr") ")" | time
//! time       = "0" | number "ms" | number "us"
//! randomizer = "uniform" | "exp(" number ")" | "qexp(" number ")"
//! ```
//!
//! `p95(rw)` is the 95th percentile of the latencies of conditional statements, the larger of reads
//! and writes. A random time is drawn between the two waits, which are at least the delta apart.
//! Pure: latencies and random numbers are given. Agrees with
//! `org.apache.cassandra.service.paxos.ContentionStrategy`.

/// Latencies of statements, and random numbers.
pub trait ContentionInputs {
    /// A percentile (0 to 1) of the latencies of reads at SERIAL, microseconds.
    fn reads(&self, percentile: f64) -> u64;
    /// A percentile of the latencies of conditional writes, microseconds.
    fn writes(&self, percentile: f64) -> u64;
    /// A random number below a bound; 0 if the bound is 0.
    fn below(&self, bound: u64) -> u64;
}

/// How long statements that were overtaken wait.
#[derive(Clone, PartialEq, Debug)]
pub struct ContentionStrategy {
    randomizer: Randomizer,
    min: Bound,
    max: Bound,
    min_delta: Bound,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Randomizer {
    Uniform,
    /// Later times are likelier.
    Exponential(f64),
    /// The time is parted into as many pieces as there were attempts; later pieces are likelier.
    Quantized(f64),
}

/// A time that may depend on latencies and attempts, microseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Bound {
    least: u64,
    most: u64,
    base: Base,
    modifier: Modifier,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Base {
    Constant(u64),
    Latency { percentile: f64, reads: bool, writes: bool },
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Modifier {
    Identity,
    Times(f64),
    TimesAttempts(f64),
    ToTheAttempts(f64),
}

/// The settings of a stock configuration: randomizer, least wait, longest wait, least delta.
const DEFAULTS: [&str; 4] =
    ["qexp(1.5)", "0 <= p50(rw)*0.66", "10ms <= p95(rw)*1.8^attempts <= 100ms", "5ms <= p50(rw)*0.5"];

/// Largest value of a bound without an upper end, microseconds: half of the longest of the
/// timeouts of stock configurations.
const MOST: u64 = 2_500_000;

impl Default for ContentionStrategy {
    fn default() -> Self {
        Self::parse(None, None, None, None).expect("the stock settings are well formed")
    }
}

impl ContentionStrategy {
    /// The strategy of four settings; None: the stock one. The error is that of the first setting
    /// that is malformed, with its key.
    pub fn parse(
        randomizer: Option<&str>,
        min: Option<&str>,
        max: Option<&str>,
        min_delta: Option<&str>,
    ) -> Result<Self, (&'static str, String)> {
        let [of_randomizer, of_min, of_max, of_delta] = DEFAULTS;
        let bound = |key: &'static str, text: &str| {
            bound(text).ok_or_else(|| (key, format!("'{text}' is not a time such as '10ms <= p95(rw)*1.8^attempts'")))
        };
        let text = randomizer.unwrap_or(of_randomizer);
        let drawn = self::randomizer(text).ok_or_else(|| {
            ("paxos_contention_wait_randomizer", format!("'{text}' is not 'uniform', 'exp(number)' or 'qexp(number)'"))
        })?;
        Ok(Self {
            randomizer: drawn,
            min: bound("paxos_contention_min_wait", min.unwrap_or(of_min))?,
            max: bound("paxos_contention_max_wait", max.unwrap_or(of_max))?,
            min_delta: bound("paxos_contention_min_delta", min_delta.unwrap_or(of_delta))?,
        })
    }

    /// The time that a statement waits after so many attempts, microseconds.
    pub fn wait(&self, attempts: u32, inputs: &dyn ContentionInputs) -> u64 {
        let attempts = attempts.max(1);
        let of = |bound: &Bound| bound.of(attempts, inputs);
        let (mut min, mut max, delta) = (of(&self.min), of(&self.max), of(&self.min_delta));
        if min.saturating_add(delta) > max {
            max = min.saturating_add(delta);
            if max > self.max.most {
                max = self.max.most;
                min = self.min.within(max.saturating_sub(delta));
            }
        }
        self.randomizer.draw(min.min(max), max, attempts, inputs)
    }
}

impl Bound {
    fn within(&self, micros: u64) -> u64 {
        micros.min(self.most).max(self.least)
    }

    fn of(&self, attempts: u32, inputs: &dyn ContentionInputs) -> u64 {
        let base = match self.base {
            Base::Constant(micros) => micros,
            Base::Latency { percentile, reads, writes } => {
                let of_reads = if reads { inputs.reads(percentile) } else { 0 };
                let of_writes = if writes { inputs.writes(percentile) } else { 0 };
                of_reads.max(of_writes)
            }
        };
        let (known, tries) = (base as f64, f64::from(attempts));
        let modified = match self.modifier {
            Modifier::Identity => known,
            Modifier::Times(factor) => known * factor,
            Modifier::TimesAttempts(factor) => known * factor * tries,
            Modifier::ToTheAttempts(factor) => known * factor.powf(tries),
        };
        // a conversion saturates, and makes 0 of what is no number
        self.within(modified as u64)
    }
}

impl Randomizer {
    /// A time from `min` on and before `max`, unless they are the same.
    fn draw(self, min: u64, max: u64, attempts: u32, inputs: &dyn ContentionInputs) -> u64 {
        const STEPS: u64 = 1 << 32;
        let uniform = || min + inputs.below(max - min);
        let fraction = |power: f64| (inputs.below(STEPS) as f64 / STEPS as f64).powf(power);
        match self {
            Self::Uniform => uniform(),
            _ if attempts == 1 => uniform(),
            Self::Exponential(power) => max - ((max - min) as f64 * fraction(power)) as u64,
            Self::Quantized(power) => {
                let piece = (max - min) / u64::from(attempts);
                if piece == 0 {
                    return uniform();
                }
                let number = (f64::from(attempts) * fraction(power)) as u64;
                max - (piece * number + inputs.below(piece))
            }
        }
    }
}

/// A text of which the front is taken step by step.
struct SettingParser<'a>(&'a str);

impl<'a> SettingParser<'a> {
    fn takes(&mut self, token: &str) -> bool {
        let rest = self.0.strip_prefix(token);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn spaces(&mut self) {
        self.0 = self.0.trim_start();
    }

    fn run(&mut self, is_of: impl Fn(char) -> bool) -> &'a str {
        let end = self.0.find(|c: char| !is_of(c)).unwrap_or(self.0.len());
        let (run, rest) = self.0.split_at(end);
        self.0 = rest;
        run
    }

    /// A time in microseconds.
    fn time(&mut self) -> Option<u64> {
        let digits = self.run(|c| c.is_ascii_digit());
        let number: u64 = digits.parse().ok()?;
        if self.takes("ms") {
            return number.checked_mul(1000);
        }
        (self.takes("us") || digits == "0").then_some(number)
    }

    fn number(&mut self) -> Option<f64> {
        self.run(|c| c.is_ascii_digit() || c == '.').parse().ok()
    }

    /// A relation `<=` with the spaces around it.
    fn at_most(&mut self) -> bool {
        let before = self.0;
        self.spaces();
        if self.takes("<=") {
            self.spaces();
            return true;
        }
        self.0 = before;
        false
    }

    fn base(&mut self) -> Option<Base> {
        if !self.takes("p") {
            return self.time().map(Base::Constant);
        }
        let percentile: f64 = format!("0.{}", self.run(|c| c.is_ascii_digit())).parse().ok()?;
        let (reads, writes) = match () {
            () if self.takes("(rw)") || self.takes("(wr)") => (true, true),
            () if self.takes("(r)") => (true, false),
            () if self.takes("(w)") => (false, true),
            () => return None,
        };
        Some(Base::Latency { percentile, reads, writes })
    }

    fn modifier(&mut self) -> Option<Modifier> {
        self.spaces();
        if !self.takes("*") {
            return Some(Modifier::Identity);
        }
        self.spaces();
        let factor = if self.0.starts_with(|c: char| c.is_ascii_digit()) { self.number()? } else { 1.0 };
        let before = self.0;
        self.spaces();
        let kind = if self.takes("*") {
            '*'
        } else if self.takes("^") {
            '^'
        } else {
            ' '
        };
        self.spaces();
        match (kind, kind != ' ' && self.takes("attempts")) {
            ('*', true) => Some(Modifier::TimesAttempts(factor)),
            ('^', true) => Some(Modifier::ToTheAttempts(factor)),
            (' ', _) => {
                self.0 = before;
                Some(Modifier::Times(factor))
            }
            _ => None,
        }
    }
}

fn bound(text: &str) -> Option<Bound> {
    let mut rest = SettingParser(text.trim());
    let first = rest.base()?;
    if let (Base::Constant(time), true) = (first, rest.0.is_empty()) {
        return Some(Bound { least: time, most: time, base: first, modifier: Modifier::Identity });
    }
    let (least, base) = match first {
        Base::Constant(least) if rest.at_most() => (least, rest.base()?),
        base => (0, base),
    };
    let modifier = rest.modifier()?;
    let most = if rest.at_most() { rest.time()? } else { MOST };
    (rest.0.trim().is_empty() && least <= most).then_some(Bound { least, most, base, modifier })
}

fn randomizer(text: &str) -> Option<Randomizer> {
    if text == "uniform" {
        return Some(Randomizer::Uniform);
    }
    let (name, power) = text.strip_suffix(')')?.split_once('(')?;
    let power = SettingParser(power).number().filter(|_| power.chars().all(|c| c.is_ascii_digit() || c == '.'))?;
    match name {
        "exp" | "exponential" => Some(Randomizer::Exponential(power)),
        "qexp" | "qexponential" | "quantizedexp" | "quantizedexponential" => Some(Randomizer::Quantized(power)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Latencies of 20 ms (reads) and 40 ms (writes), a tenth of that per tenth of the percentile.
    /// The random number is a share of its bound.
    struct Fixed(f64);

    impl ContentionInputs for Fixed {
        fn reads(&self, percentile: f64) -> u64 {
            (20_000.0 * percentile).round() as u64
        }

        fn writes(&self, percentile: f64) -> u64 {
            (40_000.0 * percentile).round() as u64
        }

        fn below(&self, bound: u64) -> u64 {
            (bound as f64 * self.0) as u64
        }
    }

    #[test]
    fn bounds() {
        let of = |text: &str, attempts| bound(text).map(|bound| bound.of(attempts, &Fixed(0.5)));
        for (text, wanted) in [
            ("0", Some([0, 0])),
            ("7ms", Some([7_000, 7_000])),
            ("7us", Some([7, 7])),
            ("p50(r)", Some([10_000, 10_000])),
            ("p50(w)", Some([20_000, 20_000])),
            ("p50(rw)", Some([20_000, 20_000])),
            ("0 <= p50(rw)*0.66", Some([13_200, 13_200])),
            ("p50(r) * 2 * attempts", Some([20_000, 60_000])),
            ("1ms*2^attempts", Some([2_000, 8_000])),
            ("10ms <= p95(rw)*1.8^attempts <= 100ms", Some([68_400, 100_000])),
            ("30ms <= p50(r)", Some([30_000, 30_000])),
            ("7", None),
            ("7s", None),
            ("p50", None),
            ("p50(x)", None),
            ("20ms <= p50(r) <= 10ms", None),
            ("p50(r)*2*tries", None),
            ("p50(r) 3", None),
        ] {
            let found = of(text, 1).zip(of(text, 3)).map(|(one, three)| [one, three]);
            assert_eq!(found, wanted, "{text}");
        }
    }

    #[test]
    fn waits_are_drawn_between_the_bounds() {
        let wait = |randomizer, min, max, delta, attempts, share| {
            let strategy = ContentionStrategy::parse(Some(randomizer), Some(min), Some(max), Some(delta));
            strategy.expect("well formed").wait(attempts, &Fixed(share))
        };
        assert_eq!(wait("uniform", "10ms", "20ms", "0", 1, 0.25), 12_500);
        assert_eq!(wait("exp(2)", "10ms", "20ms", "0", 1, 0.5), 15_000, "the first time is uniform");
        assert_eq!(wait("exp(2)", "10ms", "20ms", "0", 2, 0.5), 17_500);
        assert_eq!(wait("qexp(1)", "10ms", "20ms", "0", 4, 0.5), 13_750, "the third of four pieces");
        assert_eq!(wait("uniform", "10ms", "20ms", "30ms", 1, 0.5), 15_000, "both bounds are fixed");
        assert_eq!(
            wait("uniform", "10ms", "20ms <= p50(r) <= 60ms", "30ms", 1, 0.5),
            25_000,
            "the later one gives way"
        );
        for attempts in 1..20 {
            let waited = ContentionStrategy::default().wait(attempts, &Fixed(0.9));
            assert!(waited <= 100_000, "{attempts}: {waited}");
        }
    }

    #[test]
    fn the_setting_that_is_malformed_is_named() {
        let key = |result: Result<ContentionStrategy, (&'static str, String)>| result.expect_err("malformed").0;
        assert_eq!(key(ContentionStrategy::parse(Some("often"), None, None, None)), "paxos_contention_wait_randomizer");
        assert_eq!(key(ContentionStrategy::parse(None, Some("x"), None, None)), "paxos_contention_min_wait");
        assert_eq!(key(ContentionStrategy::parse(None, None, Some("x"), None)), "paxos_contention_max_wait");
        assert_eq!(key(ContentionStrategy::parse(None, None, None, Some("x"))), "paxos_contention_min_delta");
        assert!(ContentionStrategy::parse(Some("exp(1.5)"), Some("1ms"), Some("2ms"), Some("0")).is_ok());
    }
}
