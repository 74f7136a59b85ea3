//! Demangles C++ symbols in one pass, if they have the forms that most functions have.
//!
//! The crate `cpp_demangle` makes a tree of a symbol, and needs six times as many instructions. This module writes each
//! part of the text as soon as the part is read from the symbol. This is possible because the parts have the same order
//! in the text and in the symbol, apart from a return type. If the symbol refers back to an earlier part (a
//! substitution such as `S0_`), this part is copied from the text.
//!
//! Forms whose parts have a different order, and rare forms, are left to `cpp_demangle`. These are pointers to
//! functions and to members, arrays, lambdas, local entities, parameter packs, and expressions. Of 102,000 functions of
//! LLVM and clang, 92 % have the forms that this module demangles.
//!
//! The text is the same as that of `cpp_demangle`, with one exception: `cpp_demangle` leaves out some parameters, and
//! puts `const` inside some names. In these cases the text is that of `llvm-cxxfilt`. Where `cpp_demangle` and
//! `llvm-cxxfilt` differ only in style, this module follows `cpp_demangle`: `> >`, `(unsigned int)4`.
use super::MOST;

/// The largest depth of types within types.
const DEEPEST: u32 = 64;

/// Demangles a symbol. Returns `None` if the symbol has a form that this module does not demangle, or is no C++ symbol.
pub(super) fn demangle(symbol: &str) -> Option<String> {
    let mut name = Name {
        rest: symbol.strip_prefix("_Z")?,
        text: String::with_capacity(2 * symbol.len()),
        known: Vec::with_capacity(16),
        arguments: Vec::with_capacity(8),
        in_name: true,
        depth: 0,
    };
    name.encoding()
}

/// A name that is being demangled.
struct Name<'n> {
    /// The part of the symbol that was not read yet.
    rest: &'n str,
    text: String,
    /// The parts of the text to which the symbol can refer back by a number (substitutions such as `S0_`), in the order
    /// of these numbers.
    known: Vec<Part>,
    /// The template arguments that were read last in the function's own name. The types after the name can refer to
    /// them.
    arguments: Vec<Part>,
    /// Whether the function's own name is being read.
    in_name: bool,
    depth: u32,
}

/// A part of the text.
#[derive(Clone, Copy)]
struct Part {
    start: usize,
    end: usize,
    /// The range in the text of the last component of the part's name, without template arguments: `Map` in
    /// `ns::Map<int>`. If the part is a class, its constructors and destructor have this name. The range is empty if
    /// there is no such component.
    last: (usize, usize),
    form: Form,
}

/// The kind of a part of the text. It decides what may follow the part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Qualified,
    Reference,
    Function,
    Value,
}

/// What a name shows about the function that has it.
#[derive(Clone, Copy, Default)]
struct Ending {
    /// Whether the last part of the name has template arguments.
    is_template: bool,
    /// Whether the function is a constructor, a destructor or a conversion. The symbols of such functions contain no
    /// return type.
    is_special: bool,
    is_const: bool,
    is_volatile: bool,
    /// `&` or `&&` if the function is a method with this qualifier; otherwise empty.
    reference: &'static str,
}

impl<'n> Name<'n> {
    fn first(&self) -> Option<u8> {
        self.rest.as_bytes().first().copied()
    }

    fn second(&self) -> Option<u8> {
        self.rest.as_bytes().get(1).copied()
    }

