//! The parts of a demangled name.
use super::MOST_NODES;

/// The index of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(u32);

/// `const`, `volatile` and `restrict`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Qualifiers {
    pub constant: bool,
    pub volatile: bool,
    pub restrict: bool,
}

/// `&` or `&&` after the parameters of a member function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReferenceQualifier {
    #[default]
    None,
    Left,
    Right,
}

/// The parameters of a function, and what is written after them.
#[derive(Clone, Debug, Default)]
pub(super) struct Signature {
    pub result: Option<NodeId>,
    pub parameters: Vec<NodeId>,
    pub qualifiers: Qualifiers,
    pub reference: ReferenceQualifier,
    /// `noexcept`, or `throw(…)`.
    pub exceptions: Option<NodeId>,
    /// The texts of `enable_if` attributes.
    pub attributes: Option<NodeId>,
    /// The constraint after `requires`.
    pub requires: Option<NodeId>,
}

#[derive(Clone, Debug)]
pub(super) enum Node<'a> {
    Name(&'a str),
    /// Three texts.
    Joined(&'static str, &'a str, &'static str),
    /// `scope::name`.
    Nested(NodeId, NodeId),
    /// An entity in a function.
    Local(NodeId, NodeId),
    /// The default argument of a parameter, counted from the last one, from 1.
    DefaultArgument(usize),
    Global(NodeId),
    Template(NodeId, NodeId),
    /// Template arguments, and the constraint after `requires`.
    Arguments(Vec<NodeId>, Option<NodeId>),
    /// The arguments of a pack, as written in a list of template arguments.
    Pack(Vec<NodeId>),
    /// What the parameter of a pack stands for: inside of an expansion one of the arguments at a time.
    PackParameter(Vec<NodeId>),
    Expansion(NodeId),
    /// A template parameter that is used before its argument is read.
    Forward(Option<NodeId>),
    Qualified(NodeId, Qualifiers),
    /// A type with a vendor's qualifier, and its template arguments.
    Vendor(NodeId, &'a str, Option<NodeId>),
    /// A word after a type, as `complex`.
    Suffixed(NodeId, &'static str),
    Pointer(NodeId),
    Reference(NodeId, ReferenceQualifier),
    MemberPointer(NodeId, NodeId),
    Array(NodeId, Option<NodeId>),
    Vector(NodeId, Option<NodeId>),
    BitInt(NodeId, bool),
    Function(Signature),
    /// A function with its name.
    Encoding(NodeId, Signature),
    /// A word before a type, as `struct`.
    Elaborated(&'static str, NodeId),
    Constructor(NodeId),
    Destructor(NodeId),
    /// `std::string` and the like as the name of a class of which constructors have the name of the template.
    Abbreviation(&'static str, &'static str, &'static str),
    /// Such a class in the name of its constructor: the name of the template and its arguments.
    Expanded(&'static str, &'static str),
    Operator(&'static str),
    Conversion(NodeId),
    LiteralOperator(NodeId),
    Tagged(NodeId, &'a str),
    Friend(NodeId),
    Module(NodeId, &'a str),
    /// Template parameters, parameters, and the number of the lambda in its scope as written.
    Lambda(Vec<NodeId>, Vec<NodeId>, &'a str),
    Unnamed(&'a str),
    Binding(Vec<NodeId>),
    /// A declared template parameter of a lambda: its kind, its number among those of its kind, and its type.
    Declared(&'static str, usize, Option<NodeId>),
    /// The declaration of a template parameter of a lambda: the parameter, and whether it is a pack.
    Declaration(NodeId, bool),
    /// A text before a node.
    Special(&'static str, &'static str, NodeId),
    /// `construction vtable for A-in-B`, with what is between the nodes in each style.
    ConstructionTable(NodeId, NodeId),
    Auto(usize),
    Noexcept(NodeId),
    Throw(Vec<NodeId>),
    Expression(Expression<'a>),
}

#[derive(Clone, Debug)]
pub(super) enum Expression<'a> {
    /// An integer of a type whose literals have a suffix, as `8u`.
    Integer(&'a str, &'static str),
    /// A value with its type before it.
    Cast(NodeId, &'a str),
    Float(&'a str, FloatKind),
    Text(&'static str),
    String(NodeId),
    Null,
    Prefix(&'static str, NodeId),
    Postfix(NodeId, &'static str),
    Binary(NodeId, &'static str, NodeId),
    Conditional(NodeId, NodeId, NodeId),
    Subscript(NodeId, NodeId),
    Call(NodeId, Vec<NodeId>),
    Conversion(NodeId, Vec<NodeId>),
    NamedCast(&'static str, NodeId, NodeId),
    Braced(Option<NodeId>, Vec<NodeId>),
    /// `.name = value`, `[index] = value`.
    Designated(NodeId, NodeId, bool),
    DesignatedRange(NodeId, NodeId, NodeId),
    Member(NodeId, &'static str, NodeId),
    New {
        arguments: Vec<NodeId>,
        kind: NodeId,
        values: Option<Vec<NodeId>>,
        global: bool,
        array: bool,
    },
    Delete(NodeId, bool, bool),
    Enclosed(&'static str, NodeId, &'static str),
    SizeofPack(Vec<NodeId>),
    Throw(NodeId),
    Fold(&'static str, Option<NodeId>, Option<NodeId>, bool),
    Parameter(&'a str),
    Decltype(NodeId),
    Lambda(NodeId),
    PointerToMemberConversion(NodeId, NodeId),
    Vendor(NodeId, Vec<NodeId>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FloatKind {
    Float,
    Double,
    LongDouble,
}

#[derive(Debug, Default)]
pub(super) struct Tree<'a> {
    nodes: Vec<Node<'a>>,
}

impl<'a> Tree<'a> {
    pub fn add(&mut self, node: Node<'a>) -> Option<NodeId> {
        let id = NodeId(u32::try_from(self.nodes.len()).ok()?);
        if self.nodes.len() >= MOST_NODES {
            return None;
        }
        self.nodes.push(node);
        Some(id)
    }

    /// The node with an id. All ids come from [`Tree::add`].
    pub fn get(&self, id: NodeId) -> &Node<'a> {
        const NOTHING: &Node<'static> = &Node::Name("");
        self.nodes.get(id.0 as usize).unwrap_or(NOTHING)
    }

    pub fn set(&mut self, id: NodeId, node: Node<'a>) {
        if let Some(place) = self.nodes.get_mut(id.0 as usize) {
            *place = node;
        }
    }
}
