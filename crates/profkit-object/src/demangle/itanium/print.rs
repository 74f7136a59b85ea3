//! Prints names. A type that stands around a declarator, as `void (*)()`, has a left and a right part.
use super::nodes::{
    Expression, FloatKind, Node, NodeId, Qualifiers, ReferenceQualifier, Signature, Tree,
};
use super::{DEEPEST, MOST_NODES, Style};
use std::fmt;

/// No expansion of a pack is being printed, or nothing is known yet about the pack of the one that is.
const UNKNOWN: usize = usize::MAX;

/// How tightly parts of an expression are bound, tightest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Primary,
    Postfix,
    Unary,
    Cast,
    Product,
    Sum,
    Shift,
    Spaceship,
    Relation,
    Equality,
    And,
    Xor,
    Or,
    AndIf,
    OrIf,
    Conditional,
    Assignment,
    Comma,
}

fn binding_of(sign: &str) -> Binding {
    match sign {
        "*" | "/" | "%" => Binding::Product,
        "+" | "-" => Binding::Sum,
        "<<" | ">>" => Binding::Shift,
        "<=>" => Binding::Spaceship,
        "<" | ">" | "<=" | ">=" => Binding::Relation,
        "==" | "!=" => Binding::Equality,
        "&" => Binding::And,
        "^" => Binding::Xor,
        "|" => Binding::Or,
        "&&" => Binding::AndIf,
        "||" => Binding::OrIf,
        "," => Binding::Comma,
        _ => Binding::Assignment,
    }
}

struct Printer<'t, 'a> {
    tree: &'t Tree<'a>,
    style: Style,
    out: String,
    depth: u32,
    steps: usize,
    /// Which argument of a pack is printed, and how many the pack has.
    pack: (usize, usize),
    /// How many brackets are open since the last `<`: inside of brackets, `>` is an operator.
    brackets: usize,
    /// Whether functions are printed with the types of their results. GNU's tools leave them out of the functions around
    /// local entities.
    results: bool,
}

/// Whether printing may go on; it ends at the limits.
type Printed = Option<()>;

pub(super) fn print(
    tree: &Tree<'_>,
    root: NodeId,
    style: Style,
    out: &mut impl fmt::Write,
) -> Option<()> {
    let mut printer = Printer {
        tree,
        style,
        out: String::new(),
        depth: 0,
        steps: 0,
        pack: (UNKNOWN, UNKNOWN),
        brackets: 1,
        results: true,
    };
    printer.whole(root)?;
    out.write_str(&printer.out).ok()
}

impl<'t, 'a> Printer<'t, 'a> {
    fn gnu(&self) -> bool {
        self.style == Style::Gnu
    }

    fn text(&mut self, text: &str) -> Printed {
        self.out.push_str(text);
        (self.out.len() <= super::super::MOST).then_some(())
    }

    fn open(&mut self) -> Printed {
        self.brackets += 1;
        self.text("(")
    }

    fn close(&mut self) -> Printed {
        self.brackets = self.brackets.saturating_sub(1);
        self.text(")")
    }

    fn step<T>(&mut self, print: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        self.steps += 1;
        let done = match self.depth <= 4 * DEEPEST && self.steps <= MOST_NODES {
            true => print(self),
            false => None,
        };
        self.depth -= 1;
        done
    }

    fn whole(&mut self, id: NodeId) -> Printed {
        self.left(id)?;
        self.right(id)
    }

    /// What an argument or a parameter of a pack stands for.
    fn meaning(&mut self, mut id: NodeId) -> NodeId {
        for _ in 0..DEEPEST {
            id = match self.tree.get(id) {
                Node::Forward(Some(target)) => *target,
                Node::PackParameter(all) => match self.of_pack(all) {
                    Some(one) => one,
                    None => return id,
                },
                _ => return id,
            };
        }
        id
    }

    /// The argument of a pack that is printed.
    fn of_pack(&mut self, all: &[NodeId]) -> Option<NodeId> {
        if self.pack.1 == UNKNOWN {
            self.pack = (0, all.len());
        }
        all.get(self.pack.0).copied()
    }

    fn is_array(&mut self, id: NodeId) -> bool {
        let id = self.meaning(id);
        match self.tree.get(id) {
            Node::Array(..) => true,
            Node::Qualified(of, _) => {
                let of = *of;
                self.step(|printer| Some(printer.is_array(of)))
                    .unwrap_or(false)
            }
            _ => false,
        }
    }

