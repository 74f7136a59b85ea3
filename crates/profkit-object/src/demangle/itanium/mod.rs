//! C++ symbols of the Itanium ABI, demangled: the symbol is read into a tree of nodes, which is printed.
//!
//! The grammar is that of <https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling>. Texts are those of LLVM's and of
//! GNU's tools ([`Style`]), which differ in few words.
mod expressions;
mod names;
mod nodes;
mod print;
mod print_expressions;
mod types;

use nodes::{Node, NodeId, Tree};
use rustc_hash::FxHashMap;
use std::fmt;

/// The words in which LLVM's and GNU's tools differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `A<B<int>>`, `'lambda'(int)`, as llvm-cxxfilt prints.
    Llvm,
    /// `A<B<int> >`, `{lambda(int)#1}`, as c++filt prints.
    Gnu,
}

/// The largest depth of the grammar. Symbols of compilers are far below it.
const DEEPEST: u32 = 300;

/// The largest number of nodes, and of steps of reading and printing. References make symbols that print any number of
/// nodes.
const MOST_NODES: usize = 1 << 17;

/// Reads a symbol.
struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    tree: Tree<'a>,
    depth: u32,
    /// What `S_`, `S0_` and so on stand for.
    substitutions: Vec<NodeId>,
    /// Which of these are template parameters, and their numbers.
    substituted_parameters: FxHashMap<usize, usize>,
    /// What `T_`, `T0_` and so on stand for; more levels inside lambdas with template parameters.
    parameters: Vec<Vec<NodeId>>,
    /// Template arguments may follow the type. It is false in the name of a conversion operator, whose arguments belong to
    /// the operator.
    arguments_of_types: bool,
    /// Parameters may be used before their arguments are read, as in the name of a conversion operator.
    forward_parameters: bool,
    /// The parameters that were used before their arguments were read: the node, and the number of the parameter.
    forward: Vec<(NodeId, usize)>,
    /// The level of template parameters that the parameters of a lambda are read at: a `T_` without argument is `auto`.
    lambda_level: Option<usize>,
}

/// A part of a symbol that cannot be read.
type Parsed<T> = Option<T>;

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Parser {
            text: text.as_bytes(),
            at: 0,
            tree: Tree::default(),
            depth: 0,
            substitutions: Vec::new(),
            substituted_parameters: FxHashMap::default(),
            parameters: Vec::new(),
            arguments_of_types: true,
            forward_parameters: false,
            forward: Vec::new(),
            lambda_level: None,
        }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Parsed<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn looks_at(&self, text: &str) -> bool {
        self.rest().starts_with(text.as_bytes())
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.looks_at(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn expect(&mut self, text: &str) -> Parsed<()> {
        self.eat(text).then_some(())
    }

    /// Calls `read` one level deeper.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.depth += 1;
        let found = match self.depth {
            ..=DEEPEST => read(self),
            _ => None,
        };
        self.depth -= 1;
        found
    }

    fn add(&mut self, node: Node<'a>) -> Parsed<NodeId> {
        self.tree.add(node)
    }

    fn name(&mut self, text: &'a str) -> Parsed<NodeId> {
        self.add(Node::Name(text))
    }

    fn substitutable(&mut self, node: NodeId) -> NodeId {
        self.substitutions.push(node);
        node
    }

    /// A decimal number, with `n` before it if it is negative, as text.
    fn number(&mut self, negative: bool) -> Parsed<&'a str> {
        let start = self.at;
        if negative {
            self.eat("n");
        }
        let digits = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == digits {
            return None;
        }
        std::str::from_utf8(self.text.get(start..self.at)?).ok()
    }

    fn length(&mut self) -> Parsed<usize> {
        self.number(false)?.parse().ok()
    }

    /// A number in base 36 up to `_`; `_` alone is 0.
    fn sequence_id(&mut self) -> Parsed<usize> {
        if self.eat("_") {
            return Some(0);
        }
        let mut number = 0usize;
        loop {
            let digit = match self.next()? {
                b'_' => return number.checked_add(1),
                digit @ b'0'..=b'9' => digit - b'0',
                letter @ b'A'..=b'Z' => letter - b'A' + 10,
                _ => return None,
            };
            number = number.checked_mul(36)?.checked_add(digit.into())?;
        }
    }

    /// A decimal number up to `_`; `_` alone is 0.
    fn optional_number(&mut self) -> Parsed<usize> {
        if self.eat("_") {
            return Some(0);
        }
        let number = self.length()?;
        self.expect("_")?;
        number.checked_add(1)
    }
}

/// Writes the demangled form of a symbol, which begins with `_Z` and has no suffix. Returns `None` if it cannot be read,
/// or `out` takes no more.
pub(crate) fn demangle(symbol: &str, style: Style, out: &mut impl fmt::Write) -> Option<()> {
    let text = symbol.strip_prefix("_Z")?;
    let mut parser = Parser::new(text);
    let root = parser.encoding()?;
    if parser.at != text.len() {
        return None;
    }
    print::print(&parser.tree, root, style, out)
}
