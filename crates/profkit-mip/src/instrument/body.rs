//! The statements of a function's part in the form that back ends examine: text instead of bytes, labels by name.
use super::backend::Flow;
use super::functions::{Function, Part, is_data};
use crate::asm::{Instruction, Kind, Module, Statement, words};
use rustc_hash::{FxHashMap, FxHashSet};

pub(super) struct Line {
    /// The index of the statement in the file.
    pub(super) index: usize,
    pub(super) what: What,
}

pub(super) enum What {
    Label(String),
    /// The mnemonic in lower case, and the operands.
    Instruction(String, String),
    Directive(String, String),
    Other,
}

pub(super) struct Body {
    pub(super) lines: Vec<Line>,
    /// For each label the index of its line.
    pub(super) labels: FxHashMap<String, usize>,
}

/// The instructions of a target that access memory exclusively, and its flow of control.
#[derive(Clone, Copy)]
pub(super) struct Exclusives {
    pub(super) flow: for<'a> fn(&Instruction<'a>) -> Flow<'a>,
    pub(super) is_load: fn(&str) -> bool,
    pub(super) is_store: fn(&str) -> bool,
    /// The instruction that ends an exclusive access without a store.
    pub(super) clear: &'static str,
}

/// The bodies of a function's main code and of its parts, in this order.
pub(super) fn bodies(module: &Module<'_>, function: &Function<'_>) -> Vec<Body> {
    (0..=function.parts.len())
        .map(|part| Body::new(module, function, part))
        .collect()
}

impl Body {
    fn new(module: &Module<'_>, function: &Function<'_>, part: usize) -> Self {
        let own = (function.label + 1, function.end, function.section);
        let of_part = |part: &Part<'_>| (part.label, part.end, part.section);
        let (first, end, section) = match part.checked_sub(1) {
            Some(part) => function.parts.get(part).map_or(own, of_part),
            None => own,
        };
        let lines: Vec<Line> = module
            .statements
            .get(first..end)
            .unwrap_or_default()
            .iter()
            .enumerate()
            .filter(|(_, statement)| statement.section == section)
            .map(|(offset, statement)| Line {
                index: first + offset,
                what: what(module, statement),
            })
            .collect();
        let labels = lines
            .iter()
            .enumerate()
            .filter_map(|(at, line)| match &line.what {
                What::Label(name) => Some((name.clone(), at)),
                _ => None,
            })
            .collect();
        Body { lines, labels }
    }

    pub(super) fn position(&self, statement: usize) -> Option<usize> {
        self.lines
            .binary_search_by_key(&statement, |line| line.index)
            .ok()
    }

    /// The instructions from index `from` on, up to a statement that may stand for unknown ones, such as a macro.
    pub(super) fn instructions(&self, from: usize) -> impl Iterator<Item = (&str, &str)> {
        self.lines
            .iter()
            .skip(from)
            .map_while(|line| match &line.what {
                What::Instruction(word, rest) => Some(Some((word.as_str(), rest.as_str()))),
                What::Directive(name, _) if may_be_code(name) => None,
                What::Other => None,
                What::Label(_) | What::Directive(..) => Some(None),
            })
            .flatten()
    }

