//! Similarity of vectors of floats: the functions of `similarity_function`, as scores for users and
//! as ranks for searches.
//!
//! A score is what `similarity_cosine` and its relatives give. A rank orders vectors as the score
//! does and costs less: it is taken between vectors in the function's own form
//! ([`Similarity::form`]), so that cosine needs no square root for each pair.
//!
//! Agrees with jvector's `VectorSimilarityFunction` as Cassandra 5.0 uses it.

use crate::CqlType;

/// Floats that are added side by side: a width that compilers turn into vector instructions.
const LANES: usize = 8;

/// A function by which vectors are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Similarity {
    /// The product without regard to lengths.
    DotProduct,
    /// The angle.
    Cosine,
    /// The distance.
    Euclidean,
}

impl Similarity {
    /// All of them, in Cassandra's order.
    pub const ALL: [Self; 3] = [Self::Euclidean, Self::DotProduct, Self::Cosine];

    /// The name, as options have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::DotProduct => "DOT_PRODUCT",
            Self::Cosine => "COSINE",
            Self::Euclidean => "EUCLIDEAN",
        }
    }

    /// The function with a name, which is compared without case.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(name))
    }

    /// A vector in the form between which ranks are taken: of length 1 for cosine. None: the vector
    /// has none, because a float in it is no number, or it is zero and has no angle.
    pub fn form(self, mut vector: Vec<f32>) -> Option<Vec<f32>> {
        if !vector.iter().all(|value| value.is_finite()) {
            return None;
        }
        if self == Self::Cosine {
            let length = vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>().sqrt();
            if length == 0.0 {
                return None;
            }
            vector.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
        }
        Some(vector)
    }

    /// The rank of a pair of vectors in their form: greater is nearer.
    pub fn rank(self, a: &[f32], b: &[f32]) -> f32 {
        match self {
            Self::DotProduct | Self::Cosine => sum(a, b, |a, b| a * b),
            Self::Euclidean => -sum(a, b, |a, b| (a - b) * (a - b)),
        }
    }

    /// As [`Self::rank`], for a second vector as graphs have it: little-endian; equal to the bit.
    pub fn rank_of_bytes(self, a: &[f32], b: &[u8]) -> f32 {
        let (b, _) = b.as_chunks::<4>();
        match self {
            Self::DotProduct | Self::Cosine => sum(a, b, |a, b| a * f32::from_le_bytes(b)),
            Self::Euclidean => {
                let difference = |a: f32, b| a - f32::from_le_bytes(b);
                -sum(a, b, |a, b| difference(a, b) * difference(a, b))
            }
        }
    }
}

/// The sum over the pairs, in lanes.
fn sum<B: Copy>(a: &[f32], b: &[B], of: impl Fn(f32, B) -> f32) -> f32 {
    let mut lanes = [0f32; LANES];
    let ((a, rest_of_a), (b, rest_of_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += of(*a, *b);
        }
    }
    let rest: f32 = rest_of_a.iter().zip(rest_of_b).map(|(a, b)| of(*a, *b)).sum();
    lanes.iter().sum::<f32>() + rest
}

/// The floats of a serialized vector.
pub fn floats(vector: &[u8]) -> Vec<f32> {
    vector.as_chunks::<4>().0.iter().map(|bytes| f32::from_be_bytes(*bytes)).collect()
}

/// The dimension of a type, if it is a vector of floats.
pub fn float_dimension(ty: &CqlType) -> Option<u32> {
    match ty {
        CqlType::Vector { element, dimension } if **element == CqlType::Float => Some(*dimension),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_order_as_scores_do() {
        let far = Similarity::Euclidean.rank(&[0.0; 11], &[2.0; 11]);
        assert_eq!((far, Similarity::Euclidean.rank(&[1.0; 11], &[2.0; 11])), (-44.0, -11.0));
        assert_eq!(Similarity::DotProduct.rank(&[2.0; 9], &[3.0; 9]), 54.0);
        let (one, other) = ([0.1f32, -2.7, 3.3, 1e9, 5.0, 0.7, -0.3, 8.8, 1.1, 0.01], [0.3f32; 10]);
        let bytes: Vec<u8> = other.iter().flat_map(|value| value.to_le_bytes()).collect();
        for similarity in Similarity::ALL {
            assert_eq!(similarity.rank_of_bytes(&one, &bytes).to_bits(), similarity.rank(&one, &other).to_bits());
        }
        let unit = Similarity::Cosine.form(vec![3.0, 4.0]).unwrap();
        assert_eq!(unit, [0.6, 0.8]);
        assert_eq!(Similarity::Cosine.form(vec![0.0, 0.0]), None);
        assert_eq!(Similarity::Euclidean.form(vec![f32::NAN]), None);
        assert_eq!(floats(&[0x3f, 0x80, 0, 0, 0xff]), [1.0]);
    }

    #[test]
    fn names_are_found_without_case() {
        assert_eq!(Similarity::of_name("dot_Product"), Some(Similarity::DotProduct));
        assert_eq!(Similarity::of_name("manhattan"), None);
    }
}