    /// Skips `text` if it comes next in the symbol. Returns whether it came next.
    fn skip(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Whether the list of parameters ends here: at the letter in `end`, or at the end of the symbol if `end` is empty.
    /// Skips the letter.
    fn ends(&mut self, end: &str) -> bool {
        if end.is_empty() {
            self.rest.is_empty()
        } else {
            self.skip(end)
        }
    }

    /// Returns the part from `start` to the current end of the text.
    fn part(&self, start: usize, form: Form) -> Part {
        let end = self.text.len();
        Part {
            start,
            end,
            last: (end, end),
            form,
        }
    }

    /// Reads the whole symbol: the name of a variable, or a function's name, return type and parameters.
    fn encoding(&mut self) -> Option<String> {
        let (name, ending) = match self.first()? {
            b'N' => self.nested()?,
            _ => self.unscoped()?,
        };
        self.in_name = false;
        if self.rest.is_empty() {
            // The symbol is that of a variable, whose name cannot have the qualifiers of a method.
            let plain = !ending.is_const && !ending.is_volatile && ending.reference.is_empty();
            return plain.then(|| std::mem::take(&mut self.text));
        }
        let returned = if ending.is_template && !ending.is_special {
            let returned = self.type_()?;
            // If the return type is a function type, a part of this type comes after the function's own parameters.
            if returned.form == Form::Function {
                return None;
            }
            Some(returned)
        } else {
            None
        };
        let parameters = self.text.len();
        self.text.push('(');
        self.parameters("")?;
        self.text.push(')');
        if ending.is_const {
            self.text.push_str(" const");
        }
        if ending.is_volatile {
            self.text.push_str(" volatile");
        }
        if !ending.reference.is_empty() {
            self.text.push(' ');
            self.text.push_str(ending.reference);
        }
        let Some(returned) = returned else {
            return Some(std::mem::take(&mut self.text));
        };
        let mut text = String::with_capacity(self.text.len() + 1);
        text.push_str(self.text.get(returned.start..returned.end)?);
        text.push(' ');
        text.push_str(self.text.get(name.start..name.end)?);
        text.push_str(self.text.get(parameters..)?);
        Some(text)
    }

    /// Reads the types of the parameters up to the end of their list; see [`ends`](Self::ends) for `end`.
    fn parameters(&mut self, end: &str) -> Option<()> {
        if self.skip("v") {
            return self.ends(end).then_some(());
        }
        loop {
            self.type_()?;
            if self.ends(end) {
                return Some(());
            }
            self.text.push_str(", ");
        }
    }

    /// Reads a name outside of any class and namespace, or a name directly in `std`.
    fn unscoped(&mut self) -> Option<(Part, Ending)> {
        let start = self.text.len();
        if self.skip("St") {
            self.text.push_str("std::");
        } else if self.first() == Some(b'S') {
            return None;
        }
        let (last, is_special) = self.unqualified(None)?;
        let mut part = Part {
            last,
            ..self.part(start, Form::Plain)
        };
        let is_template = self.first() == Some(b'I');
        if is_template {
            self.known.push(part);
            self.template_arguments()?;
            part.end = self.text.len();
        }
        let ending = Ending {
            is_template,
            is_special,
            ..Ending::default()
        };
        Some((part, ending))
    }

    /// Reads a name with its scope.
    fn nested(&mut self) -> Option<(Part, Ending)> {
        self.rest = self.rest.strip_prefix('N')?;
        let mut ending = Ending {
            is_volatile: self.skip("V"),
            is_const: self.skip("K"),
            ..Ending::default()
        };
        if self.skip("R") {
            ending.reference = "&";
        } else if self.skip("O") {
            ending.reference = "&&";
        }
        let start = self.text.len();
        let mut part: Option<Part> = None;
        loop {
            match (self.first()?, part) {
                (b'E', Some(part)) => {
                    self.skip("E");
                    return Some((part, ending));
                }
                (b'S', None) if self.skip("St") => {
                    self.text.push_str("std");
                    part = Some(self.part(start, Form::Plain));
                    continue;
                }
                (b'S', None) => {
                    let known = self.substitution()?;
                    if known.form != Form::Plain {
                        return None;
                    }
                    part = Some(known);
                    continue;
                }
                (b'I', Some(before)) => {
                    if ending.is_template {
                        return None;
                    }
                    self.template_arguments()?;
                    ending.is_template = true;
                    part = Some(Part {
                        end: self.text.len(),
                        ..before
                    });
                }
                (_, before) => {
                    if before.is_some() {
                        self.text.push_str("::");
                    }
                    let (last, is_special) = self.unqualified(before.map(|part| part.last))?;
                    (ending.is_template, ending.is_special) = (false, is_special);
                    part = Some(Part {
                        last,
                        ..self.part(start, Form::Plain)
                    });
                }
            }
            if self.first() != Some(b'E') {
                self.known.extend(part);
            }
        }
    }

    /// Reads a name without its scope. Returns the range of the name in the text, and whether the name is that of a
    /// constructor, a destructor or a conversion. `class` is the range of the name of the class that contains the
    /// function.
    fn unqualified(&mut self, class: Option<(usize, usize)>) -> Option<((usize, usize), bool)> {
        let start = self.text.len();
        let is_special = match (self.first()?, self.second()?) {
            (b'0'..=b'9', _) => {
                let name = self.source_name()?;
                if name.starts_with("_GLOBAL__N") {
                    self.text.push_str("(anonymous namespace)");
                } else {
                    self.text.push_str(name);
                }
                false
            }
            (kind @ (b'C' | b'D'), b'0'..=b'2') => {
                if kind == b'D' {
                    self.text.push('~');
                } else if self.second() == Some(b'0') {
                    return None;
                }
                self.rest = self.rest.get(2..)?;
                let class = class.filter(|(start, end)| start < end)?;
                self.copy(class)?;
                true
            }
            (b'c', b'v') => {
                self.rest = self.rest.get(2..)?;
                self.text.push_str("operator ");
                let part = self.type_()?;
                // In a conversion template, the type comes before the template arguments, but it may refer to them.
                // Such a symbol is left to `cpp_demangle`.
                if part.form == Form::Function || self.first() == Some(b'I') {
                    return None;
                }
                true
            }
            (b'a'..=b'z', _) => {
                let sign = operator(self.rest.get(..2)?)?;
                self.rest = self.rest.get(2..)?;
                self.text.push_str("operator");
                self.text.push_str(sign);
                false
            }
            _ => return None,
        };
        (self.first() != Some(b'B')).then_some(((start, self.text.len()), is_special))
    }

    /// Reads the length of a name, and the name.
    fn source_name(&mut self) -> Option<&'n str> {
        let length = self.number()?;
        let name = self.rest.get(..length)?;
        self.rest = self.rest.get(length..)?;
        (!name.is_empty()).then_some(name)
    }