    fn is_function(&mut self, id: NodeId) -> bool {
        let id = self.meaning(id);
        match self.tree.get(id) {
            Node::Function(_) | Node::Encoding(..) => true,
            Node::Qualified(of, _) => {
                let of = *of;
                self.step(|printer| Some(printer.is_function(of)))
                    .unwrap_or(false)
            }
            _ => false,
        }
    }

    /// Whether a type has a part after the declarator.
    fn has_right(&mut self, id: NodeId) -> bool {
        let id = self.meaning(id);
        let of = match self.tree.get(id) {
            Node::Array(..) | Node::Function(_) | Node::Encoding(..) => return true,
            Node::Qualified(of, _)
            | Node::Pointer(of)
            | Node::Reference(of, _)
            | Node::MemberPointer(_, of) => *of,
            _ => return false,
        };
        self.step(|printer| Some(printer.has_right(of)))
            .unwrap_or(false)
    }

    /// A list with commas. Parts that print nothing, as empty packs, have no comma.
    fn list(&mut self, list: &[NodeId]) -> Printed {
        let mut is_first = true;
        for &one in list {
            let before = self.out.len();
            if !is_first {
                self.text(", ")?;
            }
            let after_comma = self.out.len();
            self.operand(one, Binding::Comma, false)?;
            if self.out.len() == after_comma {
                self.out.truncate(before);
            } else {
                is_first = false;
            }
        }
        Some(())
    }

    fn qualifiers(&mut self, of: Qualifiers) -> Printed {
        for (is_set, text) in [
            (of.constant, " const"),
            (of.volatile, " volatile"),
            (of.restrict, " restrict"),
        ] {
            if is_set {
                // GNU's tools write the word of their compiler.
                let text = if text == " restrict" && self.gnu() {
                    " __restrict"
                } else {
                    text
                };
                self.text(text)?;
            }
        }
        Some(())
    }

    fn after_parameters(&mut self, signature: &Signature) -> Printed {
        self.qualifiers(signature.qualifiers)?;
        match signature.reference {
            ReferenceQualifier::None => {}
            ReferenceQualifier::Left => self.text(" &")?,
            ReferenceQualifier::Right => self.text(" &&")?,
        }
        if let Some(exceptions) = signature.exceptions {
            self.text(" ")?;
            self.whole(exceptions)?;
        }
        if let Some(attributes) = signature.attributes {
            self.text(" [enable_if:")?;
            if let Node::Arguments(list, _) = self.tree.get(attributes) {
                let list = list.clone();
                self.list(&list)?;
            }
            self.text("]")?;
        }
        if let Some(requires) = signature.requires {
            self.text(" requires ")?;
            self.whole(requires)?;
        }
        Some(())
    }

    /// The type that a reference to references is, as `T&& &` is `T&`.
    fn collapsed(&mut self, of: NodeId, kind: ReferenceQualifier) -> (NodeId, ReferenceQualifier) {
        let (mut of, mut kind) = (of, kind);
        for _ in 0..DEEPEST {
            let meant = self.meaning(of);
            match self.tree.get(meant) {
                Node::Reference(inner, inner_kind) => {
                    if *inner_kind == ReferenceQualifier::Left {
                        kind = ReferenceQualifier::Left;
                    }
                    of = *inner;
                }
                _ => break,
            }
        }
        (of, kind)
    }

    fn left(&mut self, id: NodeId) -> Printed {
        self.step(|printer| printer.left_of(id))
    }

