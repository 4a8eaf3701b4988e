//! Parses a body: recursive descent over the words, with operators by precedence.
//!
//! Agrees with chapters 14 and 15 of the Java Language Specification, edition 11. Syntax outside of
//! the subset (classes, annotations, switch expressions, synchronized, assert, try with resources)
//! is refused by name. Heights of trees are bounded, because all later phases recurse over them.

use crate::ast::{Catch, Declarator, Expr, Group, Kind, LambdaBody, Stmt, StmtKind, TypeName};
use crate::compile_error::{CompileError, Place};
use crate::lexer::{self, Token};

/// The largest height of a tree. Later phases recurse over it on the stack of a worker.
pub(crate) const HEIGHT_MAX: usize = 96;

/// Names of types that are no classes.
pub(crate) const PRIMITIVES: [&str; 9] = ["boolean", "byte", "short", "char", "int", "long", "float", "double", "void"];

/// Words that are no names.
const KEYWORDS: [&str; 43] = [
    "abstract",
    "assert",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "default",
    "do",
    "else",
    "enum",
    "extends",
    "false",
    "final",
    "finally",
    "for",
    "goto",
    "if",
    "implements",
    "import",
    "instanceof",
    "interface",
    "native",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "strictfp",
    "super",
    "switch",
    "synchronized",
    "this",
    "throw",
    "throws",
    "transient",
    "true",
    "try",
    "while",
];

type Result<T> = std::result::Result<T, CompileError>;

/// Parses the body of a method.
pub(crate) fn parse(body: &str) -> Result<Vec<Stmt>> {
    let tokens = lexer::tokens(body)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    let mut statements = Vec::new();
    while *parser.token() != Token::End {
        statements.push(parser.statement()?);
    }
    Ok(statements)
}

/// Parses a type, for the signatures of the library.
pub(crate) fn parse_type(text: &str) -> Result<TypeName> {
    let tokens = lexer::tokens(text)?;
    Parser { tokens: &tokens, at: 0, depth: 0 }.type_name()
}