    /// Reads a decimal number.
    fn number(&mut self) -> Option<usize> {
        let digits = (self.rest.bytes()).take_while(u8::is_ascii_digit).count();
        let number = self.rest.get(..digits)?.parse().ok()?;
        self.rest = self.rest.get(digits..)?;
        Some(number)
    }

    /// Reads the arguments of a template. Arguments in the function's own name are kept in `arguments` until the next
    /// ones are read.
    fn template_arguments(&mut self) -> Option<()> {
        self.rest = self.rest.strip_prefix('I')?;
        // A space separates the bracket from an operator that ends with `<`.
        self.text
            .push_str(if self.text.ends_with('<') { " <" } else { "<" });
        let mut read = Vec::new();
        loop {
            if !read.is_empty() {
                self.text.push_str(", ");
            }
            read.push(match self.first()? {
                b'L' => self.literal()?,
                _ => self.type_()?,
            });
            if self.skip("E") {
                break;
            }
        }
        self.text
            .push_str(if self.text.ends_with('>') { " >" } else { ">" });
        if self.in_name {
            self.arguments = read;
        }
        Some(())
    }

    /// Reads a template argument that is a number, `true` or `false`.
    fn literal(&mut self) -> Option<Part> {
        self.rest = self.rest.strip_prefix('L')?;
        let start = self.text.len();
        if self.skip("b") {
            let is_true = self.skip("1");
            if !is_true && !self.skip("0") {
                return None;
            }
            self.text.push_str(if is_true { "true" } else { "false" });
        } else {
            // The type is written before the number, unless it is `int`.
            if !self.skip("i") {
                self.text.push('(');
                match self.first()? {
                    b'c'
                    | b'a'
                    | b'h'
                    | b's'
                    | b't'
                    | b'j'
                    | b'l'
                    | b'm'
                    | b'x'
                    | b'y'
                    | b'N'
                    | b'S'
                    | b'0'..=b'9' => self.type_()?,
                    _ => return None,
                };
                self.text.push(')');
            }
            if self.skip("n") {
                self.text.push('-');
            }
            let digits = (self.rest.bytes()).take_while(u8::is_ascii_digit).count();
            let (number, rest) = self.rest.split_at_checked(digits)?;
            if digits == 0 {
                return None;
            }
            self.text.push_str(number);
            self.rest = rest;
        }
        self.skip("E").then(|| self.part(start, Form::Value))
    }

