//! Reads the names of entities: functions, variables, and what compilers make for them.
use super::nodes::{Node, NodeId, Qualifiers, ReferenceQualifier, Signature};
use super::{Parsed, Parser};

/// What a name says about the function that it names.
#[derive(Clone, Copy, Default)]
pub(super) struct NameFacts {
    /// A constructor, destructor or conversion operator, whose type has no result.
    without_result: bool,
    ends_with_arguments: bool,
    qualifiers: Qualifiers,
    reference: ReferenceQualifier,
    /// The number of parameters that had been used before their arguments when the name began.
    forward: usize,
    /// Whether the function has an explicit `this`.
    explicit_this: bool,
    /// Whether it is the name of the whole entity, whose template parameters stand for its arguments.
    is_entity: bool,
}

impl NameFacts {
    pub(super) fn is_entity(&self) -> bool {
        self.is_entity
    }

    pub(super) fn set_without_result(&mut self) {
        self.without_result = true;
    }
}

/// Prefixes of entities that have one name or type after them: LLVM's words and GNU's.
const SPECIAL_TYPES: [(&str, &str, &str); 4] = [
    ("TV", "vtable for ", "vtable for "),
    ("TT", "VTT for ", "VTT for "),
    ("TI", "typeinfo for ", "typeinfo for "),
    ("TS", "typeinfo name for ", "typeinfo name for "),
];

const SPECIAL_NAMES: [(&str, &str, &str); 4] = [
    ("GV", "guard variable for ", "guard variable for "),
    (
        "TH",
        "thread-local initialization routine for ",
        "TLS init function for ",
    ),
    (
        "TW",
        "thread-local wrapper routine for ",
        "TLS wrapper function for ",
    ),
    ("GI", "initializer for module ", "initializer for module "),
];

impl<'a> Parser<'a> {
    /// A function with its type, a variable, or a special entity.
    pub(super) fn encoding(&mut self) -> Parsed<NodeId> {
        // Template parameters in a local function belong to that function.
        let outer = std::mem::take(&mut self.parameters);
        let found = self.deeper(Self::encoding_inside);
        self.parameters = outer;
        found
    }

    fn encoding_inside(&mut self) -> Parsed<NodeId> {
        if matches!(self.peek()?, b'T' | b'G') {
            return self.special();
        }
        let mut facts = NameFacts {
            forward: self.forward.len(),
            is_entity: true,
            ..NameFacts::default()
        };
        let name = self.entity(&mut facts)?;
        self.resolve_forward(facts.forward)?;
        if self.ends_encoding() {
            return Some(name);
        }
        let attributes = self.attributes()?;
        let mut signature = Signature {
            qualifiers: facts.qualifiers,
            reference: facts.reference,
            attributes,
            ..Signature::default()
        };
        if facts.ends_with_arguments && !facts.without_result {
            signature.result = Some(self.kind()?);
        }
        if !self.eat("v") {
            loop {
                let mut parameter = self.kind()?;
                if facts.explicit_this && signature.parameters.is_empty() {
                    parameter = self.add(Node::Elaborated("this", parameter))?;
                }
                signature.parameters.push(parameter);
                if self.ends_encoding() || self.peek() == Some(b'Q') {
                    break;
                }
            }
        }
        if self.eat("Q") {
            signature.requires = Some(self.expression()?);
        }
        self.add(Node::Encoding(name, signature))
    }

    fn ends_encoding(&self) -> bool {
        matches!(self.peek(), None | Some(b'E' | b'.' | b'_'))
    }

    fn attributes(&mut self) -> Parsed<Option<NodeId>> {
        if !self.eat("Ua9enable_ifI") {
            return Some(None);
        }
        let mut list = Vec::new();
        while !self.eat("E") {
            list.push(self.argument()?);
        }
        self.add(Node::Arguments(list, None)).map(Some)
    }

    /// Gives the parameters that were used before their arguments what they stand for.
    fn resolve_forward(&mut self, from: usize) -> Parsed<()> {
        let waiting = self.forward.split_off(from.min(self.forward.len()));
        for (node, number) in waiting {
            let argument = *self.parameters.first()?.get(number)?;
            self.tree.set(node, Node::Forward(Some(argument)));
        }
        Some(())
    }

