//! Reads types, template arguments and substitutions.
use super::names::NameFacts;
use super::nodes::{
    Expression, FloatKind, Node, NodeId, Qualifiers, ReferenceQualifier, Signature,
};
use super::{Parsed, Parser};

/// The built-in types, by their letter. A suffix is what literals of the type have; without one, they have the type before
/// them.
pub(super) fn builtin(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'v' => "void",
        b'w' => "wchar_t",
        b'b' => "bool",
        b'c' => "char",
        b'a' => "signed char",
        b'h' => "unsigned char",
        b's' => "short",
        b't' => "unsigned short",
        b'i' => "int",
        b'j' => "unsigned int",
        b'l' => "long",
        b'm' => "unsigned long",
        b'x' => "long long",
        b'y' => "unsigned long long",
        b'n' => "__int128",
        b'o' => "unsigned __int128",
        b'f' => "float",
        b'd' => "double",
        b'e' => "long double",
        b'g' => "__float128",
        b'z' => "...",
        _ => return None,
    })
}

/// The built-in types with `D` before their letter.
fn extended(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'd' => "decimal64",
        b'e' => "decimal128",
        b'f' => "decimal32",
        b'h' => "half",
        b'i' => "char32_t",
        b's' => "char16_t",
        b'u' => "char8_t",
        b'a' => "auto",
        b'c' => "decltype(auto)",
        b'n' => "std::nullptr_t",
        _ => return None,
    })
}

/// The suffix of integers of a built-in type.
fn suffix(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'i' => "",
        b'j' => "u",
        b'l' => "l",
        b'm' => "ul",
        b'x' => "ll",
        b'y' => "ull",
        _ => return None,
    })
}

/// The classes that have substitutions of their own: the letter, the text, the name of the template, and its arguments.
const ABBREVIATIONS: [(u8, &str, &str, &str); 6] = [
    (b'a', "std::allocator", "allocator", ""),
    (b'b', "std::basic_string", "basic_string", ""),
    (
        b's',
        "std::string",
        "basic_string",
        "<char, std::char_traits<char>, std::allocator<char>>",
    ),
    (
        b'i',
        "std::istream",
        "basic_istream",
        "<char, std::char_traits<char>>",
    ),
    (
        b'o',
        "std::ostream",
        "basic_ostream",
        "<char, std::char_traits<char>>",
    ),
    (
        b'd',
        "std::iostream",
        "basic_iostream",
        "<char, std::char_traits<char>>",
    ),
];

/// The number of a template parameter of the outermost level, from what is between `T` and the end.
fn parameter_number(text: &[u8]) -> Option<usize> {
    let digits = text.strip_suffix(b"_")?;
    if digits.is_empty() {
        return Some(0);
    }
    let number: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
    number.checked_add(1)
}

impl<'a> Parser<'a> {
    pub(super) fn qualifiers(&mut self) -> Qualifiers {
        Qualifiers {
            restrict: self.eat("r"),
            volatile: self.eat("V"),
            constant: self.eat("K"),
        }
    }

    /// A type.
    pub(super) fn kind(&mut self) -> Parsed<NodeId> {
        self.deeper(Self::kind_inside)
    }

