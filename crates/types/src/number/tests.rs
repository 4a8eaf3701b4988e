//! Tests of calculations; operands and results are literals.

use super::*;
use crate::{parse_text, to_text};

fn calculated(left: (&CqlType, &str), symbol: char, right: (&CqlType, &str)) -> Result<(CqlType, String), String> {
    use Operator::{Add, Divide, Modulo, Multiply, Subtract};
    let operator = [Add, Subtract, Multiply, Divide, Modulo].into_iter().find(|operator| operator.symbol() == symbol);
    let operator = operator.expect("an operator");
    let value = |(ty, text): (&CqlType, &str)| parse_text(ty, text).expect(text);
    let ty = result_type(operator, left.0, right.0).expect("an operation");
    let result =
        calculate(operator, (left.0, &value(left)), (right.0, &value(right))).map_err(|error| error.to_string())?;
    let text = result.map_or_else(|| "null".to_owned(), |result| to_text(&ty, &result));
    Ok((ty, text))
}

#[test]
fn operations() {
    use CqlType::{
        Ascii, BigInt, Counter, Date, Decimal, Double, Duration, Float, Int, SmallInt, Text, Timestamp, TinyInt, Varint,
    };
    let cases = [
        ((Int, "7"), '+', (Int, "5"), (Int, "12")),
        ((TinyInt, "127"), '+', (TinyInt, "1"), (TinyInt, "-128")),
        ((TinyInt, "-128"), '/', (TinyInt, "-1"), (TinyInt, "-128")),
        ((Int, "2147483647"), '*', (SmallInt, "2"), (Int, "-2")),
        ((BigInt, "-7"), '/', (Int, "2"), (BigInt, "-3")),
        ((BigInt, "-7"), '%', (Int, "2"), (BigInt, "-1")),
        ((Counter, "0000000000000001"), '+', (TinyInt, "1"), (BigInt, "2")),
        ((Varint, "99999999999999999999"), '*', (BigInt, "10"), (Varint, "999999999999999999990")),
        ((Int, "1"), '/', (Float, "4"), (Float, "0.25")),
        ((BigInt, "1"), '/', (Float, "4"), (Double, "0.25")),
        ((Double, "1"), '/', (Double, "0"), (Double, "Infinity")),
        ((Double, "5.5"), '%', (Double, "2"), (Double, "1.5")),
        ((Varint, "1"), '+', (Float, "0.5"), (Decimal, "1.5")),
        ((Decimal, "1.5"), '+', (Int, "1"), (Decimal, "2.5")),
        ((Decimal, "1"), '+', (Int, "1"), (Decimal, "2.0")),
        ((Decimal, "1"), '/', (Varint, "3"), (Decimal, "0.33333333333333333333333333333333")),
        ((Int, ""), '+', (Int, "1"), (Int, "null")),
        ((Text, "a"), '+', (Ascii, "b"), (Text, "'ab'")),
        ((Ascii, "a"), '+', (Ascii, "b"), (Ascii, "'ab'")),
        ((Timestamp, "2024-01-31"), '+', (Duration, "1mo"), (Timestamp, "'2024-02-29T00:00:00.000Z'")),
        ((Timestamp, "2024-01-31"), '-', (Duration, "1d1ms"), (Timestamp, "'2024-01-29T23:59:59.999Z'")),
        ((Date, "2024-03-01"), '-', (Duration, "1d"), (Date, "'2024-02-29'")),
        ((Date, "1969-03-01"), '-', (Duration, "1mo1d"), (Date, "'1969-01-31'")),
    ];
    for (left, symbol, right, (ty, text)) in &cases {
        let result = calculated((&left.0, left.1), *symbol, (&right.0, right.1));
        assert_eq!(result, Ok((ty.clone(), (*text).to_owned())), "{left:?} {symbol} {right:?}");
    }
}