    /// `1b` and `1f` mean the nearest label 1 before and after the statement at `from`.
    pub(super) fn target(&self, label: &str, from: usize) -> Option<usize> {
        let number = label.strip_suffix(['b', 'f']).filter(|digits| {
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        let Some(number) = number else {
            return self.labels.get(label).copied();
        };
        let is_it = |at: &usize| matches!(self.lines.get(*at), Some(Line { what: What::Label(name), .. }) if name == number);
        if label.ends_with('b') {
            (0..from).rev().find(is_it)
        } else {
            (from + 1..self.lines.len()).find(is_it)
        }
    }

    /// Another store between a load-exclusive and its store-exclusive may make the latter fail. So the probe of a block
    /// that begins there comes after the latter, if it is in the block: a block that is entered is executed to its end.
    /// Else the probe stays only if the code repeats a failed attempt without executing the block again. Returns where the
    /// probe of the block at line `from` may stand: at another line of the block, or at `from` itself.
    pub(super) fn outside_of_exclusive(
        &self,
        from: usize,
        exclusives: Exclusives,
    ) -> Result<usize, String> {
        let stores = self.reached(from, exclusives, Stop::Exclusive);
        if stores.is_empty() {
            return Ok(from);
        }
        self.after_store_exclusive(from, exclusives)
            .or_else(|reason| {
                let repeats = |store: &usize| {
                    self.reached(store + 1, exclusives, Stop::At(from))
                        .contains(store)
                };
                if stores.iter().all(repeats) {
                    Ok(from)
                } else {
                    Err(reason)
                }
            })
    }

    pub(super) fn has_store_exclusive(&self, exclusives: Exclusives) -> bool {
        self.lines.iter().any(
            |line| matches!(&line.what, What::Instruction(word, _) if (exclusives.is_store)(word)),
        )
    }

    fn after_store_exclusive(&self, from: usize, exclusives: Exclusives) -> Result<usize, String> {
        for (at, line) in self.lines.iter().enumerate().skip(from) {
            match &line.what {
                What::Instruction(word, rest) => {
                    if (exclusives.is_store)(word) && at + 1 < self.lines.len() {
                        return Ok(at + 1);
                    }
                    let instruction = Instruction {
                        mnemonic: word.as_bytes(),
                        operands: rest.as_bytes(),
                    };
                    if (exclusives.flow)(&instruction) != Flow::Next {
                        break;
                    }
                }
                What::Label(name) if at > from && self.is_named(name) => break,
                What::Other => break,
                _ => {}
            }
        }
        Err(
            "a block of the function lies between a load-exclusive and its store-exclusive, where no other store is allowed"
                .to_owned(),
        )
    }

    /// Whether an instruction or data of the body name a label. Debug info names others, to which nothing jumps.
    fn is_named(&self, label: &str) -> bool {
        self.lines.iter().any(|line| match &line.what {
            What::Instruction(_, rest) => {
                words(rest.as_bytes()).any(|word| word == label.as_bytes())
            }
            What::Directive(name, rest) => {
                is_data(name.as_bytes())
                    && words(rest.as_bytes()).any(|word| word == label.as_bytes())
            }
            What::Label(_) | What::Other => false,
        }) || label.bytes().all(|byte| byte.is_ascii_digit())
    }

    /// The store-exclusives that can be reached from a line, without a call in between.
    fn reached(&self, from: usize, exclusives: Exclusives, stop: Stop) -> Vec<usize> {
        let mut seen: FxHashSet<usize> = FxHashSet::default();
        let mut todo = vec![from];
        let mut stores = Vec::new();
        while let Some(mut at) = todo.pop() {
            while let Some(line) = self.lines.get(at) {
                if stop == Stop::At(at) || !seen.insert(at) {
                    break;
                }
                at += 1;
                let What::Instruction(word, rest) = &line.what else {
                    continue;
                };
                if (exclusives.is_store)(word) {
                    stores.push(at - 1);
                    if stop == Stop::Exclusive {
                        break;
                    }
                }
                if stop == Stop::Exclusive
                    && ((exclusives.is_load)(word) || word == exclusives.clear)
                {
                    break;
                }
                let instruction = Instruction {
                    mnemonic: word.as_bytes(),
                    operands: rest.as_bytes(),
                };
                let target = |label: &[u8]| self.target(&String::from_utf8_lossy(label), at - 1);
                match (exclusives.flow)(&instruction) {
                    Flow::Next => {}
                    Flow::Branch(label) => todo.extend(target(label)),
                    Flow::Jump(label) => {
                        todo.extend(target(label));
                        break;
                    }
                    Flow::Call | Flow::Indirect | Flow::Leave => break,
                }
            }
        }
        stores
    }
}

/// Where the search for store-exclusives ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// At the first instruction of exclusive accesses on each way.
    Exclusive,
    /// At a line.
    At(usize),
}

pub(super) fn what(module: &Module<'_>, statement: &Statement<'_>) -> What {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match statement.kind {
        Kind::Label(name) => What::Label(text(name)),
        Kind::Instruction(instruction) if module.macros.contains(instruction.mnemonic) => {
            What::Other
        }
        Kind::Instruction(instruction) => What::Instruction(
            text(instruction.mnemonic).to_ascii_lowercase(),
            text(instruction.operands),
        ),
        Kind::Directive(directive) => {
            What::Directive(text(directive.name), text(directive.arguments))
        }
        Kind::Assignment(..) | Kind::Template => What::Other,
    }
}

pub(super) fn may_be_code(name: &str) -> bool {
    matches!(
        name,
        ".inst"
            | ".inst.n"
            | ".inst.w"
            | ".word"
            | ".long"
            | ".4byte"
            | ".int"
            | ".incbin"
            | ".include"
            | ".rept"
            | ".irp"
            | ".irpc"
    )
}