    fn kind_inside(&mut self) -> Parsed<NodeId> {
        let letter = self.peek()?;
        let found = match letter {
            b'r' | b'V' | b'K' => {
                let mut after = self.at;
                while matches!(self.text.get(after), Some(b'r' | b'V' | b'K')) {
                    after += 1;
                }
                let rest = self.text.get(after..).unwrap_or_default();
                let is_function = rest.starts_with(b"F")
                    || [&b"Do"[..], b"DO", b"Dw", b"Dx"]
                        .iter()
                        .any(|it| rest.starts_with(it));
                match is_function {
                    true => self.function()?,
                    false => {
                        let qualifiers = self.qualifiers();
                        let of = self.kind()?;
                        self.add(Node::Qualified(of, qualifiers))?
                    }
                }
            }
            b'U' => self.vendor_qualified()?,
            b'u' => {
                self.at += 1;
                let name = self.source_name()?;
                if self.peek() == Some(b'I') {
                    let arguments = self.arguments(false)?;
                    self.add(Node::Template(name, arguments))?
                } else {
                    name
                }
            }
            b'D' => match self.peek_at(1)? {
                b'p' => {
                    self.at += 2;
                    let pattern = self.kind()?;
                    self.add(Node::Expansion(pattern))?
                }
                b't' | b'T' => self.decltype()?,
                b'v' => self.vector()?,
                b'o' | b'O' | b'w' | b'x' => self.function()?,
                b'F' => {
                    self.at += 2;
                    let number = self.number(false)?;
                    let is_brain = self.eat("b");
                    if !is_brain {
                        self.eat("x");
                        self.eat("_");
                    }
                    let (before, after) = match is_brain {
                        true => ("std::bfloat", "_t"),
                        false => ("_Float", ""),
                    };
                    return self.add(Node::Joined(before, number, after));
                }
                b'B' | b'U' => {
                    let is_signed = self.peek_at(1) == Some(b'B');
                    self.at += 2;
                    let size = match self.peek()?.is_ascii_digit() {
                        true => {
                            let number = self.number(false)?;
                            self.name(number)?
                        }
                        false => self.expression()?,
                    };
                    self.expect("_")?;
                    return self.add(Node::BitInt(size, is_signed));
                }
                letter => {
                    // `Dk` and `DK` are `auto` with a constraint.
                    if matches!(letter, b'k' | b'K') {
                        return None;
                    }
                    let text = extended(letter)?;
                    self.at += 2;
                    return self.name(text);
                }
            },
            b'F' => self.function()?,
            b'A' => self.array()?,
            b'M' => {
                self.at += 1;
                let class = self.kind()?;
                let member = self.kind()?;
                self.add(Node::MemberPointer(class, member))?
            }
            b'T' => {
                let word = match self.peek_at(1)? {
                    b's' => Some("struct"),
                    b'u' => Some("union"),
                    b'e' => Some("enum"),
                    _ => None,
                };
                if let Some(word) = word {
                    self.at += 2;
                    let name = self.entity(&mut NameFacts::default())?;
                    self.add(Node::Elaborated(word, name))?
                } else {
                    let start = self.at;
                    let parameter = self.template_parameter()?;
                    self.substitutions.push(parameter);
                    self.is_parameter(start);
                    if self.peek() == Some(b'I') && self.arguments_of_types {
                        let arguments = self.arguments(false)?;
                        self.add(Node::Template(parameter, arguments))?
                    } else {
                        return Some(parameter);
                    }
                }
            }
            b'P' => {
                self.at += 1;
                let of = self.kind()?;
                self.add(Node::Pointer(of))?
            }
            b'R' | b'O' => {
                self.at += 1;
                let of = self.kind()?;
                let kind = match letter {
                    b'R' => ReferenceQualifier::Left,
                    _ => ReferenceQualifier::Right,
                };
                self.add(Node::Reference(of, kind))?
            }
            b'C' | b'G' => {
                self.at += 1;
                let of = self.kind()?;
                let word = if letter == b'C' {
                    " complex"
                } else {
                    " imaginary"
                };
                self.add(Node::Suffixed(of, word))?
            }
            b'S' if self.peek_at(1) != Some(b't') => {
                let found = self.substitution()?;
                if self.peek() == Some(b'I') && self.arguments_of_types {
                    let arguments = self.arguments(false)?;
                    self.add(Node::Template(found, arguments))?
                } else {
                    // What a substitution stands for is in the table already.
                    return Some(found);
                }
            }
            _ => {
                if let Some(text) = builtin(letter) {
                    self.at += 1;
                    return self.name(text);
                }
                self.class_or_enum()?
            }
        };
        Some(self.substitutable(found))
    }

    fn class_or_enum(&mut self) -> Parsed<NodeId> {
        match self.peek()? {
            b'N' => self.nested(None),
            b'Z' => self.entity(&mut NameFacts::default()),
            _ => {
                let mut facts = NameFacts::default();
                self.type_name(&mut facts)
            }
        }
    }

    /// A name without scope, with its template arguments, as a type.
    fn type_name(&mut self, facts: &mut NameFacts) -> Parsed<NodeId> {
        let is_std = self.eat("St");
        let scope = if is_std {
            Some(self.name("std")?)
        } else {
            None
        };
        let name = self.unqualified_type(scope, facts)?;
        if self.peek() != Some(b'I') {
            return Some(name);
        }
        self.substitutable(name);
        let arguments = self.arguments(false)?;
        self.add(Node::Template(name, arguments))
    }

    fn unqualified_type(&mut self, scope: Option<NodeId>, facts: &mut NameFacts) -> Parsed<NodeId> {
        // Operators and constructors are no types.
        match self.peek()? {
            b'0'..=b'9' | b'U' | b'L' | b'W' | b'D' => self.unqualified(scope, facts),
            _ => None,
        }
    }