#[test]
fn what_fails_says_what_cassandra_says() {
    use CqlType::{Date, Decimal, Double, Duration, Int, Timestamp, Varint};
    let cases = [
        ((Int, "1"), '/', (Int, "0"), "the operation 'int / int' failed: / by zero"),
        ((Varint, "1"), '%', (Int, "0"), "the operation 'varint % int' failed: BigInteger divide by zero"),
        ((Decimal, "1"), '/', (Decimal, "0"), "the operation 'decimal / decimal' failed: BigInteger divide by zero"),
        (
            (Decimal, "1"),
            '+',
            (Double, "NaN"),
            "the operation 'decimal + double' failed: A NaN cannot be converted into a decimal",
        ),
        (
            (Date, "2024-03-01"),
            '+',
            (Duration, "1h"),
            "the operation 'date + duration' failed: The duration must have a day precision. Was: 1h",
        ),
        (
            (Timestamp, "2024-03-01"),
            '+',
            (Duration, "1us"),
            "the operation 'timestamp + duration' failed: The duration must have a millisecond precision. Was: 1us",
        ),
    ];
    for (left, symbol, right, message) in &cases {
        assert_eq!(calculated((&left.0, left.1), *symbol, (&right.0, right.1)), Err((*message).to_owned()));
    }
    assert_eq!(result_type(Operator::Multiply, &CqlType::Text, &CqlType::Int), None);
    assert_eq!(result_type(Operator::Subtract, &CqlType::Text, &CqlType::Text), None);
}

#[test]
fn functions() {
    use CqlType::{BigInt, Decimal, Double, Float, Int, TinyInt, Varint};
    let cases = [
        (Function::Abs, Int, "-5", "5"),
        (Function::Abs, TinyInt, "-128", "-128"),
        (Function::Abs, Decimal, "-1.50", "1.50"),
        (Function::Round, Double, "2.5", "3.0"),
        (Function::Round, Double, "-2.5", "-2.0"),
        (Function::Round, Float, "1e20", "2.14748365E9"),
        (Function::Round, Decimal, "2.5", "3"),
        (Function::Round, Decimal, "-2.5", "-3"),
        (Function::Exp, Int, "2", "7"),
        (Function::Exp, BigInt, "100", "9223372036854775807"),
        (Function::Exp, Decimal, "1", "2.7182818284590452353602874713527"),
        (Function::Exp, Decimal, "-10.5", "0.000027536449349747157857411097102426"),
        (Function::Exp, Varint, "10", "22026"),
        (Function::Log, Decimal, "2", "0.69314718055994530941723212145818"),
        (Function::Log, Decimal, "1E-20", "-46.051701859880913680359829093687"),
        (Function::Log, Decimal, "1.00", "0"),
        (Function::Log10, Decimal, "1000000.5", "6.0000002171471866648337715157128"),
        (Function::Log10, Varint, "1000", "3"),
        (Function::Log10, Double, "1000", "3.0"),
        (Function::Log, Int, "0", "-2147483648"),
    ];
    for (function, ty, text, expected) in cases {
        let value = apply(function, &ty, &parse_text(&ty, text).expect(text)).expect("in range").expect("not null");
        let printed = to_text(&ty, &value);
        assert_eq!(printed, expected, "{function:?} {text}");
    }
    assert!(apply(Function::Log, &Decimal, &parse_text(&Decimal, "0").expect("zero")).is_err());
    assert!(apply(Function::Exp, &Decimal, &parse_text(&Decimal, "1e10").expect("much")).is_err());
}

#[test]
fn casts() {
    use CqlType::{
        BigInt, Boolean, Date, Decimal, Double, Float, Int, SmallInt, Text, TimeUuid, Timestamp, TinyInt, Varint,
    };
    let cases = [
        (Int, "300", TinyInt, "44"),
        (Double, "1e10", Int, "2147483647"),
        (Double, "1e10", SmallInt, "-1"),
        (Double, "NaN", BigInt, "0"),
        (Float, "0.1", Decimal, "0.1"),
        (Double, "0.1", Decimal, "0.1"),
        (Int, "5", Decimal, "5"),
        (Decimal, "12345678901234567890.9", BigInt, "-6101065172474983726"),
        (Decimal, "7.9", Varint, "7"),
        (Varint, "18446744073709551617", Int, "1"),
        (Int, "-1", Text, "'-1'"),
        (Boolean, "true", Text, "'true'"),
        (Timestamp, "2024-02-29 10:00", Date, "'2024-02-29'"),
        (Timestamp, "-1", Date, "'1970-01-01'"),
        (Timestamp, "-172799999", Date, "'1969-12-30'"),
        (Date, "2024-02-29", Timestamp, "'2024-02-29T00:00:00.000Z'"),
        (TimeUuid, "50554d6e-29bb-11e5-b345-feff819cdc9f", Date, "'2015-07-14'"),
        (Timestamp, "2024-02-29", Text, "'2024-02-29T00:00:00.000Z'"),
    ];
    for (from, text, to, expected) in cases {
        let value = cast(&from, &to, &parse_text(&from, text).expect(text)).expect("exists").expect("not null");
        assert_eq!(to_text(&to, &value), expected, "{text}");
    }
    assert!(cast(&Text, &Int, b"1").is_err());
    assert_eq!(cast(&Int, &Text, b""), Ok(None));
}

