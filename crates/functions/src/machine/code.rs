//! The compiled form of a body: typed trees whose variables are slots of a frame, whose methods are
//! addresses, and whose conversions are explicit. Nothing is looked up by name when they run.

use types::CqlType;

use super::{Body, Value};
use crate::class::{JavaClass, Prim, Type};

/// An arithmetic operator on two operands of one type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Ushr,
}

/// A comparison of two operands of one type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// An expression.
#[derive(Clone, Debug)]
pub(crate) enum ExprCode {
    /// A primitive constant or null.
    Const(Value),
    /// A string constant, by its index in [`Program::texts`].
    Text(u32),
    /// A constant of an enumeration or a context object, by its class and number.
    Static(JavaClass, u8),
    Local(u16),
    SetLocal(u16, Box<ExprCode>),
    /// Evaluates to the variable's value from before it is set.
    PostLocal(u16, Box<ExprCode>),
    /// Two operands of the type that their values have; of a shift the left one decides.
    Arith(Op, Box<(ExprCode, ExprCode)>),
    Compare(Cmp, Box<(ExprCode, ExprCode)>),
    /// `==` of references.
    Same(bool, Box<(ExprCode, ExprCode)>),
    And(Box<(ExprCode, ExprCode)>),
    Or(Box<(ExprCode, ExprCode)>),
    Not(Box<ExprCode>),
    Neg(Box<ExprCode>),
    /// A conversion between numeric types.
    Convert(Prim, Box<ExprCode>),
    /// The value of a box; null throws.
    Unbox(Prim, Box<ExprCode>),
    Cast(Type, Box<ExprCode>),
    InstanceOf(Type, Box<ExprCode>),
    Cond(Box<(ExprCode, ExprCode, ExprCode)>),
    Concat(Vec<ExprCode>),
    /// A call; with `true` the first argument is a receiver that must not be null.
    Call(Body, bool, Box<[ExprCode]>),
    /// An array of a type of elements with sizes for its first dimensions.
    NewArray(Type, Vec<ExprCode>),
    ArrayLiteral(Type, Vec<ExprCode>),
    Index(Box<(ExprCode, ExprCode)>),
    SetIndex(Box<(ExprCode, ExprCode, ExprCode)>),
    Length(Box<ExprCode>),
    /// All in turn; the value is that of the last.
    Seq(Vec<ExprCode>),
    /// A lambda, by its index in [`Program::lambdas`].
    Lambda(u32),
}

/// A statement.
#[derive(Clone, Debug)]
pub(crate) enum StmtCode {
    Expr(ExprCode),
    Block(Vec<StmtCode>),
    If(ExprCode, Box<StmtCode>, Option<Box<StmtCode>>),
    /// A loop: condition (None: true), body, updates, whether the body runs before the condition,
    /// label.
    Loop(Option<ExprCode>, Box<StmtCode>, Vec<ExprCode>, bool, Label),
    /// Over the elements of a list, set or array: slot, conversion of the element, items, body.
    Each(u16, Option<Prim>, ExprCode, Box<StmtCode>, Label),
    /// A switch: the value, for each label its constant and the index of the statement after it,
    /// the index for `default`, the statements.
    Switch(ExprCode, Vec<(Value, usize)>, Vec<(u32, usize)>, Option<usize>, Vec<StmtCode>),
    /// A labeled statement that is no loop.
    Labeled(Label, Box<StmtCode>),
    Return(Option<ExprCode>),
    Break(Label),
    Continue(Label),
    Throw(ExprCode),
    Try(Vec<StmtCode>, Vec<(Vec<JavaClass>, u16, Vec<StmtCode>)>, Option<Vec<StmtCode>>),
}

/// The number of a loop or labeled statement in its body.
pub(crate) type Label = u16;

/// A lambda.
#[derive(Clone, Debug)]
pub(crate) struct Lambda {
    /// The slots of its parameters.
    pub parameters: Vec<u16>,
    /// The slots of variables around it, whose values it takes along.
    pub captured: Vec<u16>,
    /// The slots of its own variables, the parameters among them: from, to.
    pub own: (u16, u16),
    pub body: Vec<StmtCode>,
}

/// A compiled body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub body: Vec<StmtCode>,
    pub lambdas: Vec<Lambda>,
    pub texts: Vec<Vec<u16>>,
    /// Number of slots of the frame. The arguments are the first of them.
    pub slots: usize,
    /// For each argument whether the body reads it.
    pub used: Vec<bool>,
    /// Names and types of the arguments, for the context.
    pub arguments: Vec<(String, CqlType)>,
    /// The type of the result, for the context.
    pub returns: Option<CqlType>,
    /// The user types of the keyspace, for the context.
    pub user_types: Vec<std::sync::Arc<types::UserType>>,
}