    fn vendor_qualified(&mut self) -> Parsed<NodeId> {
        self.expect("U")?;
        let text = self.source_text()?;
        let arguments = match self.peek() {
            Some(b'I') => Some(self.arguments(false)?),
            _ => None,
        };
        let of = self.kind()?;
        // Protocols of Objective-C: `objc_object<P>*` is `id<P>`.
        self.add(Node::Vendor(of, text, arguments))
    }

    pub(super) fn decltype(&mut self) -> Parsed<NodeId> {
        if !self.eat("Dt") {
            self.expect("DT")?;
        }
        let of = self.expression()?;
        self.expect("E")?;
        self.add(Node::Expression(Expression::Decltype(of)))
    }

    fn vector(&mut self) -> Parsed<NodeId> {
        self.expect("Dv")?;
        let size = match self.peek()? {
            b'1'..=b'9' => {
                let number = self.number(false)?;
                Some(self.name(number)?)
            }
            b'_' => None,
            _ => Some(self.expression()?),
        };
        self.expect("_")?;
        if self.eat("p") {
            let pixel = self.name("pixel")?;
            return self.add(Node::Vector(pixel, size));
        }
        let of = self.kind()?;
        self.add(Node::Vector(of, size))
    }

    fn array(&mut self) -> Parsed<NodeId> {
        self.expect("A")?;
        let size = match self.peek()? {
            b'0'..=b'9' => {
                let number = self.number(false)?;
                Some(self.name(number)?)
            }
            b'_' => None,
            _ => Some(self.expression()?),
        };
        self.expect("_")?;
        let of = self.kind()?;
        self.add(Node::Array(of, size))
    }

    fn function(&mut self) -> Parsed<NodeId> {
        let mut signature = Signature {
            qualifiers: self.qualifiers(),
            ..Signature::default()
        };
        if self.eat("Do") {
            signature.exceptions = Some(self.name("noexcept")?);
        } else if self.eat("DO") {
            let condition = self.expression()?;
            self.expect("E")?;
            signature.exceptions = Some(self.add(Node::Noexcept(condition))?);
        } else if self.eat("Dw") {
            let mut kinds = Vec::new();
            while !self.eat("E") {
                kinds.push(self.kind()?);
            }
            signature.exceptions = Some(self.add(Node::Throw(kinds))?);
        }
        // Functions that are safe for transactions.
        self.eat("Dx");
        self.expect("F")?;
        // `extern "C"`.
        self.eat("Y");
        signature.result = Some(self.kind()?);
        loop {
            if self.eat("E") {
                break;
            }
            if self.eat("v") {
                continue;
            }
            if self.eat("RE") {
                signature.reference = ReferenceQualifier::Left;
                break;
            }
            if self.eat("OE") {
                signature.reference = ReferenceQualifier::Right;
                break;
            }
            signature.parameters.push(self.kind()?);
        }
        self.add(Node::Function(signature))
    }

    /// Remembers that the last substitution is the template parameter that was read from `start` on.
    pub(super) fn is_parameter(&mut self, start: usize) {
        let number = self.text.get(start + 1..self.at).and_then(parameter_number);
        let last = self.substitutions.len().checked_sub(1);
        self.substituted_parameters.extend(last.zip(number));
    }

    /// `T_` and the like.
    pub(super) fn template_parameter(&mut self) -> Parsed<NodeId> {
        self.expect("T")?;
        let mut level = 0;
        if self.eat("L") {
            level = self.optional_number()? + 1;
        }
        let number = self.optional_number()?;
        if self.forward_parameters && level == 0 {
            let node = self.add(Node::Forward(None))?;
            self.forward.push((node, number));
            return Some(node);
        }
        let found = self
            .parameters
            .get(level)
            .and_then(|level| level.get(number));
        match found {
            Some(&argument) => Some(argument),
            None if self.lambda_level == Some(level) => {
                // Parameters of a generic lambda that have no declared type.
                if level == self.parameters.len() {
                    self.parameters.push(Vec::new());
                }
                self.add(Node::Auto(number + 1))
            }
            None => None,
        }
    }

    /// `S_` and the like, and the classes that have letters of their own.
    pub(super) fn substitution(&mut self) -> Parsed<NodeId> {
        self.expect("S")?;
        let letter = self.peek()?;
        if letter.is_ascii_lowercase() {
            let &(_, text, name, arguments) = ABBREVIATIONS.iter().find(|it| it.0 == letter)?;
            self.at += 1;
            let node = self.add(Node::Abbreviation(text, name, arguments))?;
            if self.peek() != Some(b'B') {
                return Some(node);
            }
            let mut tagged = node;
            while self.eat("B") {
                let tag = self.source_text()?;
                tagged = self.add(Node::Tagged(tagged, tag))?;
            }
            return Some(self.substitutable(tagged));
        }
        let number = self.sequence_id()?;
        // A template parameter stands for the argument of the function at hand, also if it was first used in another
        // function, whose local type is an argument.
        let parameter = self.substituted_parameters.get(&number);
        let own = parameter.and_then(|parameter| self.parameters.first()?.get(*parameter));
        own.or_else(|| self.substitutions.get(number)).copied()
    }