    fn special(&mut self) -> Parsed<NodeId> {
        for (prefix, llvm, gnu) in SPECIAL_TYPES {
            if self.eat(prefix) {
                let kind = self.kind()?;
                return self.add(Node::Special(llvm, gnu, kind));
            }
        }
        for (prefix, llvm, gnu) in SPECIAL_NAMES {
            if self.eat(prefix) {
                let name = self.entity(&mut NameFacts::default())?;
                return self.add(Node::Special(llvm, gnu, name));
            }
        }
        if self.eat("GR") {
            let name = self.entity(&mut NameFacts::default())?;
            // GNU's tools print a number, which has been in the symbol since GCC 5.
            if !self.at_end() {
                self.sequence_id()?;
            }
            let text = "reference temporary for ";
            return self.add(Node::Special(text, text, name));
        }
        if self.eat("GTt") || self.eat("GTn") {
            let name = self.encoding()?;
            let text = "transaction clone for ";
            return self.add(Node::Special(text, text, name));
        }
        if self.eat("TA") {
            let argument = self.argument()?;
            let text = "template parameter object for ";
            return self.add(Node::Special(text, text, argument));
        }
        if self.eat("TC") {
            let within = self.kind()?;
            self.number(true)?;
            self.expect("_")?;
            let of = self.kind()?;
            return self.add(Node::ConstructionTable(of, within));
        }
        self.expect("T")?;
        let text = match self.peek()? {
            b'c' => {
                self.at += 1;
                self.offset()?;
                self.offset()?;
                "covariant return thunk to "
            }
            letter => {
                self.offset()?;
                match letter {
                    b'v' => "virtual thunk to ",
                    _ => "non-virtual thunk to ",
                }
            }
        };
        let of = self.encoding()?;
        self.add(Node::Special(text, text, of))
    }

    fn at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// The offset of a thunk.
    fn offset(&mut self) -> Parsed<()> {
        match self.next()? {
            b'h' => {
                self.number(true)?;
            }
            b'v' => {
                self.number(true)?;
                self.expect("_")?;
                self.number(true)?;
            }
            _ => return None,
        }
        self.expect("_")
    }

    /// The name of an entity, without its type.
    pub(super) fn entity(&mut self, facts: &mut NameFacts) -> Parsed<NodeId> {
        self.deeper(|parser| parser.entity_inside(facts))
    }

    fn entity_inside(&mut self, facts: &mut NameFacts) -> Parsed<NodeId> {
        match self.peek()? {
            b'N' => return self.nested(Some(facts)),
            b'Z' => return self.local(facts),
            _ => {}
        }
        // A substitution that is the name of a template, or else a name without scope.
        let is_substitution = self.peek() == Some(b'S') && self.peek_at(1) != Some(b't');
        if is_substitution {
            let name = self.substitution()?;
            if self.peek() != Some(b'I') {
                return None;
            }
            let arguments = self.arguments(true)?;
            facts.ends_with_arguments = true;
            return self.add(Node::Template(name, arguments));
        }
        let name = self.unscoped(facts)?;
        if self.peek() != Some(b'I') {
            return Some(name);
        }
        self.substitutable(name);
        let arguments = self.arguments(true)?;
        facts.ends_with_arguments = true;
        self.add(Node::Template(name, arguments))
    }

    fn unscoped(&mut self, facts: &mut NameFacts) -> Parsed<NodeId> {
        let scope = if self.eat("St") {
            Some(self.name("std")?)
        } else {
            None
        };
        self.unqualified(scope, facts)
    }