    fn left_of(&mut self, id: NodeId) -> Printed {
        let tree = self.tree;
        match tree.get(id) {
            Node::Name(text) => {
                let text = match *text {
                    "std::nullptr_t" if self.gnu() => "decltype(nullptr)",
                    text => text,
                };
                self.text(text)
            }
            Node::Joined(before, middle, after) => {
                self.text(before)?;
                self.text(middle)?;
                self.text(after)
            }
            Node::Nested(scope, name) => {
                self.whole(*scope)?;
                self.text("::")?;
                self.whole(*name)
            }
            Node::Local(scope, name) => {
                let is_llvm = !self.gnu();
                let results = std::mem::replace(&mut self.results, is_llvm);
                self.whole(*scope)?;
                self.results = results;
                // LLVM's tools leave out default arguments.
                if !self.gnu() && matches!(tree.get(*name), Node::DefaultArgument(_)) {
                    return Some(());
                }
                self.text("::")?;
                self.whole(*name)
            }
            Node::DefaultArgument(number) => self.text(&format!("{{default arg#{number}}}")),
            Node::Global(name) => {
                self.text("::")?;
                self.whole(*name)
            }
            Node::Template(name, arguments) => {
                self.whole(*name)?;
                self.whole(*arguments)
            }
            Node::Arguments(list, constraint) => {
                if self.gnu() && self.out.ends_with('<') {
                    self.text(" ")?;
                }
                self.text("<")?;
                let brackets = std::mem::replace(&mut self.brackets, 0);
                self.list(list)?;
                if let Some(constraint) = constraint {
                    self.text(" requires ")?;
                    self.whole(*constraint)?;
                }
                self.brackets = brackets;
                if self.gnu() && self.out.ends_with('>') {
                    self.text(" ")?;
                }
                self.text(">")
            }
            Node::Pack(list) => self.list(list),
            Node::PackParameter(all) => match self.of_pack(all) {
                Some(one) => self.left(one),
                None => Some(()),
            },
            Node::Expansion(pattern) => self.expansion(*pattern),
            Node::Forward(target) => match target {
                Some(target) => self.left(*target),
                None => None,
            },
            Node::Qualified(of, qualifiers) => {
                self.left(*of)?;
                let mut own = *qualifiers;
                let meant = self.meaning(*of);
                if let (true, Node::Qualified(_, inner)) = (self.gnu(), tree.get(meant)) {
                    // LLVM's tools repeat what an argument has already.
                    own.constant &= !inner.constant;
                    own.volatile &= !inner.volatile;
                    own.restrict &= !inner.restrict;
                }
                self.qualifiers(own)
            }
            Node::Vendor(of, text, arguments) => {
                self.whole(*of)?;
                self.text(" ")?;
                self.text(text)?;
                match arguments {
                    Some(arguments) => self.whole(*arguments),
                    None => Some(()),
                }
            }
            Node::Suffixed(of, word) => {
                self.left(*of)?;
                match (self.gnu(), *word) {
                    (true, " complex") => self.text(" _Complex"),
                    (true, " imaginary") => self.text(" _Imaginary"),
                    (_, word) => self.text(word),
                }
            }
            Node::Pointer(of) => {
                self.left(*of)?;
                self.before_declarator(*of)?;
                self.text("*")
            }
            Node::Reference(of, kind) => {
                let (of, kind) = self.collapsed(*of, *kind);
                self.left(of)?;
                self.before_declarator(of)?;
                self.text(match kind {
                    ReferenceQualifier::Left => "&",
                    _ => "&&",
                })
            }
            Node::MemberPointer(class, member) => {
                self.left(*member)?;
                match self.is_array(*member) || self.is_function(*member) {
                    true => self.text("(")?,
                    false => self.text(" ")?,
                }
                self.whole(*class)?;
                self.text("::*")
            }
            Node::Array(of, _) => self.left(*of),
            Node::Vector(of, size) => {
                self.whole(*of)?;
                self.text(if self.gnu() { " __vector(" } else { " vector[" })?;
                if let Some(size) = size {
                    self.whole(*size)?;
                }
                self.text(if self.gnu() { ")" } else { "]" })
            }
            Node::BitInt(size, is_signed) => {
                self.text(if *is_signed {
                    "_BitInt("
                } else {
                    "unsigned _BitInt("
                })?;
                self.whole(*size)?;
                self.text(")")
            }
            Node::Function(signature) => match signature.result {
                Some(result) => {
                    self.left(result)?;
                    self.text(" ")
                }
                None => Some(()),
            },
            Node::Encoding(name, signature) => {
                if let (Some(result), true) = (signature.result, self.results) {
                    self.left(result)?;
                    if !self.has_right(result) {
                        self.text(" ")?;
                    }
                }
                self.whole(*name)
            }
            Node::Elaborated(word, of) => {
                self.text(word)?;
                self.text(" ")?;
                self.whole(*of)
            }
            Node::Constructor(class) => self.base(*class),
            Node::Destructor(class) => {
                self.text("~")?;
                self.base(*class)
            }
            Node::Abbreviation(text, ..) => self.text(text),
            Node::Expanded(name, arguments) => {
                self.text("std::")?;
                self.text(name)?;
                match self.gnu() {
                    true => self.text(&arguments.replace(">>", "> >")),
                    false => self.text(arguments),
                }
            }
            Node::Operator(name) => self.text(name),
            Node::Conversion(kind) => {
                self.text("operator ")?;
                self.whole(*kind)
            }
            Node::LiteralOperator(name) => {
                self.text("operator\"\" ")?;
                self.whole(*name)
            }
            Node::Tagged(of, tag) => {
                self.whole(*of)?;
                self.text("[abi:")?;
                self.text(tag)?;
                self.text("]")
            }
            Node::Friend(of) => {
                self.text("friend ")?;
                self.whole(*of)
            }
            Node::Module(of, module) => {
                self.whole(*of)?;
                self.text("@")?;
                self.text(module)
            }
            Node::Lambda(declarations, parameters, number) => {
                self.lambda(declarations, parameters, number)
            }
            Node::Unnamed(number) => match self.gnu() {
                true => self.text(&format!("{{unnamed type#{}}}", gnu_number(number))),
                false => self.text(&format!("'unnamed{number}'")),
            },
            Node::Binding(names) => {
                self.text("[")?;
                self.list(names)?;
                self.text("]")
            }
            Node::Declared(kind, number, _) => {
                self.text(kind)?;
                match (self.gnu(), number) {
                    (false, 0) => Some(()),
                    (false, number) => self.text(&(number - 1).to_string()),
                    (true, number) => self.text(&number.to_string()),
                }
            }
            Node::Declaration(of, is_pack) => {
                if let Node::Declaration(inner, _) = tree.get(*of) {
                    return self.declaration(*inner, true);
                }
                self.declaration(*of, *is_pack)
            }
            Node::Special(llvm, gnu, of) => {
                self.text(if self.gnu() { gnu } else { llvm })?;
                self.whole(*of)
            }
            Node::ConstructionTable(of, within) => {
                self.text("construction vtable for ")?;
                self.whole(*of)?;
                self.text("-in-")?;
                self.whole(*within)
            }
            Node::Auto(number) => match self.gnu() {
                true => self.text(&format!("auto:{number}")),
                false => self.text("auto"),
            },
            Node::Noexcept(condition) => {
                self.text("noexcept")?;
                self.open()?;
                self.whole(*condition)?;
                self.close()
            }
            Node::Throw(kinds) => {
                self.text("throw")?;
                self.open()?;
                self.list(kinds)?;
                self.close()
            }
            Node::Expression(expression) => self.expression(expression),
        }
    }