struct Parser<'a> {
    tokens: &'a [(Token, Place)],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn token(&self) -> &Token {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> &Token {
        self.tokens.get(self.at + by).map_or(&Token::End, |(token, _)| token)
    }

    fn place(&self) -> Place {
        let at = self.at.min(self.tokens.len().saturating_sub(1));
        self.tokens.get(at).map_or(Place { line: 1, column: 1 }, |(_, place)| *place)
    }

    fn advance(&mut self) {
        self.at += 1;
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.token(), Token::Symbol(found) if *found == symbol)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.token(), Token::Word(found) if found == word)
    }

    fn accept(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.accept(symbol) { Ok(()) } else { self.refuse(format!("Syntax error, insert \"{symbol}\"")) }
    }

    fn refuse<T>(&self, text: impl Into<String>) -> Result<T> {
        let shown = match self.token() {
            Token::Word(word) => format!(" (found \"{word}\")"),
            Token::Symbol(symbol) => format!(" (found \"{symbol}\")"),
            Token::End => " (found the end of the body)".to_owned(),
            _ => String::new(),
        };
        Err(CompileError::new(self.place(), text.into() + &shown))
    }

    fn outside<T>(&self, what: &str) -> Result<T> {
        Err(CompileError::new(self.place(), format!("{what} not supported in user-defined functions")))
    }

    /// An identifier.
    fn name(&mut self) -> Result<String> {
        match self.token() {
            Token::Word(word) if !KEYWORDS.contains(&word.as_str()) && !PRIMITIVES.contains(&word.as_str()) => {
                let word = word.clone();
                self.advance();
                Ok(word)
            }
            _ => self.refuse("Syntax error, an identifier is expected"),
        }
    }

    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > HEIGHT_MAX {
            return self.too_deep();
        }
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn too_deep<T>(&self) -> Result<T> {
        Err(CompileError::new(self.place(), format!("The code is nested deeper than {HEIGHT_MAX} levels")))
    }

    /// Tries a rule, and steps back if it does not apply.
    fn attempt<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Option<T> {
        let (at, depth) = (self.at, self.depth);
        match inner(self) {
            Ok(found) => Some(found),
            Err(_) => {
                (self.at, self.depth) = (at, depth);
                None
            }
        }
    }

    fn type_name(&mut self) -> Result<TypeName> {
        self.nested(Self::type_name_inner)
    }

    fn type_name_inner(&mut self) -> Result<TypeName> {
        let place = self.place();
        if self.accept("?") {
            if self.accept_word("extends") {
                return self.type_name();
            }
            if self.accept_word("super") {
                self.type_name()?;
            }
            return Ok(TypeName { place, name: "Object".into(), arguments: None, dimensions: 0 });
        }
        let mut arguments = None;
        let mut name = match self.token() {
            Token::Word(word) if PRIMITIVES.contains(&word.as_str()) => {
                let word = word.clone();
                self.advance();
                word
            }
            _ => self.name()?,
        };
        if !PRIMITIVES.contains(&name.as_str()) {
            loop {
                if arguments.is_none() && self.is("<") {
                    arguments = Some(self.type_arguments()?);
                }
                if self.is(".") && matches!(self.ahead(1), Token::Word(_)) {
                    self.advance();
                    name.push('.');
                    name.push_str(&self.name()?);
                } else {
                    break;
                }
            }
        }
        let dimensions = self.brackets();
        Ok(TypeName { place, name, arguments, dimensions })
    }

    /// `[]`, any number of times.
    fn brackets(&mut self) -> usize {
        let mut dimensions = 0;
        while self.is("[") && matches!(self.ahead(1), Token::Symbol("]")) {
            self.at += 2;
            dimensions += 1;
        }
        dimensions
    }

    fn type_arguments(&mut self) -> Result<Vec<TypeName>> {
        self.expect("<")?;
        let mut arguments = Vec::new();
        if self.accept(">") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.type_name()?);
            if !self.accept(",") {
                break;
            }
        }
        self.expect(">")?;
        Ok(arguments)
    }

    fn block(&mut self) -> Result<Vec<Stmt>> {
        self.expect("{")?;
        let mut statements = Vec::new();
        while !self.accept("}") {
            if *self.token() == Token::End {
                return self.refuse("Syntax error, insert \"}\" to complete Block");
            }
            statements.push(self.statement()?);
        }
        Ok(statements)
    }

    fn statement(&mut self) -> Result<Stmt> {
        let place = self.place();
        let kind = self.nested(Self::statement_kind)?;
        Ok(Stmt { place, kind })
    }

    fn boxed_statement(&mut self) -> Result<Box<Stmt>> {
        self.statement().map(Box::new)
    }

    fn condition(&mut self) -> Result<Expr> {
        self.expect("(")?;
        let condition = self.expression()?;
        self.expect(")")?;
        Ok(condition)
    }

    fn statement_kind(&mut self) -> Result<StmtKind> {
        if self.is("{") {
            return self.block().map(StmtKind::Block);
        }
        if self.accept(";") {
            return Ok(StmtKind::Empty);
        }
        let word = match self.token() {
            Token::Word(word) => word.clone(),
            _ => String::new(),
        };
        match word.as_str() {
            "if" => {
                self.advance();
                let condition = self.condition()?;
                let then = self.boxed_statement()?;
                let other = if self.accept_word("else") { Some(self.boxed_statement()?) } else { None };
                Ok(StmtKind::If(condition, then, other))
            }
            "while" => {
                self.advance();
                let condition = self.condition()?;
                Ok(StmtKind::While(condition, self.boxed_statement()?))
            }
            "do" => {
                self.advance();
                let body = self.boxed_statement()?;
                if !self.accept_word("while") {
                    return self.refuse("Syntax error, insert \"while ( Expression ) ;\" to complete DoStatement");
                }
                let condition = self.condition()?;
                self.expect(";")?;
                Ok(StmtKind::DoWhile(body, condition))
            }
            "for" => self.for_statement(),
            "switch" => self.switch(),
            "try" => self.try_statement(),
            "return" => {
                self.advance();
                let value = if self.is(";") { None } else { Some(self.expression()?) };
                self.expect(";")?;
                Ok(StmtKind::Return(value))
            }
            "throw" => {
                self.advance();
                let value = self.expression()?;
                self.expect(";")?;
                Ok(StmtKind::Throw(value))
            }
            "break" | "continue" => {
                self.advance();
                let label = if self.is(";") { None } else { Some(self.name()?) };
                self.expect(";")?;
                Ok(if word == "break" { StmtKind::Break(label) } else { StmtKind::Continue(label) })
            }
            "synchronized" => self.outside("synchronized is"),
            "assert" => self.outside("assert is"),
            "class" | "interface" | "enum" | "abstract" | "static" | "private" | "public" | "protected" => {
                self.outside("Declarations of classes and methods are")
            }
            "final" => self.declaration(),
            _ => {
                if !word.is_empty() && matches!(self.ahead(1), Token::Symbol(":")) && !word.starts_with("default") {
                    let label = self.name()?;
                    self.advance();
                    return Ok(StmtKind::Labeled(label, self.boxed_statement()?));
                }
                if self.is("@") {
                    return self.outside("Annotations are");
                }
                if self.at_declaration() {
                    return self.declaration();
                }
                let expression = self.expression()?;
                if self.is("}") && *self.ahead(1) == Token::End {
                    return self.outside("Additional methods and constructors are");
                }
                self.expect(";")?;
                Ok(StmtKind::Expr(expression))
            }
        }
    }

    /// Whether a type and a name stand here.
    fn at_declaration(&mut self) -> bool {
        let (at, depth) = (self.at, self.depth);
        let found = self.type_name().is_ok()
            && self.name().is_ok()
            && matches!(self.token(), Token::Symbol("=" | ";" | "," | ":" | "["));
        (self.at, self.depth) = (at, depth);
        found
    }

    fn declaration(&mut self) -> Result<StmtKind> {
        self.accept_word("final");
        let ty = self.type_name()?;
        let mut declared = Vec::new();
        loop {
            declared.push(self.declarator()?);
            if !self.accept(",") {
                break;
            }
        }
        self.expect(";")?;
        Ok(StmtKind::Declare(ty, declared))
    }

    fn declarator(&mut self) -> Result<Declarator> {
        let place = self.place();
        let name = self.name()?;
        let dimensions = self.brackets();
        let value = match self.accept("=") {
            true if self.is("{") => Some(self.array_literal(None)?),
            true => Some(self.expression()?),
            false => None,
        };
        Ok((place, name, dimensions, value))
    }

    fn array_literal(&mut self, ty: Option<TypeName>) -> Result<Expr> {
        let place = self.place();
        self.expect("{")?;
        let mut elements = Vec::new();
        while !self.accept("}") {
            let element =
                if self.is("{") { self.nested(|parser| parser.array_literal(None))? } else { self.expression()? };
            elements.push(element);
            if !self.accept(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(Expr { place, kind: Kind::ArrayLiteral(ty, elements) })
    }

    fn for_statement(&mut self) -> Result<StmtKind> {
        self.advance();
        self.expect("(")?;
        let each = self.attempt(|parser| {
            parser.accept_word("final");
            let ty = parser.type_name()?;
            let name = parser.name()?;
            parser.expect(":")?;
            Ok((ty, name))
        });
        if let Some((ty, name)) = each {
            let items = self.expression()?;
            self.expect(")")?;
            return Ok(StmtKind::ForEach(ty, name, items, self.boxed_statement()?));
        }
        let mut first = Vec::new();
        let place = self.place();
        if self.is_word("final") || self.at_declaration() {
            first.push(Stmt { place, kind: self.declaration()? });
        } else {
            for value in self.expressions(";")? {
                first.push(Stmt { place: value.place, kind: StmtKind::Expr(value) });
            }
            self.expect(";")?;
        }
        let condition = if self.is(";") { None } else { Some(self.expression()?) };
        self.expect(";")?;
        let updates = self.expressions(")")?;
        self.expect(")")?;
        Ok(StmtKind::For(first, condition, updates, self.boxed_statement()?))
    }

    /// Expressions between commas, before a symbol that ends them.
    fn expressions(&mut self, end: &str) -> Result<Vec<Expr>> {
        let mut list = Vec::new();
        if self.is(end) {
            return Ok(list);
        }
        loop {
            list.push(self.expression()?);
            if !self.accept(",") {
                return Ok(list);
            }
        }
    }

    fn switch(&mut self) -> Result<StmtKind> {
        self.advance();
        let value = self.condition()?;
        self.expect("{")?;
        let mut groups = Vec::new();
        while !self.accept("}") {
            let mut labels = Vec::new();
            loop {
                if self.accept_word("case") {
                    labels.push(Some(self.expression()?));
                } else if self.accept_word("default") {
                    labels.push(None);
                } else {
                    break;
                }
                if self.is("->") || self.is(",") {
                    return self.outside("Switch rules of later versions of Java are");
                }
                self.expect(":")?;
            }
            if labels.is_empty() {
                return self.refuse("Syntax error, case, default or } expected");
            }
            let mut body = Vec::new();
            while !self.is("}") && !self.is_word("case") && !self.is_word("default") {
                body.push(self.statement()?);
            }
            groups.push(Group { labels, body });
        }
        Ok(StmtKind::Switch(value, groups))
    }

    fn try_statement(&mut self) -> Result<StmtKind> {
        self.advance();
        if self.is("(") {
            return self.outside("try with resources is");
        }
        let body = self.block()?;
        let mut catches = Vec::new();
        while self.accept_word("catch") {
            self.expect("(")?;
            self.accept_word("final");
            let mut types = vec![self.type_name()?];
            while self.accept("|") {
                types.push(self.type_name()?);
            }
            let name = self.name()?;
            self.expect(")")?;
            catches.push(Catch { types, name, body: self.block()? });
        }
        let last = if self.accept_word("finally") { Some(self.block()?) } else { None };
        if catches.is_empty() && last.is_none() {
            return self.refuse("Syntax error, insert \"Finally\" to complete TryStatement");
        }
        Ok(StmtKind::Try(body, catches, last))
    }

    fn expression(&mut self) -> Result<Expr> {
        self.nested(Self::assignment)
    }

    fn assignment(&mut self) -> Result<Expr> {
        let place = self.place();
        if let Some(lambda) = self.lambda()? {
            return Ok(lambda);
        }
        let target = self.conditional()?;
        // a shift with assignment is read as single signs
        let shift = [(">>>=", 4), (">>=", 3)].into_iter().find(|(sign, _)| {
            let signs = sign.len() - 2;
            (0..signs).all(|at| matches!(self.ahead(at), Token::Symbol(">")))
                && matches!(self.ahead(signs), Token::Symbol(">="))
        });
        if let Some((sign, count)) = shift {
            self.at += count - 1;
            let value = self.expression()?;
            let operator = if sign == ">>>=" { ">>>" } else { ">>" };
            return Ok(Expr { place, kind: Kind::Assign(operator, Box::new(target), Box::new(value)) });
        }
        let operators = ["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<="];
        let plain = ["", "+", "-", "*", "/", "%", "&", "|", "^", "<<"];
        for (operator, plain) in operators.into_iter().zip(plain) {
            if self.accept(operator) {
                let value = self.expression()?;
                return Ok(Expr { place, kind: Kind::Assign(plain, Box::new(target), Box::new(value)) });
            }
        }
        Ok(target)
    }

    /// `x -> …` or `(a, b) -> …`.
    fn lambda(&mut self) -> Result<Option<Expr>> {
        let place = self.place();
        let parameters = match (self.token(), self.ahead(1)) {
            (Token::Word(_), Token::Symbol("->")) => vec![(None, self.name()?)],
            (Token::Symbol("("), _) => {
                let found = self.attempt(|parser| {
                    parser.expect("(")?;
                    let mut parameters = Vec::new();
                    while !parser.accept(")") {
                        let typed = parser.attempt(|parser| Ok((Some(parser.type_name()?), parser.name()?)));
                        parameters.push(match typed {
                            Some(typed) => typed,
                            None => (None, parser.name()?),
                        });
                        if !parser.accept(",") {
                            parser.expect(")")?;
                            break;
                        }
                    }
                    if parser.is("->") { Ok(parameters) } else { parser.refuse("no lambda") }
                });
                match found {
                    Some(parameters) => parameters,
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        self.expect("->")?;
        let body = if self.is("{") { LambdaBody::Block(self.block()?) } else { LambdaBody::Value(self.expression()?) };
        Ok(Some(Expr { place, kind: Kind::Lambda(parameters, Box::new(body)) }))
    }

    fn conditional(&mut self) -> Result<Expr> {
        let place = self.place();
        let condition = self.binary(0)?;
        if !self.accept("?") {
            return Ok(condition);
        }
        let then = self.expression()?;
        self.expect(":")?;
        let other = self.nested(|parser| match parser.lambda()? {
            Some(lambda) => Ok(lambda),
            None => parser.conditional(),
        })?;
        Ok(Expr { place, kind: Kind::Cond(Box::new(condition), Box::new(then), Box::new(other)) })
    }

    /// The binary operator that stands here, with its precedence and its number of words.
    fn operator(&self) -> Option<(&'static str, u8, usize)> {
        if self.is_word("instanceof") {
            return Some(("instanceof", 7, 1));
        }
        let Token::Symbol(symbol) = self.token() else { return None };
        let adjacent = |by: usize| {
            let (Some((_, a)), Some((next, b))) = (self.tokens.get(self.at + by - 1), self.tokens.get(self.at + by))
            else {
                return None;
            };
            (a.line == b.line && a.column + 1 == b.column).then_some(next)
        };
        Some(match *symbol {
            "||" => ("||", 1, 1),
            "&&" => ("&&", 2, 1),
            "|" => ("|", 3, 1),
            "^" => ("^", 4, 1),
            "&" => ("&", 5, 1),
            "==" => ("==", 6, 1),
            "!=" => ("!=", 6, 1),
            "<" => ("<", 7, 1),
            "<=" => ("<=", 7, 1),
            ">=" => (">=", 7, 1),
            ">" => match (adjacent(1), adjacent(2), adjacent(3)) {
                (Some(Token::Symbol(">")), Some(Token::Symbol(">=")), _) => return None,
                (Some(Token::Symbol(">=")), _, _) => return None,
                (Some(Token::Symbol(">")), Some(Token::Symbol(">")), Some(Token::Symbol("="))) => return None,
                (Some(Token::Symbol(">")), Some(Token::Symbol(">")), _) => (">>>", 8, 3),
                (Some(Token::Symbol(">")), _, _) => (">>", 8, 2),
                _ => (">", 7, 1),
            },
            "<<" => ("<<", 8, 1),
            "+" => ("+", 9, 1),
            "-" => ("-", 9, 1),
            "*" => ("*", 10, 1),
            "/" => ("/", 10, 1),
            "%" => ("%", 10, 1),
            _ => return None,
        })
    }

    fn binary(&mut self, above: u8) -> Result<Expr> {
        let place = self.place();
        let mut left = self.unary()?;
        let mut links = 0;
        while let Some((operator, precedence, words)) = self.operator().filter(|(_, precedence, _)| *precedence > above)
        {
            links += 1;
            if self.depth + links > HEIGHT_MAX {
                return self.too_deep();
            }
            self.at += words;
            let kind = if operator == "instanceof" {
                Kind::InstanceOf(Box::new(left), self.type_name()?)
            } else {
                let right = self.nested(|parser| parser.binary(precedence))?;
                Kind::Binary(operator, Box::new(left), Box::new(right))
            };
            left = Expr { place, kind };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr> {
        let place = self.place();
        for (symbol, change) in [("++", 1), ("--", -1)] {
            if self.accept(symbol) {
                let target = self.nested(Self::unary)?;
                return Ok(Expr { place, kind: Kind::Step(change, false, Box::new(target)) });
            }
        }
        for symbol in ["-", "+", "!", "~"] {
            if self.accept(symbol) {
                let of = self.nested(Self::unary)?;
                return Ok(Expr { place, kind: Kind::Unary(symbol, Box::new(of)) });
            }
        }
        if self.is("(")
            && let Some(ty) = self.attempt(Self::cast_type)
        {
            let of = self.nested(|parser| match parser.lambda()? {
                Some(lambda) => Ok(lambda),
                None => parser.unary(),
            })?;
            return Ok(Expr { place, kind: Kind::Cast(ty, Box::new(of)) });
        }
        self.postfix()
    }

    /// `(T)` of a cast: behind a class no sign may follow.
    fn cast_type(&mut self) -> Result<TypeName> {
        self.expect("(")?;
        let ty = self.type_name()?;
        self.expect(")")?;
        let is_primitive = PRIMITIVES.contains(&ty.name.as_str()) && ty.dimensions == 0;
        let operand_follows = match self.token() {
            Token::Word(word) => word != "instanceof",
            Token::Symbol(symbol) => {
                matches!(*symbol, "(" | "!" | "~") || is_primitive && matches!(*symbol, "+" | "-" | "++" | "--")
            }
            Token::End => false,
            _ => true,
        };
        if operand_follows { Ok(ty) } else { self.refuse("no cast") }
    }

    fn postfix(&mut self) -> Result<Expr> {
        let place = self.place();
        let mut value = self.primary()?;
        let mut links = 0;
        loop {
            links += 1;
            if self.depth + links > HEIGHT_MAX {
                return self.too_deep();
            }
            let kind = if self.accept(".") {
                let place = self.place();
                let name = self.name()?;
                if self.is("(") {
                    let arguments = self.arguments()?;
                    value = Expr { place, kind: Kind::Call(Some(Box::new(value)), name, arguments) };
                    continue;
                }
                Kind::Field(Box::new(value), name)
            } else if self.accept("[") {
                let index = self.expression()?;
                self.expect("]")?;
                Kind::Index(Box::new(value), Box::new(index))
            } else if self.accept("++") {
                Kind::Step(1, true, Box::new(value))
            } else if self.accept("--") {
                Kind::Step(-1, true, Box::new(value))
            } else if self.accept("::") {
                let name = if self.accept_word("new") { "new".to_owned() } else { self.name()? };
                Kind::Reference(Box::new(value), name)
            } else {
                return Ok(value);
            };
            value = Expr { place, kind };
        }
    }

    fn arguments(&mut self) -> Result<Vec<Expr>> {
        self.expect("(")?;
        let arguments = self.expressions(")")?;
        self.expect(")")?;
        Ok(arguments)
    }

    fn primary(&mut self) -> Result<Expr> {
        let place = self.place();
        let kind = match self.token().clone() {
            Token::Int(value) => Kind::Int(value),
            Token::Long(value, decimal) => Kind::Long(value, decimal),
            Token::Float(value) => Kind::Float(value),
            Token::Double(value) => Kind::Double(value),
            Token::Char(value) => Kind::Char(value),
            Token::Text(value) => Kind::Text(value),
            Token::Symbol("(") => {
                self.advance();
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Token::Word(word) => match word.as_str() {
                "null" => Kind::Null,
                "true" => Kind::Bool(true),
                "false" => Kind::Bool(false),
                "new" => return self.new_expression(),
                "this" | "super" => return self.outside("this and super are"),
                "switch" => return self.outside("Switch expressions are"),
                _ => {
                    let name = self.name()?;
                    if self.is("(") {
                        let arguments = self.arguments()?;
                        return Ok(Expr { place, kind: Kind::Call(None, name, arguments) });
                    }
                    return Ok(Expr { place, kind: Kind::Name(name) });
                }
            },
            _ => return self.refuse("Syntax error, an expression is expected"),
        };
        self.advance();
        Ok(Expr { place, kind })
    }

    fn new_expression(&mut self) -> Result<Expr> {
        let place = self.place();
        self.advance();
        let mut ty = self.type_name()?;
        if ty.dimensions > 0 {
            return self.array_literal(Some(ty));
        }
        if self.is("[") {
            let mut sizes = Vec::new();
            while self.is("[") && !matches!(self.ahead(1), Token::Symbol("]")) {
                self.advance();
                sizes.push(self.expression()?);
                self.expect("]")?;
            }
            let dimensions = sizes.len() + self.brackets();
            ty.dimensions = 0;
            return Ok(Expr { place, kind: Kind::NewArray(ty, sizes, dimensions) });
        }
        let arguments = self.arguments()?;
        if self.is("{") {
            return self.outside("Anonymous classes are");
        }
        Ok(Expr { place, kind: Kind::New(ty, arguments) })
    }
}
