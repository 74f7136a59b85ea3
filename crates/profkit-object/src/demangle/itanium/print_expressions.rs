//! Prints expressions, with brackets where they are needed.
use super::nodes::{Expression, FloatKind, Node, NodeId};
use super::print::{Printed, Printer, gnu_number};

/// How tightly parts of an expression are bound, tightest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Binding {
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

impl<'a> Printer<'_, 'a> {
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
    pub(super) fn operand(&mut self, id: NodeId, around: Binding, strictly: bool) -> Printed {
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

    pub(super) fn expression(&mut self, expression: &Expression<'a>) -> Printed {
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