    /// Reads a reference to a known part or to a common name of the standard library. Appends that part or name to the
    /// text.
    fn substitution(&mut self) -> Option<Part> {
        self.rest = self.rest.strip_prefix('S')?;
        let standard = match self.first()? {
            b'a' => "allocator",
            b'b' => "basic_string",
            b's' => "string",
            b'i' => "basic_istream<char, std::char_traits<char> >",
            b'o' => "ostream",
            b'd' => "basic_iostream<char, std::char_traits<char> >",
            _ => {
                let digits = (self.rest.bytes())
                    .take_while(|&digit| digit.is_ascii_digit() || digit.is_ascii_uppercase())
                    .count();
                let (digits, rest) = self.rest.split_at_checked(digits)?;
                self.rest = rest.strip_prefix('_')?;
                let index = match digits {
                    "" => 0,
                    _ => usize::from_str_radix(digits, 36).ok()?.checked_add(1)?,
                };
                let known = *self.known.get(index)?;
                return self.copy_part(known);
            }
        };
        self.rest = self.rest.get(1..)?;
        let start = self.text.len();
        self.text.push_str("std::");
        let name = self.text.len();
        self.text.push_str(standard);
        let mut part = self.part(start, Form::Plain);
        if !standard.ends_with('>') {
            part.last = (name, part.end);
        }
        Some(part)
    }

    /// Copies a part to the end of the text.
    fn copy_part(&mut self, known: Part) -> Option<Part> {
        let start = self.text.len();
        self.copy((known.start, known.end))?;
        let moved = |at: usize| Some(at.checked_sub(known.start)? + start);
        // An empty range `last` stays empty: it is at the end of the known part, and so at the end of the copy.
        Some(Part {
            start,
            end: self.text.len(),
            last: (moved(known.last.0)?, moved(known.last.1)?),
            form: known.form,
        })
    }

    fn copy(&mut self, (start, end): (usize, usize)) -> Option<()> {
        let copied = end.checked_sub(start)?;
        if self.text.len() + copied > MOST || self.text.get(start..end).is_none() {
            return None;
        }
        self.text.extend_from_within(start..end);
        Some(())
    }

    /// Reads a type.
    fn type_(&mut self) -> Option<Part> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let part = self.type_at_depth();
        self.depth -= 1;
        part
    }

    fn type_at_depth(&mut self) -> Option<Part> {
        let start = self.text.len();
        let part = match self.first()? {
            sign @ (b'P' | b'R' | b'O') => {
                self.rest = self.rest.get(1..)?;
                let inner = self.type_()?;
                let (text, form) = match sign {
                    b'P' => ("*", Form::Plain),
                    b'R' => ("&", Form::Reference),
                    _ => ("&&", Form::Reference),
                };
                if matches!(inner.form, Form::Function | Form::Reference | Form::Value) {
                    return None;
                }
                self.text.push_str(text);
                self.part(start, form)
            }
            b'V' | b'K' => {
                let (is_volatile, is_const) = (self.skip("V"), self.skip("K"));
                let inner = self.type_()?;
                if inner.form != Form::Plain {
                    return None;
                }
                if is_const {
                    self.text.push_str(" const");
                }
                if is_volatile {
                    self.text.push_str(" volatile");
                }
                self.part(start, Form::Qualified)
            }
            b'F' => {
                self.rest = self.rest.get(1..)?;
                let returned = self.type_()?;
                if returned.form == Form::Function {
                    return None;
                }
                self.text.push_str(" (");
                self.parameters("E")?;
                self.text.push(')');
                self.part(start, Form::Function)
            }
            b'T' => {
                self.rest = self.rest.get(1..)?;
                let index = match self.first()? {
                    b'_' => 0,
                    _ => self.number()?.checked_add(1)?,
                };
                if self.in_name || !self.skip("_") {
                    return None;
                }
                let argument = *self.arguments.get(index)?;
                let part = self.copy_part(argument)?;
                if part.form == Form::Value || self.first() == Some(b'I') {
                    return None;
                }
                part
            }
            b'N' => {
                let (part, ending) = self.nested()?;
                let plain = !ending.is_const && !ending.is_volatile && ending.reference.is_empty();
                if !plain || ending.is_special {
                    return None;
                }
                part
            }
            b'S' if self.second() == Some(b't') => self.unscoped_type()?,
            b'S' => {
                let known = self.substitution()?;
                if self.first() != Some(b'I') {
                    // This part is in `known` already, so it is not added again.
                    return Some(known);
                }
                if known.form != Form::Plain {
                    return None;
                }
                self.template_arguments()?;
                Part {
                    end: self.text.len(),
                    ..known
                }
            }
            b'0'..=b'9' => self.unscoped_type()?,
            _ => {
                let (name, length) = builtin(self.rest)?;
                self.rest = self.rest.get(length..)?;
                self.text.push_str(name);
                // Symbols never refer back to built-in types by a number, so these are not added to `known`.
                return Some(self.part(start, Form::Plain));
            }
        };
        if self.text.len() > MOST {
            return None;
        }
        self.known.push(part);
        Some(part)
    }

    fn unscoped_type(&mut self) -> Option<Part> {
        let (part, ending) = self.unscoped()?;
        (!ending.is_special).then_some(part)
    }
}

