//! Sums and averages of values that arrive one by one. Agrees with Cassandra's `AggregateFcts`:
//! integers wrap around in sums but not in averages, floating-point numbers are compensated
//! (Kahan), the average of decimals is updated with each value.

use num_bigint::BigInt;
use num_traits::Zero;

use super::convert::{Number, integer};
use crate::decimal::{Decimal, Rounding, low_bits};
use crate::{CqlType, TypeError};

/// A sum or an average in progress.
#[derive(Clone, Debug)]
pub struct Total {
    ty: CqlType,
    average: bool,
    count: i64,
    value: Value,
}

#[derive(Clone, Debug)]
enum Value {
    Long(i128),
    Varint(BigInt),
    /// The sum, or the average so far.
    Decimal(Decimal),
    Floating(Compensated),
}

/// A sum of doubles, with a second double for what rounding took from it.
#[derive(Clone, Debug, Default)]
struct Compensated {
    sum: f64,
    compensation: f64,
    /// The sum without compensation. It is the result if the compensated sum is not a number, which
    /// happens with infinite values of one sign.
    simple: f64,
    /// The exact sum, for averages; set once the sum is beyond all doubles, None before.
    big: Option<Decimal>,
}

impl Total {
    /// An empty sum of values of a numeric type. None: the type is not numeric.
    pub fn sum(ty: &CqlType) -> Option<Self> {
        Self::new(ty, false)
    }

    /// An empty average of values of a numeric type. None: the type is not numeric.
    pub fn average(ty: &CqlType) -> Option<Self> {
        Self::new(ty, true)
    }

    fn new(ty: &CqlType, average: bool) -> Option<Self> {
        let value = match ty {
            CqlType::Float | CqlType::Double => Value::Floating(Compensated::default()),
            CqlType::Decimal => Value::Decimal(Decimal::zero()),
            CqlType::Varint => Value::Varint(BigInt::zero()),
            ty if super::is_numeric(ty) => Value::Long(0),
            _ => return None,
        };
        Some(Self { ty: ty.clone(), average, count: 0, value })
    }

    /// Adds a value; an empty one is ignored.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), TypeError> {
        let Some(number) = Number::decode(&self.ty, bytes) else { return Ok(()) };
        self.count += 1;
        match (&mut self.value, &number) {
            (Value::Long(sum), _) => *sum += i128::from(number.to_long()),
            (Value::Varint(sum), _) => *sum += number.to_integer()?,
            (Value::Floating(sum), _) => sum.add(number.to_double(), self.average)?,
            (Value::Decimal(average), Number::Decimal(number)) if self.average => {
                let count = Decimal { unscaled: BigInt::from(self.count), scale: 0 };
                let distance = number.subtract(average)?;
                let step = distance.divide_to_scale(&count, distance.scale, Rounding::HalfEven)?;
                *average = average.add(&step)?;
            }
            (Value::Decimal(sum), Number::Decimal(number)) => *sum = sum.add(number)?,
            (Value::Decimal(_), _) => {}
        }
        Ok(())
    }

    /// The sum or average of the values that were added; zero if there were none.
    pub fn finish(&self) -> Result<Vec<u8>, TypeError> {
        let divisor = if self.average { self.count.max(1) } else { 1 };
        Ok(match &self.value {
            Value::Long(sum) => integer(&self.ty, low_bits(&BigInt::from(sum / i128::from(divisor)))),
            Value::Varint(sum) => (sum / divisor).to_signed_bytes_be(),
            Value::Decimal(value) => value.encode(),
            Value::Floating(sum) => {
                let value = sum.finish(divisor)?;
                match self.ty {
                    CqlType::Float => (value as f32).to_be_bytes().to_vec(),
                    _ => value.to_be_bytes().to_vec(),
                }
            }
        })
    }
}

impl Compensated {
    fn add(&mut self, value: f64, average: bool) -> Result<(), TypeError> {
        if let Some(big) = &mut self.big {
            *big = big.add(&Decimal::of_double(value)?)?;
            return Ok(());
        }
        let before = self.sum;
        self.simple += value;
        let corrected = value - self.compensation;
        let rounded = self.sum + corrected;
        self.compensation = (rounded - self.sum) - corrected;
        self.sum = rounded;
        if average && self.sum.is_infinite() && value.is_finite() && before.is_finite() {
            self.big = Some(Decimal::of_double(before)?.add(&Decimal::of_double(value)?)?);
        }
        Ok(())
    }

    fn finish(&self, divisor: i64) -> Result<f64, TypeError> {
        if let Some(big) = &self.big {
            let divisor = Decimal { unscaled: BigInt::from(divisor), scale: 0 };
            return Ok(big.divide_to_scale(&divisor, big.scale, Rounding::HalfEven)?.to_double());
        }
        let sum = self.sum + self.compensation;
        let sum = if sum.is_nan() && self.simple.is_infinite() { self.simple } else { sum };
        Ok(if divisor == 1 { sum } else { sum / divisor as f64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse_text, to_text};

    fn total(mut total: Total, ty: &CqlType, texts: &[&str]) -> String {
        for text in texts {
            total.add(&parse_text(ty, text).expect(text)).expect("small");
        }
        to_text(ty, &total.finish().expect("small"))
    }

    #[test]
    fn sums_and_averages() {
        use CqlType::{BigInt, Decimal, Double, Float, Int, TinyInt, Varint};
        let max = "9223372036854775807";
        let cases: [(CqlType, &[&str], &str, &str); 10] = [
            (TinyInt, &["100", "100"], "-56", "100"),
            (Int, &["1", "", "2"], "3", "1"),
            (Int, &[], "0", "0"),
            (BigInt, &[max, max], "-2", max),
            (Varint, &[max, max], "18446744073709551614", max),
            (Decimal, &["1", "2.00", "0.5"], "3.50", "1.17"),
            (Decimal, &[], "0", "0"),
            (Double, &["0.1", "0.2", "0.3"], "0.6", "0.19999999999999998"),
            (Double, &["1e308", "1e308"], "Infinity", "1.0E308"),
            (Float, &["Infinity", "Infinity"], "Infinity", "Infinity"),
        ];
        for (ty, texts, sum, average) in &cases {
            assert_eq!(total(Total::sum(ty).expect("a number"), ty, texts), *sum, "{texts:?}");
            assert_eq!(total(Total::average(ty).expect("a number"), ty, texts), *average, "{texts:?}");
        }
        assert!(Total::sum(&CqlType::Text).is_none());
    }
}