    fn before_declarator(&mut self, of: NodeId) -> Printed {
        let (is_array, is_function) = (self.is_array(of), self.is_function(of));
        if is_array {
            self.text(" ")?;
        }
        if is_array || is_function {
            self.text("(")?;
        }
        Some(())
    }

    fn after_declarator(&mut self, of: NodeId) -> Printed {
        if self.is_array(of) || self.is_function(of) {
            self.text(")")?;
        }
        self.right(of)
    }

    fn right(&mut self, id: NodeId) -> Printed {
        self.step(|printer| printer.right_of(id))
    }

    fn right_of(&mut self, id: NodeId) -> Printed {
        let tree = self.tree;
        match tree.get(id) {
            Node::Qualified(of, _) => self.right(*of),
            Node::Pointer(of) => self.after_declarator(*of),
            Node::Reference(of, kind) => {
                let (of, _) = self.collapsed(*of, *kind);
                self.after_declarator(of)
            }
            Node::MemberPointer(_, member) => self.after_declarator(*member),
            Node::Array(of, size) => {
                if !self.out.ends_with(']') {
                    self.text(" ")?;
                }
                self.text("[")?;
                if let Some(size) = size {
                    self.whole(*size)?;
                }
                self.text("]")?;
                self.right(*of)
            }
            Node::Function(signature) => {
                self.open()?;
                self.list(&signature.parameters)?;
                self.close()?;
                if let Some(result) = signature.result {
                    self.right(result)?;
                }
                self.after_parameters(signature)
            }
            Node::Encoding(_, signature) => {
                // Local entities of this function have their own results.
                let results = std::mem::replace(&mut self.results, true);
                self.open()?;
                self.list(&signature.parameters)?;
                self.close()?;
                self.results = results;
                if let (Some(result), true) = (signature.result, self.results) {
                    self.right(result)?;
                }
                self.after_parameters(signature)
            }
            Node::PackParameter(all) => match self.of_pack(all) {
                Some(one) => self.right(one),
                None => Some(()),
            },
            Node::Forward(Some(target)) => self.right(*target),
            _ => Some(()),
        }
    }

