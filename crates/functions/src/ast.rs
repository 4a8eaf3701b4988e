//! The syntax tree of a body, as written: names are not resolved, types are not checked.

use crate::compile_error::Place;

/// A type as written.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct TypeName {
    pub place: Place,
    /// The name with its package, if it was written; `var`, `int` and the like too.
    pub name: String,
    /// The type arguments; None: none were written. Empty: `<>`.
    pub arguments: Option<Vec<TypeName>>,
    /// The number of `[]`.
    pub dimensions: usize,
}

/// An expression with its place.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Expr {
    pub place: Place,
    pub kind: Kind,
}

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Int(i64),
    Long(u64, bool),
    Float(f32),
    Double(f64),
    Char(u16),
    Text(Vec<u16>),
    /// A simple name: a variable or a class.
    Name(String),
    /// `target.name`
    Field(Box<Expr>, String),
    /// `target.name(arguments)`; without a target a method of the function's own class.
    Call(Option<Box<Expr>>, String, Vec<Expr>),
    /// `new T(arguments)`
    New(TypeName, Vec<Expr>),
    /// `new T[n][]` with the sizes that are written, and the number of dimensions.
    NewArray(TypeName, Vec<Expr>, usize),
    /// `new T[] {…}` or `{…}` of a declaration (then without a type).
    ArrayLiteral(Option<TypeName>, Vec<Expr>),
    /// `array[index]`
    Index(Box<Expr>, Box<Expr>),
    Unary(&'static str, Box<Expr>),
    /// `++x` and the like: the change, whether the value is that before it, the target.
    Step(i32, bool, Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// `target = value`, `target += value`; the operator without `=`, empty for a plain assignment.
    Assign(&'static str, Box<Expr>, Box<Expr>),
    Cond(Box<Expr>, Box<Expr>, Box<Expr>),
    Cast(TypeName, Box<Expr>),
    InstanceOf(Box<Expr>, TypeName),
    Lambda(Vec<(Option<TypeName>, String)>, Box<LambdaBody>),
    /// `T::name`
    Reference(Box<Expr>, String),
}

/// The body of a lambda.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum LambdaBody {
    Value(Expr),
    Block(Vec<Stmt>),
}

/// A statement with its place.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Stmt {
    pub place: Place,
    pub kind: StmtKind,
}

/// A group of a switch.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Group {
    /// The labels; None is `default`.
    pub labels: Vec<Option<Expr>>,
    pub body: Vec<Stmt>,
}

/// A catch clause.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Catch {
    pub types: Vec<TypeName>,
    pub name: String,
    pub body: Vec<Stmt>,
}

/// A declared variable: name, dimensions behind the name, first value.
pub(crate) type Declarator = (Place, String, usize, Option<Expr>);

/// A statement.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum StmtKind {
    Empty,
    Block(Vec<Stmt>),
    Declare(TypeName, Vec<Declarator>),
    Expr(Expr),
    If(Expr, Box<Stmt>, Option<Box<Stmt>>),
    While(Expr, Box<Stmt>),
    DoWhile(Box<Stmt>, Expr),
    For(Vec<Stmt>, Option<Expr>, Vec<Expr>, Box<Stmt>),
    ForEach(TypeName, String, Expr, Box<Stmt>),
    Switch(Expr, Vec<Group>),
    Return(Option<Expr>),
    Break(Option<String>),
    Continue(Option<String>),
    Labeled(String, Box<Stmt>),
    Throw(Expr),
    Try(Vec<Stmt>, Vec<Catch>, Option<Vec<Stmt>>),
}
