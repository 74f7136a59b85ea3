//! Reads expressions, which stand in template arguments and in types that depend on them.
use super::names::NameFacts;
use super::nodes::{Expression, Node, NodeId};
use super::{Parsed, Parser};

/// How an operator is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Prefix,
    Postfix,
    Binary,
    /// Read by hand.
    Other,
}

/// The operators: code, form, and the name of the function.
const OPERATORS: [(&str, Form, &str); 52] = [
    ("aN", Form::Binary, "operator&="),
    ("aS", Form::Binary, "operator="),
    ("aa", Form::Binary, "operator&&"),
    ("ad", Form::Prefix, "operator&"),
    ("an", Form::Binary, "operator&"),
    ("aw", Form::Prefix, "operator co_await"),
    ("cl", Form::Other, "operator()"),
    ("cm", Form::Binary, "operator,"),
    ("co", Form::Prefix, "operator~"),
    ("dV", Form::Binary, "operator/="),
    ("da", Form::Other, "operator delete[]"),
    ("de", Form::Prefix, "operator*"),
    ("dl", Form::Other, "operator delete"),
    ("dv", Form::Binary, "operator/"),
    ("eO", Form::Binary, "operator^="),
    ("eo", Form::Binary, "operator^"),
    ("eq", Form::Binary, "operator=="),
    ("ge", Form::Binary, "operator>="),
    ("gt", Form::Binary, "operator>"),
    ("ix", Form::Other, "operator[]"),
    ("lS", Form::Binary, "operator<<="),
    ("le", Form::Binary, "operator<="),
    ("ls", Form::Binary, "operator<<"),
    ("lt", Form::Binary, "operator<"),
    ("mI", Form::Binary, "operator-="),
    ("mL", Form::Binary, "operator*="),
    ("mi", Form::Binary, "operator-"),
    ("ml", Form::Binary, "operator*"),
    ("mm", Form::Postfix, "operator--"),
    ("na", Form::Other, "operator new[]"),
    ("ne", Form::Binary, "operator!="),
    ("ng", Form::Prefix, "operator-"),
    ("nt", Form::Prefix, "operator!"),
    ("nw", Form::Other, "operator new"),
    ("oR", Form::Binary, "operator|="),
    ("oo", Form::Binary, "operator||"),
    ("or", Form::Binary, "operator|"),
    ("pL", Form::Binary, "operator+="),
    ("pl", Form::Binary, "operator+"),
    ("pm", Form::Other, "operator->*"),
    ("pp", Form::Postfix, "operator++"),
    ("ps", Form::Prefix, "operator+"),
    ("pt", Form::Other, "operator->"),
    ("qu", Form::Other, "operator?"),
    ("rM", Form::Binary, "operator%="),
    ("rS", Form::Binary, "operator>>="),
    ("rm", Form::Binary, "operator%"),
    ("rs", Form::Binary, "operator>>"),
    ("ss", Form::Binary, "operator<=>"),
    ("ds", Form::Other, "operator.*"),
    ("dt", Form::Other, "operator."),
    ("li", Form::Other, "operator\"\" "),
];