    /// The name of a class without scopes and template arguments.
    fn base(&mut self, id: NodeId) -> Printed {
        let meant = self.meaning(id);
        match self.tree.get(meant) {
            Node::Nested(_, name)
            | Node::Template(name, _)
            | Node::Local(_, name)
            | Node::Tagged(name, _) => {
                let name = *name;
                self.step(|printer| printer.base(name))
            }
            Node::Abbreviation(_, name, _) | Node::Expanded(name, _) => self.text(name),
            _ => self.whole(meant),
        }
    }

    fn declaration(&mut self, of: NodeId, is_pack: bool) -> Printed {
        let Node::Declared(kind, _, value) = self.tree.get(of) else {
            return self.whole(of);
        };
        match (*kind, value) {
            (_, Some(value)) => self.whole(*value)?,
            ("$TT", _) => self.text("template<> typename")?,
            _ => self.text("typename")?,
        }
        self.text(if is_pack { " ..." } else { " " })?;
        self.whole(of)
    }

    fn lambda(&mut self, declarations: &[NodeId], parameters: &[NodeId], number: &str) -> Printed {
        match self.gnu() {
            true => self.text("{lambda")?,
            false => self.text(&format!("'lambda{number}'"))?,
        }
        if !declarations.is_empty() {
            self.text("<")?;
            self.list(declarations)?;
            self.text(">")?;
        }
        self.open()?;
        let results = std::mem::replace(&mut self.results, true);
        self.list(parameters)?;
        self.results = results;
        self.close()?;
        match self.gnu() {
            true => self.text(&format!("#{}}}", gnu_number(number))),
            false => Some(()),
        }
    }

    /// The pattern of an expansion, once for each argument of the pack.
    fn expansion(&mut self, pattern: NodeId) -> Printed {
        let outer = std::mem::replace(&mut self.pack, (UNKNOWN, UNKNOWN));
        let start = self.out.len();
        self.whole(pattern)?;
        match self.pack.1 {
            UNKNOWN => self.text("...")?,
            0 => self.out.truncate(start),
            count => {
                for index in 1..count {
                    self.text(", ")?;
                    self.pack.0 = index;
                    self.whole(pattern)?;
                }
            }
        }
        self.pack = outer;
        Some(())
    }

    fn binding(&self, id: NodeId) -> Binding {
        let Node::Expression(expression) = self.tree.get(id) else {
            return match self.tree.get(id) {
                Node::Forward(Some(target)) => match self.tree.get(*target) {
                    Node::Forward(_) => Binding::Primary,
                    _ => self.binding(*target),
                },
                _ => Binding::Primary,
            };
        };
        match expression {
            Expression::Prefix(..) => Binding::Unary,
            Expression::Postfix(..)
            | Expression::Subscript(..)
            | Expression::Call(..)
            | Expression::NamedCast(..)
            | Expression::Member(..) => Binding::Postfix,
            Expression::Binary(_, sign, _) => binding_of(sign),
            Expression::Conditional(..) => Binding::Conditional,
            Expression::Conversion(..) | Expression::Cast(..) => Binding::Cast,
            Expression::New { .. } | Expression::Delete(..) | Expression::Enclosed(..) => {
                Binding::Unary
            }
            _ => Binding::Primary,
        }
    }

    /// A part of an expression, in brackets if it is bound less tightly than what stands around it.
    fn operand(&mut self, id: NodeId, around: Binding, strictly: bool) -> Printed {
        let own = self.binding(id) as u8;
        let needs = own >= around as u8 + u8::from(strictly);
        if needs {
            self.open()?;
        }
        self.whole(id)?;
        if needs {
            self.close()?;
        }
        Some(())
    }

