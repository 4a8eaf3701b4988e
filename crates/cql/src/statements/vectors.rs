//! Vectors that no index on vectors can compare. Agrees with `OnHeapGraph.validateIndexable`.

use types::similarity::Similarity;

/// The greatest float, without its sign, that an indexed vector may have
/// (`OnHeapGraph.MAX_FLOAT32_COMPONENT`).
const FLOAT_MAX: f32 = 1e17;

/// Why vectors of a column with such an index cannot have this value, in Cassandra's words; None:
/// they can.
pub(super) fn refusal(vector: &[f32], similarity: Similarity) -> Option<String> {
    for (at, value) in vector.iter().enumerate() {
        if !value.is_finite() {
            let name = if value.is_nan() { "NaN" } else { "Infinity" };
            let sign = if *value < 0.0 { "-" } else { "" };
            return Some(format!("non-finite value at vector[{at}]={sign}{name}"));
        }
        if value.abs() > FLOAT_MAX {
            return Some(format!("Out-of-bounds value at vector[{at}]={value:E}"));
        }
    }
    let has_angle = similarity != Similarity::Cosine || vector.iter().any(|value| *value != 0.0);
    (!has_angle).then(|| "Zero vectors cannot be indexed or queried with cosine similarity".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_similarity_is_refused() {
        let cases: [(&[f32], Similarity, Option<&str>); 8] = [
            (&[1.0, f32::NAN], Similarity::Euclidean, Some("non-finite value at vector[1]=NaN")),
            (&[f32::INFINITY, 0.0], Similarity::Cosine, Some("non-finite value at vector[0]=Infinity")),
            (&[0.0, f32::NEG_INFINITY], Similarity::DotProduct, Some("non-finite value at vector[1]=-Infinity")),
            (&[-1e30], Similarity::Euclidean, Some("Out-of-bounds value at vector[0]=-1E30")),
            (&[1e16, -1e17], Similarity::Euclidean, None),
            (&[0.0, -0.0], Similarity::Euclidean, None),
            (
                &[0.0, -0.0],
                Similarity::Cosine,
                Some("Zero vectors cannot be indexed or queried with cosine similarity"),
            ),
            (&[0.0, 1e-30], Similarity::Cosine, None),
        ];
        for (vector, similarity, expected) in cases {
            assert_eq!(refusal(vector, similarity).as_deref(), expected, "{vector:?} {similarity:?}");
        }
    }
}