/// The sign of an operator: its name without `operator`.
fn sign(name: &'static str) -> &'static str {
    let sign = name.strip_prefix("operator").unwrap_or(name);
    sign.strip_prefix(' ').map_or(sign, |word| word)
}

impl<'a> Parser<'a> {
    fn find_operator(&self) -> Option<(&'static str, Form, &'static str)> {
        let code = self.rest().get(..2)?;
        OPERATORS.into_iter().find(|it| it.0.as_bytes() == code)
    }

    /// The name of an operator function.
    pub(super) fn operator(&mut self, facts: &mut NameFacts) -> Parsed<NodeId> {
        if self.eat("cv") {
            let arguments = std::mem::replace(&mut self.arguments_of_types, false);
            let is_entity = facts.is_entity();
            let forward = self.forward_parameters;
            self.forward_parameters |= is_entity;
            let kind = self.kind();
            self.arguments_of_types = arguments;
            self.forward_parameters = forward;
            facts.set_without_result();
            let kind = kind?;
            return self.add(Node::Conversion(kind));
        }
        if self.eat("li") {
            let name = self.source_name()?;
            return self.add(Node::LiteralOperator(name));
        }
        if self.peek() == Some(b'v') && self.peek_at(1).is_some_and(|digit| digit.is_ascii_digit())
        {
            self.at += 2;
            let name = self.source_name()?;
            return self.add(Node::Conversion(name));
        }
        let (code, _, name) = self.find_operator()?;
        if matches!(code, "dt" | "ds") {
            return None;
        }
        self.at += 2;
        self.add(Node::Operator(name))
    }

    pub(super) fn expression(&mut self) -> Parsed<NodeId> {
        self.deeper(Self::expression_inside)
    }

    fn put(&mut self, expression: Expression<'a>) -> Parsed<NodeId> {
        self.add(Node::Expression(expression))
    }

    fn until(&mut self, end: &str) -> Parsed<Vec<NodeId>> {
        let mut list = Vec::new();
        while !self.eat(end) {
            list.push(self.expression()?);
        }
        Some(list)
    }

    fn expression_inside(&mut self) -> Parsed<NodeId> {
        match self.peek()? {
            b'L' => return self.literal(),
            b'T' => {
                if !matches!(self.peek_at(1), Some(b'_' | b'0'..=b'9' | b'L')) {
                    return None;
                }
                return self.template_parameter();
            }
            b'f' => {
                let is_parameter = match self.peek_at(1)? {
                    b'p' => true,
                    b'L' => self.peek_at(2).is_some_and(|digit| digit.is_ascii_digit()),
                    _ => false,
                };
                return match is_parameter {
                    true => self.function_parameter(),
                    false => self.fold(),
                };
            }
            _ => {}
        }
        let global = self.eat("gs");
        let two = self.rest().get(..2)?;
        match two {
            b"il" => {
                self.at += 2;
                let list = self.braced_until_end()?;
                return self.put(Expression::Braced(None, list));
            }
            b"tl" => {
                self.at += 2;
                let kind = self.kind()?;
                let list = self.braced_until_end()?;
                return self.put(Expression::Braced(Some(kind), list));
            }
            b"cv" => {
                self.at += 2;
                let arguments = std::mem::replace(&mut self.arguments_of_types, false);
                let kind = self.kind();
                self.arguments_of_types = arguments;
                let kind = kind?;
                let list = match self.eat("_") {
                    true => self.until("E")?,
                    false => vec![self.expression()?],
                };
                return self.put(Expression::Conversion(kind, list));
            }
            b"dc" | b"sc" | b"cc" | b"rc" => {
                let word = match two {
                    b"dc" => "dynamic_cast",
                    b"sc" => "static_cast",
                    b"cc" => "const_cast",
                    _ => "reinterpret_cast",
                };
                self.at += 2;
                let (kind, of) = (self.kind()?, self.expression()?);
                return self.put(Expression::NamedCast(word, kind, of));
            }
            b"cl" => {
                self.at += 2;
                let called = self.expression()?;
                let list = self.until("E")?;
                return self.put(Expression::Call(called, list));
            }
            b"cp" => {
                self.at += 2;
                let called = self.expression()?;
                let list = self.until("E")?;
                let called = self.put(Expression::Enclosed("(", called, ")"))?;
                return self.put(Expression::Call(called, list));
            }
            b"ix" => {
                self.at += 2;
                let (of, index) = (self.expression()?, self.expression()?);
                return self.put(Expression::Subscript(of, index));
            }
            b"qu" => {
                self.at += 2;
                let parts = (self.expression()?, self.expression()?, self.expression()?);
                return self.put(Expression::Conditional(parts.0, parts.1, parts.2));
            }
            b"dt" | b"pt" | b"ds" | b"pm" => {
                let sign = match two {
                    b"dt" => ".",
                    b"pt" => "->",
                    b"ds" => ".*",
                    _ => "->*",
                };
                self.at += 2;
                let (of, member) = (self.expression()?, self.expression()?);
                return self.put(Expression::Member(of, sign, member));
            }
            b"nw" | b"na" => return self.new_expression(global),
            b"dl" | b"da" => {
                let array = two == b"da";
                self.at += 2;
                let of = self.expression()?;
                return self.put(Expression::Delete(of, global, array));
            }
            b"sz" | b"az" | b"nx" | b"te" => {
                self.at += 2;
                let of = self.expression()?;
                let word = match two {
                    b"sz" => "sizeof (",
                    b"az" => "alignof (",
                    b"nx" => "noexcept (",
                    _ => "typeid (",
                };
                return self.put(Expression::Enclosed(word, of, ")"));
            }
            b"st" | b"at" | b"ti" => {
                self.at += 2;
                let of = self.kind()?;
                let word = match two {
                    b"st" => "sizeof (",
                    b"at" => "alignof (",
                    _ => "typeid (",
                };
                return self.put(Expression::Enclosed(word, of, ")"));
            }
            b"sZ" => {
                self.at += 2;
                let of = match self.peek()? {
                    b'T' => self.template_parameter()?,
                    _ => self.function_parameter()?,
                };
                let of = self.add(Node::Expansion(of))?;
                return self.put(Expression::Enclosed("sizeof...(", of, ")"));
            }
            b"sP" => {
                self.at += 2;
                let mut list = Vec::new();
                while !self.eat("E") {
                    list.push(self.argument()?);
                }
                return self.put(Expression::SizeofPack(list));
            }
            b"sp" => {
                self.at += 2;
                let of = self.expression()?;
                return self.add(Node::Expansion(of));
            }
            b"tw" => {
                self.at += 2;
                let of = self.expression()?;
                return self.put(Expression::Throw(of));
            }
            b"tr" => {
                self.at += 2;
                return self.put(Expression::Text("throw"));
            }
            b"mc" => {
                self.at += 2;
                let (kind, of) = (self.kind()?, self.expression()?);
                if self.peek()? != b'E' {
                    self.number(true)?;
                }
                self.expect("E")?;
                return self.put(Expression::PointerToMemberConversion(kind, of));
            }
            b"so" => {
                self.at += 2;
                return self.subobject();
            }
            b"on" | b"sr" => return self.unresolved(global),
            b"pp" | b"mm" if self.peek_at(2) == Some(b'_') => {
                let sign = if two == b"pp" { "++" } else { "--" };
                self.at += 3;
                let of = self.expression()?;
                return self.put(Expression::Prefix(sign, of));
            }
            _ => {}
        }
        if two.first() == Some(&b'u') {
            self.at += 1;
            let name = self.source_name()?;
            let mut list = Vec::new();
            while !self.eat("E") {
                list.push(self.argument()?);
            }
            return self.put(Expression::Vendor(name, list));
        }
        if let Some((_, form, name)) = self.find_operator().filter(|it| it.1 != Form::Other) {
            self.at += 2;
            let first = self.expression()?;
            return match form {
                Form::Prefix => self.put(Expression::Prefix(sign(name), first)),
                Form::Postfix => self.put(Expression::Postfix(first, sign(name))),
                _ => {
                    let second = self.expression()?;
                    self.put(Expression::Binary(first, sign(name), second))
                }
            };
        }
        self.unresolved(global)
    }

    fn subobject(&mut self) -> Parsed<NodeId> {
        let kind = self.kind()?;
        let of = self.expression()?;
        if !matches!(self.peek()?, b'_' | b'E') {
            self.number(true)?;
        }
        while self.eat("_") {
            if self.peek().is_some_and(|digit| digit.is_ascii_digit()) {
                self.number(false)?;
            }
        }
        self.eat("p");
        self.expect("E")?;
        self.put(Expression::PointerToMemberConversion(kind, of))
    }

    fn new_expression(&mut self, global: bool) -> Parsed<NodeId> {
        let array = self.looks_at("na");
        self.at += 2;
        let arguments = self.until("_")?;
        let kind = self.kind()?;
        let values = match self.eat("pi") {
            true => Some(self.until("E")?),
            false => {
                self.expect("E")?;
                None
            }
        };
        self.put(Expression::New {
            arguments,
            kind,
            values,
            global,
            array,
        })
    }

    fn braced_until_end(&mut self) -> Parsed<Vec<NodeId>> {
        let mut list = Vec::new();
        while !self.eat("E") {
            list.push(self.braced()?);
        }
        Some(list)
    }

    fn braced(&mut self) -> Parsed<NodeId> {
        self.deeper(|parser| {
            if parser.eat("di") {
                let name = parser.source_name()?;
                let value = parser.braced()?;
                return parser.put(Expression::Designated(name, value, false));
            }
            if parser.eat("dx") {
                let index = parser.expression()?;
                let value = parser.braced()?;
                return parser.put(Expression::Designated(index, value, true));
            }
            if parser.eat("dX") {
                let (from, to) = (parser.expression()?, parser.expression()?);
                let value = parser.braced()?;
                return parser.put(Expression::DesignatedRange(from, to, value));
            }
            parser.expression()
        })
    }

    fn function_parameter(&mut self) -> Parsed<NodeId> {
        if self.eat("fpT") {
            return self.put(Expression::Text("this"));
        }
        if self.eat("fL") {
            self.number(false)?;
            self.expect("p")?;
        } else {
            self.expect("fp")?;
        }
        self.qualifiers();
        let number = match self.peek()? {
            b'_' => "",
            _ => self.number(false)?,
        };
        self.expect("_")?;
        self.put(Expression::Parameter(number))
    }

    fn fold(&mut self) -> Parsed<NodeId> {
        self.expect("f")?;
        let (is_left, has_initial) = match self.next()? {
            b'l' => (true, false),
            b'r' => (false, false),
            b'L' => (true, true),
            b'R' => (false, true),
            _ => return None,
        };
        let (_, _, name) = self.find_operator()?;
        self.at += 2;
        let mut first = Some(self.expression()?);
        let mut second = None;
        if has_initial {
            second = Some(self.expression()?);
        }
        // The pack is the second operand of a left fold with an initial value.
        if is_left && has_initial {
            std::mem::swap(&mut first, &mut second);
        }
        self.put(Expression::Fold(sign(name), first, second, is_left))
    }

    /// A name that depends on template parameters.
    fn unresolved(&mut self, global: bool) -> Parsed<NodeId> {
        let found = if self.eat("srN") {
            let mut scope = self.unresolved_type()?;
            if self.peek() == Some(b'I') {
                let arguments = self.arguments(false)?;
                scope = self.add(Node::Template(scope, arguments))?;
            }
            while !self.eat("E") {
                let level = self.simple()?;
                scope = self.add(Node::Nested(scope, level))?;
            }
            let last = self.base()?;
            self.add(Node::Nested(scope, last))?
        } else if self.eat("sr") {
            if self.peek().is_some_and(|digit| digit.is_ascii_digit()) {
                let mut scope = self.simple()?;
                if global {
                    scope = self.add(Node::Global(scope))?;
                }
                while !self.eat("E") {
                    let level = self.simple()?;
                    scope = self.add(Node::Nested(scope, level))?;
                }
                let last = self.base()?;
                return self.add(Node::Nested(scope, last));
            }
            let mut scope = self.unresolved_type()?;
            if self.peek() == Some(b'I') {
                let arguments = self.arguments(false)?;
                scope = self.add(Node::Template(scope, arguments))?;
            }
            let last = self.base()?;
            self.add(Node::Nested(scope, last))?
        } else {
            let name = self.base()?;
            match global {
                true => self.add(Node::Global(name))?,
                false => name,
            }
        };
        Some(found)
    }

    fn unresolved_type(&mut self) -> Parsed<NodeId> {
        match self.peek()? {
            b'T' => {
                let start = self.at;
                let found = self.template_parameter()?;
                self.substitutable(found);
                self.is_parameter(start);
                Some(found)
            }
            b'D' => {
                let found = self.decltype()?;
                Some(self.substitutable(found))
            }
            b'S' if self.peek_at(1) == Some(b't') => {
                self.at += 2;
                let scope = self.name("std")?;
                let name = self.source_name()?;
                let found = self.add(Node::Nested(scope, name))?;
                Some(self.substitutable(found))
            }
            b'S' => self.substitution(),
            // Clang writes whole types here.
            _ => self.kind(),
        }
    }

    /// A name with template arguments.
    fn simple(&mut self) -> Parsed<NodeId> {
        let name = self.source_name()?;
        match self.peek() {
            Some(b'I') => {
                let arguments = self.arguments(false)?;
                self.add(Node::Template(name, arguments))
            }
            _ => Some(name),
        }
    }

    fn base(&mut self) -> Parsed<NodeId> {
        if self.peek()?.is_ascii_digit() {
            return self.simple();
        }
        if self.eat("dn") {
            let of = match self.peek()?.is_ascii_digit() {
                true => self.simple()?,
                false => self.unresolved_type()?,
            };
            return self.add(Node::Destructor(of));
        }
        self.eat("on");
        let name = self.operator(&mut NameFacts::default())?;
        match self.peek() {
            Some(b'I') => {
                let arguments = self.arguments(false)?;
                self.add(Node::Template(name, arguments))
            }
            _ => Some(name),
        }
    }
}