    fn expression(&mut self, expression: &Expression<'a>) -> Printed {
        match expression {
            Expression::Integer(number, suffix) => {
                self.integer(number)?;
                self.text(suffix)
            }
            Expression::Cast(kind, number) => {
                self.open()?;
                self.whole(*kind)?;
                self.close()?;
                self.integer(number)
            }
            Expression::Float(digits, kind) => self.float(digits, *kind),
            Expression::Text(text) => self.text(text),
            Expression::String(kind) => {
                self.text("\"<")?;
                self.whole(*kind)?;
                self.text(">\"")
            }
            Expression::Null => self.text("nullptr"),
            Expression::Prefix(sign, of) => {
                self.text(sign)?;
                self.operand(*of, Binding::Unary, false)
            }
            Expression::Postfix(of, sign) => {
                self.operand(*of, Binding::Postfix, true)?;
                self.text(sign)
            }
            Expression::Binary(first, sign, second) => {
                let in_brackets = self.brackets == 0 && matches!(*sign, ">" | ">>");
                if in_brackets {
                    self.open()?;
                }
                let around = binding_of(sign);
                let is_assignment = around == Binding::Assignment;
                self.operand(*first, around, !is_assignment)?;
                if *sign != "," {
                    self.text(" ")?;
                }
                self.text(sign)?;
                self.text(" ")?;
                self.operand(*second, around, is_assignment)?;
                if in_brackets {
                    self.close()?;
                }
                Some(())
            }
            Expression::Conditional(condition, then, otherwise) => {
                self.operand(*condition, Binding::Conditional, false)?;
                self.text(" ? ")?;
                self.whole(*then)?;
                self.text(" : ")?;
                self.operand(*otherwise, Binding::Assignment, true)
            }
            Expression::Subscript(of, index) => {
                self.operand(*of, Binding::Postfix, false)?;
                self.text("[")?;
                self.whole(*index)?;
                self.text("]")
            }
            Expression::Call(called, list) => {
                self.whole(*called)?;
                self.in_brackets(list)
            }
            Expression::Conversion(kind, list) => {
                self.open()?;
                self.whole(*kind)?;
                self.close()?;
                self.in_brackets(list)
            }
            Expression::NamedCast(word, kind, of) => {
                self.text(word)?;
                self.text("<")?;
                let brackets = std::mem::replace(&mut self.brackets, 0);
                self.left(*kind)?;
                self.brackets = brackets;
                self.text(">")?;
                self.open()?;
                self.whole(*of)?;
                self.close()
            }
            Expression::Braced(kind, list) => {
                if let Some(kind) = kind {
                    self.whole(*kind)?;
                }
                self.text("{")?;
                self.list(list)?;
                self.text("}")
            }
            Expression::Designated(name, value, is_index) => {
                self.text(if *is_index { "[" } else { "." })?;
                self.whole(*name)?;
                if *is_index {
                    self.text("]")?;
                }
                self.designated_value(*value)
            }
            Expression::DesignatedRange(from, to, value) => {
                self.text("[")?;
                self.whole(*from)?;
                self.text(" ... ")?;
                self.whole(*to)?;
                self.text("]")?;
                self.designated_value(*value)
            }
            Expression::Member(of, sign, member) => {
                self.operand(*of, Binding::Postfix, true)?;
                self.text(sign)?;
                self.operand(*member, Binding::Postfix, false)
            }
            Expression::New {
                arguments,
                kind,
                values,
                global,
                array,
            } => {
                self.text(if *global { "::new" } else { "new" })?;
                self.text(if *array { "[]" } else { "" })?;
                if !arguments.is_empty() {
                    self.in_brackets(arguments)?;
                }
                self.text(" ")?;
                self.whole(*kind)?;
                match values {
                    Some(values) => self.in_brackets(values),
                    None => Some(()),
                }
            }
            Expression::Delete(of, global, array) => {
                self.text(if *global { "::delete" } else { "delete" })?;
                self.text(if *array { "[] " } else { " " })?;
                self.whole(*of)
            }
            Expression::Enclosed(before, of, after) => {
                self.brackets += 1;
                self.text(before)?;
                self.whole(*of)?;
                self.brackets = self.brackets.saturating_sub(1);
                self.text(after)
            }
            Expression::SizeofPack(list) => {
                self.text("sizeof... ")?;
                self.in_brackets(list)
            }
            Expression::Throw(of) => {
                self.text("throw ")?;
                self.whole(*of)
            }
            Expression::Fold(sign, pack, initial, is_left) => {
                self.fold(sign, *pack, *initial, *is_left)
            }
            Expression::Parameter(number) => match self.gnu() {
                true => self.text(&format!("{{parm#{}}}", gnu_number(number))),
                false => {
                    self.text("fp")?;
                    self.text(number)
                }
            },
            Expression::Decltype(of) => {
                self.text(if self.gnu() {
                    "decltype ("
                } else {
                    "decltype("
                })?;
                self.brackets += 1;
                self.whole(*of)?;
                self.close()
            }
            Expression::Lambda(kind) => {
                self.text("[]")?;
                if let Node::Lambda(declarations, parameters, _) = self.tree.get(*kind) {
                    if !declarations.is_empty() {
                        self.text("<")?;
                        self.list(declarations)?;
                        self.text(">")?;
                    }
                    self.in_brackets(parameters)?;
                }
                self.text("{...}")
            }
            Expression::PointerToMemberConversion(kind, of) => {
                self.open()?;
                self.whole(*kind)?;
                self.close()?;
                self.open()?;
                self.whole(*of)?;
                self.close()
            }
            Expression::Vendor(name, list) => {
                self.whole(*name)?;
                self.in_brackets(list)
            }
        }
    }

