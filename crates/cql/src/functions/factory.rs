//! Factories: functions that take arguments of many types are made for the types of a call.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.{FunctionFactory,FunctionParameter}`, messages
//! included.

use std::fmt;

use types::{CqlType, number};

use super::collections::element_type;
use super::{Argument, Function};
use crate::error::CqlError;
use crate::fit::{Fit, fit_type};
use crate::scalar::type_name;

/// A parameter of a factory.
#[derive(Debug)]
pub(super) enum Parameter {
    /// text
    Text,
    /// int
    Int,
    /// text or ascii
    AnyText,
    /// A value of any type.
    Any {
        /// An argument without a type of its own gets the type that the value of the call is for.
        from_receiver: bool,
    },
    /// A value of the same type as another argument.
    SameAs {
        /// Index of the other argument.
        index: usize,
        /// The other argument decides even if this one has a type of its own.
        prefer_other: bool,
        /// The parameter that applies if the other argument has no type.
        parameter: &'static Parameter,
    },
    /// A list, set or map.
    Collection,
    /// A set or list.
    SetOrList,
    /// A set or list of numbers.
    NumericSetOrList,
    /// A map.
    Map,
    /// A vector of floats.
    Vector,
    /// The argument may be missing.
    Optional(&'static Parameter),
}

/// A factory for functions of one name.
#[derive(Debug)]
pub(super) struct Factory {
    /// The name.
    pub name: &'static str,
    /// The parameters.
    pub parameters: &'static [Parameter],
    make: Make,
}

/// Makes a function for arguments of these types and a receiver of a type.
type Make = fn(&Factory, &[CqlType], Option<&CqlType>) -> Result<Function, CqlError>;

impl Factory {
    /// A factory.
    pub fn new(name: &'static str, parameters: &'static [Parameter], make: Make) -> Self {
        Self { name, parameters, make }
    }

    /// Makes the function for the arguments of a call.
    pub fn function(&self, arguments: &[&dyn Argument], receiver: Option<&CqlType>) -> Result<Function, CqlError> {
        let needed = self.parameters.iter().filter(|parameter| !matches!(parameter, Parameter::Optional(_))).count();
        if arguments.len() < needed || arguments.len() > self.parameters.len() {
            return Err(self.wrong_number_of_arguments());
        }
        let pairs = || arguments.iter().zip(self.parameters);
        let first: Vec<_> = pairs().map(|(argument, parameter)| parameter.infer(*argument, receiver, None)).collect();
        let mut types = first;
        for (at, (argument, parameter)) in pairs().enumerate() {
            let Some(ty) = parameter.infer(*argument, receiver, Some(&types)) else {
                return Err(CqlError::invalid(format!(
                    "Cannot infer type of argument {} in call to function {self}: use type casts to disambiguate",
                    argument.text()
                )));
            };
            parameter.check(self.name, *argument, &ty)?;
            types[at] = Some(ty);
        }
        let types: Vec<_> = types.into_iter().flatten().collect();
        (self.make)(self, &types, receiver)
    }

    /// Makes the function for arguments of these types.
    #[cfg(test)]
    pub fn of_types(&self, types: &[CqlType], receiver: Option<&CqlType>) -> Result<Function, CqlError> {
        let arguments: Vec<_> = types.iter().map(super::TypeArgument).collect();
        let arguments: Vec<_> = arguments.iter().map(|argument| argument as &dyn Argument).collect();
        self.function(&arguments, receiver)
    }

    /// The error for a call with too many or too few arguments.
    pub fn wrong_number_of_arguments(&self) -> CqlError {
        CqlError::invalid(format!("Invalid number of arguments for function {self}"))
    }
}

impl Parameter {
    fn infer(
        &self,
        argument: &dyn Argument,
        receiver: Option<&CqlType>,
        inferred: Option<&[Option<CqlType>]>,
    ) -> Option<CqlType> {
        let own = || argument.compatible_type();
        match self {
            Self::Text | Self::AnyText => Some(own().unwrap_or(CqlType::Text)),
            Self::Int => Some(own().unwrap_or(CqlType::Int)),
            Self::Any { from_receiver } => own().or_else(|| receiver.filter(|_| *from_receiver).cloned()),
            Self::Collection | Self::SetOrList | Self::NumericSetOrList | Self::Map => own(),
            Self::Vector => match argument.array_size() {
                Some(dimension) => Some(CqlType::Vector { element: CqlType::Float.into(), dimension }),
                None => own().or_else(|| receiver.cloned()),
            },
            Self::SameAs { index, prefer_other, parameter } => {
                let other = || inferred.and_then(|types| types.get(*index).cloned().flatten());
                let this = || parameter.infer(argument, receiver, inferred);
                if *prefer_other { other().or_else(this) } else { this().or_else(other) }
            }
            Self::Optional(parameter) => parameter.infer(argument, receiver, inferred),
        }
    }

    /// Refuses an argument of a wrong type.
    fn check(&self, function: &str, argument: &dyn Argument, ty: &CqlType) -> Result<(), CqlError> {
        let is_numeric = |ty: &CqlType| element_type(ty).is_some_and(number::is_numeric);
        let wanted = match self {
            Self::SameAs { parameter, .. } | Self::Optional(parameter) => {
                return parameter.check(function, argument, ty);
            }
            Self::Any { .. } => return Ok(()),
            Self::Text if fit_type(&CqlType::Text, ty) != Fit::No => return Ok(()),
            Self::AnyText if matches!(ty, CqlType::Text | CqlType::Ascii) => return Ok(()),
            Self::Int if *ty == CqlType::Int => return Ok(()),
            Self::Collection if ty.is_collection() => return Ok(()),
            Self::SetOrList if element_type(ty).is_some() => return Ok(()),
            Self::NumericSetOrList if is_numeric(ty) => return Ok(()),
            Self::Map if matches!(ty, CqlType::Map { .. }) => return Ok(()),
            Self::Vector if matches!(ty, CqlType::Vector { element, .. } if **element == CqlType::Float) => {
                return Ok(());
            }
            Self::Text | Self::Int | Self::AnyText => format!("an argument of type {self}"),
            Self::Collection => "a collection argument".into(),
            Self::SetOrList => "a set or list argument".into(),
            Self::NumericSetOrList => "a numeric set/list argument".into(),
            Self::Map => "a map argument".into(),
            Self::Vector => "a float vector argument".into(),
        };
        Err(CqlError::invalid(format!(
            "Function system.{function} requires {wanted}, but found argument {} of type {}",
            argument.text(),
            type_name(ty)
        )))
    }
}

/// The parameter as error messages show it.
impl fmt::Display for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "system.{}(", self.name)?;
        for (at, parameter) in self.parameters.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{parameter}")?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Int => f.write_str("int"),
            Self::AnyText => f.write_str("[text|varchar|ascii]"),
            Self::Any { .. } => f.write_str("any"),
            Self::SameAs { parameter, .. } => parameter.fmt(f),
            Self::Collection => f.write_str("collection"),
            Self::SetOrList | Self::NumericSetOrList => f.write_str("numeric_set_or_list"),
            Self::Map => f.write_str("map"),
            Self::Vector => f.write_str("vector<float, n>"),
            Self::Optional(parameter) => write!(f, "[{parameter}]"),
        }
    }
}