    /// A nested name: scopes, and the entity in them. `facts` is `None` for the name of a type.
    pub(super) fn nested(&mut self, facts: Option<&mut NameFacts>) -> Parsed<NodeId> {
        self.expect("N")?;
        let is_entity = facts.is_some();
        let mut own = NameFacts {
            is_entity,
            ..NameFacts::default()
        };
        if self.eat("H") {
            own.explicit_this = true;
        } else {
            own.qualifiers = self.qualifiers();
            own.reference = match self.peek()? {
                b'O' => ReferenceQualifier::Right,
                b'R' => ReferenceQualifier::Left,
                _ => ReferenceQualifier::None,
            };
            self.at += usize::from(own.reference != ReferenceQualifier::None);
        }
        let mut so_far: Option<NodeId> = None;
        while !self.eat("E") {
            own.ends_with_arguments = false;
            if self.peek() == Some(b'T') {
                if so_far.is_some() {
                    return None;
                }
                let start = self.at;
                let parameter = self.template_parameter()?;
                self.substitutable(parameter);
                self.is_parameter(start);
                so_far = Some(parameter);
                continue;
            } else if self.peek() == Some(b'I') {
                let name = so_far?;
                if matches!(self.tree.get(name), Node::Template(..)) {
                    return None;
                }
                let arguments = self.arguments(is_entity)?;
                own.ends_with_arguments = true;
                so_far = Some(self.add(Node::Template(name, arguments))?);
            } else if self.looks_at("Dt") || self.looks_at("DT") {
                if so_far.is_some() {
                    return None;
                }
                so_far = Some(self.decltype()?);
            } else if self.peek() == Some(b'S') {
                if so_far.is_some() {
                    return None;
                }
                if self.eat("St") {
                    // `std` alone is no substitution.
                    so_far = Some(self.name("std")?);
                    continue;
                }
                let found = self.substitution()?;
                so_far = Some(found);
                continue;
            } else {
                so_far = Some(self.unqualified(so_far, &mut own)?);
            }
            self.substitutable(so_far?);
            // The closure of a member's initializer stands in the scope of the member.
            self.eat("M");
        }
        // The whole name is no prefix of another name; as a type it is added again.
        self.substitutions.pop()?;
        if let Some(facts) = facts {
            *facts = NameFacts {
                forward: facts.forward,
                ..own
            };
        }
        so_far
    }

    /// A name in a scope, with its tags.
    pub(super) fn unqualified(
        &mut self,
        mut scope: Option<NodeId>,
        facts: &mut NameFacts,
    ) -> Parsed<NodeId> {
        let mut module = None;
        while self.eat("W") {
            self.eat("P");
            module = Some(self.source_text()?);
        }
        let is_friend = scope.is_some() && self.eat("F");
        self.eat("L");
        let first = self.peek()?;
        let mut name = match first {
            b'1'..=b'9' => self.source_name()?,
            b'U' => self.unnamed()?,
            b'D' if self.eat("DC") => {
                let mut bindings = Vec::new();
                while !self.eat("E") {
                    bindings.push(self.source_name()?);
                }
                self.add(Node::Binding(bindings))?
            }
            b'C' | b'D' => {
                facts.without_result = true;
                if let Node::Abbreviation(_, name, arguments) = *self.tree.get(scope?) {
                    scope = Some(self.add(Node::Expanded(name, arguments))?);
                }
                self.constructor(scope?)?
            }
            _ => self.operator(facts)?,
        };
        if let Some(module) = module {
            name = self.add(Node::Module(name, module))?;
        }
        while self.eat("B") {
            let tag = self.source_text()?;
            name = self.add(Node::Tagged(name, tag))?;
        }
        if is_friend {
            name = self.add(Node::Friend(name))?;
        }
        match scope {
            Some(scope) => self.add(Node::Nested(scope, name)),
            None => Some(name),
        }
    }

    fn constructor(&mut self, class: NodeId) -> Parsed<NodeId> {
        let is_constructor = match self.next()? {
            b'C' => {
                let inherits = self.eat("I");
                if !matches!(self.next()?, b'1'..=b'5') {
                    return None;
                }
                if inherits {
                    self.entity(&mut NameFacts::default())?;
                }
                true
            }
            _ => {
                if !matches!(self.next()?, b'0'..=b'5') {
                    return None;
                }
                false
            }
        };
        match is_constructor {
            true => self.add(Node::Constructor(class)),
            false => self.add(Node::Destructor(class)),
        }
    }