    fn in_brackets(&mut self, list: &[NodeId]) -> Printed {
        self.open()?;
        self.list(list)?;
        self.close()
    }

    fn designated_value(&mut self, value: NodeId) -> Printed {
        let is_designated = matches!(
            self.tree.get(value),
            Node::Expression(Expression::Designated(..) | Expression::DesignatedRange(..))
        );
        if !is_designated {
            self.text(" = ")?;
        }
        self.whole(value)
    }

    fn fold(
        &mut self,
        sign: &str,
        pack: Option<NodeId>,
        initial: Option<NodeId>,
        is_left: bool,
    ) -> Printed {
        let print_pack = |printer: &mut Self| {
            printer.open()?;
            if let Some(pack) = pack {
                printer.expansion(pack)?;
            }
            printer.close()
        };
        let print_initial = |printer: &mut Self| match initial {
            Some(initial) => printer.operand(initial, Binding::Cast, true),
            None => Some(()),
        };
        self.open()?;
        if !is_left || initial.is_some() {
            match is_left {
                true => print_initial(self)?,
                false => print_pack(self)?,
            }
            self.text(&format!(" {sign} "))?;
        }
        self.text("...")?;
        if is_left || initial.is_some() {
            self.text(&format!(" {sign} "))?;
            match is_left {
                true => print_pack(self)?,
                false => print_initial(self)?,
            }
        }
        self.close()
    }

    fn integer(&mut self, number: &str) -> Printed {
        match number.strip_prefix('n') {
            Some(digits) => {
                self.text("-")?;
                self.text(digits)
            }
            None => self.text(number),
        }
    }

    /// A floating-point number, as C's `%a` writes it.
    fn float(&mut self, digits: &str, kind: FloatKind) -> Printed {
        let bits = u64::from_str_radix(digits, 16).ok();
        let text = match (kind, bits) {
            (FloatKind::Float, Some(bits)) => {
                // The same number as a double has the same digits in this form.
                let value = f32::from_bits(u32::try_from(bits).ok()?);
                hexadecimal(f64::from(value)) + "f"
            }
            (FloatKind::Double, Some(bits)) => hexadecimal(f64::from_bits(bits)),
            _ => format!("(long double)[{digits}]"),
        };
        self.text(&text)
    }
}

/// The number of an unnamed entity as GNU's tools count: from 1.
fn gnu_number(number: &str) -> u64 {
    number
        .parse::<u64>()
        .map_or(1, |number| number.saturating_add(2))
}

fn hexadecimal(value: f64) -> String {
    let bits = value.to_bits();
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let (exponent, fraction) = ((bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
    let (first, exponent) = match exponent {
        0x7ff if fraction == 0 => return format!("{sign}inf"),
        0x7ff => return format!("{sign}nan"),
        0 if fraction == 0 => (0, 0),
        0 => (0, -1022),
        exponent => (1, exponent as i64 - 1023),
    };
    let digits = format!("{fraction:013x}");
    let digits = digits.trim_end_matches('0');
    let point = if digits.is_empty() { "" } else { "." };
    format!("{sign}0x{first}{point}{digits}p{exponent:+}")
}