/// Returns the built-in type whose code begins the text, and the length of the code.
fn builtin(text: &str) -> Option<(&'static str, usize)> {
    let name = match text.as_bytes() {
        [b'D', b'n', ..] => return Some(("std::nullptr_t", 2)),
        [b'D', b'i', ..] => return Some(("char32_t", 2)),
        [b'D', b's', ..] => return Some(("char16_t", 2)),
        [b'v', ..] => "void",
        [b'w', ..] => "wchar_t",
        [b'b', ..] => "bool",
        [b'c', ..] => "char",
        [b'a', ..] => "signed char",
        [b'h', ..] => "unsigned char",
        [b's', ..] => "short",
        [b't', ..] => "unsigned short",
        [b'i', ..] => "int",
        [b'j', ..] => "unsigned int",
        [b'l', ..] => "long",
        [b'm', ..] => "unsigned long",
        [b'x', ..] => "long long",
        [b'y', ..] => "unsigned long long",
        [b'n', ..] => "__int128",
        [b'o', ..] => "unsigned __int128",
        [b'f', ..] => "float",
        [b'd', ..] => "double",
        [b'e', ..] => "long double",
        [b'g', ..] => "__float128",
        [b'z', ..] => "...",
        _ => return None,
    };
    Some((name, 1))
}

/// Returns the text that follows the word `operator`, for the code of an operator in a symbol.
fn operator(code: &str) -> Option<&'static str> {
    Some(match code {
        "nw" => " new",
        "na" => " new[]",
        "dl" => " delete",
        "da" => " delete[]",
        "aN" => "&=",
        "aS" => "=",
        "aa" => "&&",
        "ad" | "an" => "&",
        "cl" => "()",
        "cm" => ",",
        "co" => "~",
        "dV" => "/=",
        "de" | "ml" => "*",
        "dv" => "/",
        "eO" => "^=",
        "eo" => "^",
        "eq" => "==",
        "ge" => ">=",
        "gt" => ">",
        "ix" => "[]",
        "lS" => "<<=",
        "le" => "<=",
        "ls" => "<<",
        "lt" => "<",
        "mI" => "-=",
        "mL" => "*=",
        "mi" | "ng" => "-",
        "mm" => "--",
        "ne" => "!=",
        "nt" => "!",
        "oR" => "|=",
        "oo" => "||",
        "or" => "|",
        "pL" => "+=",
        "pl" | "ps" => "+",
        "pm" => "->*",
        "pp" => "++",
        "pt" => "->",
        "rM" => "%=",
        "rS" => ">>=",
        "rm" => "%",
        "rs" => ">>",
        "ss" => "<=>",
        _ => return None,
    })
}