    /// The text of a name with its length before it.
    pub(super) fn source_text(&mut self) -> Parsed<&'a str> {
        let len = self.length()?;
        let end = self.at.checked_add(len).filter(|_| len > 0)?;
        let text = std::str::from_utf8(self.text.get(self.at..end)?).ok()?;
        self.at = end;
        Some(text)
    }

    pub(super) fn source_name(&mut self) -> Parsed<NodeId> {
        let text = self.source_text()?;
        match text.starts_with("_GLOBAL__N") {
            true => self.name("(anonymous namespace)"),
            false => self.name(text),
        }
    }

    /// A type without a name, a lambda or a block.
    fn unnamed(&mut self) -> Parsed<NodeId> {
        if self.eat("Ut") {
            let number = self.optional_digits()?;
            return self.add(Node::Unnamed(number));
        }
        if self.eat("Ub") {
            self.optional_digits()?;
            return self.name("'block-literal'");
        }
        self.expect("Ul")?;
        let level = self.parameters.len();
        let before = self.lambda_level.replace(level);
        self.parameters.push(Vec::new());
        let found = self.lambda();
        self.parameters.truncate(level);
        self.lambda_level = before;
        found
    }

    fn lambda(&mut self) -> Parsed<NodeId> {
        let mut declarations = Vec::new();
        while self.peek() == Some(b'T')
            && matches!(self.peek_at(1), Some(b'y' | b'p' | b't' | b'n' | b'k'))
        {
            declarations.push(self.declaration()?);
        }
        if declarations.is_empty() {
            // Without declared parameters, `T_` in the parameters is `auto`.
            self.parameters.pop();
        }
        if self.eat("Q") {
            self.expression()?;
        }
        let mut parameters = Vec::new();
        if !self.eat("v") {
            while !matches!(self.peek()?, b'E' | b'Q') {
                parameters.push(self.kind()?);
            }
        }
        if self.eat("Q") {
            self.expression()?;
        }
        self.expect("E")?;
        let number = self.optional_digits()?;
        self.add(Node::Lambda(declarations, parameters, number))
    }

    /// Digits up to `_`.
    fn optional_digits(&mut self) -> Parsed<&'a str> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        let digits = std::str::from_utf8(self.text.get(start..self.at)?).ok()?;
        self.expect("_")?;
        Some(digits)
    }

    /// The declaration of a template parameter of a lambda.
    pub(super) fn declaration(&mut self) -> Parsed<NodeId> {
        self.deeper(|parser| {
            if parser.eat("Tp") {
                let declared = parser.declaration()?;
                return parser.add(Node::Declaration(declared, true));
            }
            let (kind, of) = if parser.eat("Ty") {
                ("$T", None)
            } else if parser.eat("Tk") {
                parser.entity(&mut NameFacts::default())?;
                ("$T", None)
            } else if parser.eat("Tn") {
                ("$N", Some(parser.kind()?))
            } else if parser.eat("Tt") {
                let level = parser.parameters.len();
                parser.parameters.push(Vec::new());
                while !parser.eat("E") {
                    parser.declaration()?;
                }
                parser.parameters.truncate(level);
                ("$TT", None)
            } else {
                return None;
            };
            let level = parser.parameters.last()?.clone();
            let same = |id: &&NodeId| matches!(parser.tree.get(**id), Node::Declared(other, ..) if *other == kind);
            let number = level.iter().filter(same).count();
            let declared = parser.add(Node::Declared(kind, number, of))?;
            parser.parameters.last_mut()?.push(declared);
            parser.add(Node::Declaration(declared, false))
        })
    }

    /// An entity in a function.
    fn local(&mut self, facts: &mut NameFacts) -> Parsed<NodeId> {
        self.expect("Z")?;
        let function = self.encoding()?;
        self.expect("E")?;
        if self.eat("s") {
            self.discriminator();
            let text = self.name("string literal")?;
            return self.add(Node::Local(function, text));
        }
        let scope = match self.eat("d") {
            true => {
                let number = self.optional_number()?;
                let argument = self.add(Node::DefaultArgument(number + 1))?;
                self.add(Node::Local(function, argument))?
            }
            false => function,
        };
        let entity = self.entity(facts)?;
        self.discriminator();
        self.add(Node::Local(scope, entity))
    }

    /// The number that distinguishes entities of the same name in a function.
    fn discriminator(&mut self) {
        let start = self.at;
        if self.eat("__") {
            if self.number(false).is_none() || !self.eat("_") {
                self.at = start;
            }
        } else if self.eat("_") && !self.next().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at = start;
        }
    }
}