    /// Template arguments. If they are those of the entity, template parameters stand for them from here on.
    pub(super) fn arguments(&mut self, of_entity: bool) -> Parsed<NodeId> {
        self.deeper(|parser| {
            parser.expect("I")?;
            let before = std::mem::replace(&mut parser.arguments_of_types, true);
            if of_entity {
                parser.parameters = vec![Vec::new()];
            }
            let mut list = Vec::new();
            let mut constraint = None;
            loop {
                if parser.eat("E") {
                    break;
                }
                if parser.eat("Q") {
                    constraint = Some(parser.expression()?);
                    parser.expect("E")?;
                    break;
                }
                if of_entity {
                    let argument = parser.argument()?;
                    let stands_for = match parser.tree.get(argument) {
                        Node::Pack(all) => {
                            let all = all.clone();
                            parser.add(Node::PackParameter(all))?
                        }
                        _ => argument,
                    };
                    parser.parameters.first_mut()?.push(stands_for);
                    list.push(argument);
                } else {
                    list.push(parser.argument()?);
                }
            }
            parser.arguments_of_types = before;
            parser.add(Node::Arguments(list, constraint))
        })
    }

    pub(super) fn argument(&mut self) -> Parsed<NodeId> {
        self.deeper(|parser| match parser.peek()? {
            b'X' => {
                parser.at += 1;
                let found = parser.expression()?;
                parser.expect("E")?;
                Some(found)
            }
            // GCC wrote `I` for packs before it wrote `J`.
            b'J' | b'I' => {
                parser.at += 1;
                let mut list = Vec::new();
                while !parser.eat("E") {
                    list.push(parser.argument()?);
                }
                parser.add(Node::Pack(list))
            }
            b'L' => {
                // A local name is `LZ encoding E`.
                if parser.peek_at(1) == Some(b'Z') {
                    parser.at += 2;
                    let found = parser.encoding()?;
                    parser.expect("E")?;
                    return Some(found);
                }
                parser.literal()
            }
            b'T' if matches!(parser.peek_at(1), Some(b'n' | b't' | b'p' | b'k')) => {
                let level = parser.parameters.len();
                parser.parameters.push(Vec::new());
                parser.declaration()?;
                parser.parameters.truncate(level);
                parser.argument()
            }
            _ => parser.kind(),
        })
    }

    /// A literal, or an entity as an argument.
    pub(super) fn literal(&mut self) -> Parsed<NodeId> {
        self.expect("L")?;
        let letter = self.peek()?;
        if self.eat("_Z") {
            let found = self.encoding()?;
            self.expect("E")?;
            return Some(found);
        }
        if let Some(suffix) = suffix(letter) {
            self.at += 1;
            let number = self.number(true)?;
            self.expect("E")?;
            return self.add(Node::Expression(Expression::Integer(number, suffix)));
        }
        if self.eat("b0E") {
            return self.add(Node::Expression(Expression::Text("false")));
        }
        if self.eat("b1E") {
            return self.add(Node::Expression(Expression::Text("true")));
        }
        if self.eat("DnE") || self.eat("Dn0E") {
            return self.add(Node::Expression(Expression::Null));
        }
        let float = match letter {
            b'f' => Some((FloatKind::Float, 8)),
            b'd' => Some((FloatKind::Double, 16)),
            b'e' => Some((FloatKind::LongDouble, 20)),
            _ => None,
        };
        if let Some((kind, digits)) = float {
            self.at += 1;
            let text = std::str::from_utf8(self.text.get(self.at..self.at + digits)?).ok()?;
            if !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return None;
            }
            self.at += digits;
            self.expect("E")?;
            return self.add(Node::Expression(Expression::Float(text, kind)));
        }
        if letter == b'U' {
            let lambda = self.kind()?;
            self.expect("E")?;
            return self.add(Node::Expression(Expression::Lambda(lambda)));
        }
        let kind = self.kind()?;
        if self.eat("E") {
            return self.add(Node::Expression(Expression::String(kind)));
        }
        let number = self.number(true)?;
        self.expect("E")?;
        self.add(Node::Expression(Expression::Cast(kind, number)))
    }
}