/// The text of `log10` of a decimal.
fn log10_of(text: &str) -> String {
    let value = Decimal::parse(text).unwrap().encode();
    let result = math::apply(math::Function::Log10, &CqlType::Decimal, &value).unwrap().unwrap();
    Decimal::decode(&result).unwrap().to_string()
}

#[test]
fn log10_of_powers_of_ten_has_the_zeros_of_a_division() {
    let zeros = |count: usize| "0".repeat(count);
    // as Cassandra 5.0.8 answered
    for exponent in [1, 2, 5, 15] {
        assert_eq!(log10_of(&format!("1{}", zeros(exponent))), exponent.to_string());
        assert_eq!(log10_of(&format!("0.{}1", zeros(exponent - 1))), format!("-{exponent}"));
    }
    for (exponent, text) in [(10, "1E+1"), (20, "2E+1"), (50, "5E+1")] {
        assert_eq!(log10_of(&format!("1{}", zeros(exponent))), text);
    }
    for exponent in [3, 4, 6, 7, 8, 9, 11, 12, 13, 14, 16, 17, 18, 19, 21, 22, 23, 30] {
        let behind = zeros(if exponent < 10 { 31 } else { 30 });
        assert_eq!(log10_of(&format!("1{}", zeros(exponent))), format!("{exponent}.{behind}"));
        assert_eq!(log10_of(&format!("0.{}1", zeros(exponent - 1))), format!("-{exponent}.{behind}"));
    }
    assert_eq!(log10_of("100000000000000000.000"), format!("17.{}", zeros(30)));
    assert_eq!(log10_of(&format!("1{}", zeros(37))), format!("37.{}", zeros(36)));
}

#[test]
fn log10_of_doubles_is_the_nearest_double() {
    // the logarithms were calculated with 60 digits
    for (value, logarithm) in [
        (0.75, -0.12493873660829995),
        (2.0, std::f64::consts::LOG10_2),
        (3.0, 0.47712125471966244),
        (7.0, 0.8450980400142568),
        (0.1, -1.0),
        (1e-300, -300.0),
        (1.7e+308, 308.2304489213783),
        (1.0000000000000002, 9.64327466553287e-17),
        (0.9999999999999999, -4.821637332766436e-17),
        (123456.789, 5.09151497716927),
        (5e-05, -4.301029995663981),
        (58414.01736599582, 4.766517075438234),
        (127132244.70790243, 8.10425571516986),
        (5.009683663555264e-05, -4.3001896967894035),
        (3625.384973223029, 3.559354130319214),
        (273.3272955282263, 2.4366830041967273),
        (2.697456676475412, 0.4309544782599498),
        (3725613.8246009885, 6.571197836460208),
        (874.242213048388, 2.941631772699696),
        (0.00029577797514475135, -3.529034168504188),
    ] {
        assert_eq!(math::log10(value), logarithm, "{value}");
    }
    for exponent in -300..=300 {
        let power: f64 = format!("1e{exponent}").parse().unwrap();
        assert_eq!(math::log10(power), f64::from(exponent));
    }
    assert!(math::log10(-1.0).is_nan());
    assert_eq!((math::log10(0.0), math::log10(1.0)), (f64::NEG_INFINITY, 0.0));
}
