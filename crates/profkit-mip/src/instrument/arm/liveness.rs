//! Which registers are dead before each statement of a function: nothing reads their values before it overwrites them.
//!
//! Calling conventions preserve r4 to r11. Linkers may overwrite r12 and the flags at calls. But a nested function gets
//! the static chain in r12, and the machine outliner's functions get and return anything.
use super::flow;
use super::registers::{self, Registers};
use crate::asm::Instruction;
use crate::instrument::backend::Flow;
use crate::instrument::body::{Body, What, may_be_code};

/// The facts about a function that the liveness of its registers depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// The registers that nothing may change: a caller that knows the function's code may rely on a register that the
    /// function never changes.
    kept: Registers,
    /// What calls and tail calls read: r0 to r3, and r12 if it may hold the static chain.
    arguments: Registers,
    /// What unknown code reads.
    unknown: Registers,
}

impl Facts {
    pub(super) fn new(bodies: &[Body]) -> Self {
        let mut changed = Registers::NONE;
        let mut named = Registers::NONE;
        let (mut pads, mut chain) = (false, false);
        for line in bodies.iter().flat_map(|body| &body.lines) {
            match &line.what {
                What::Instruction(word, rest) => {
                    changed = changed.union(registers::effect(word, rest).changes);
                    named = named.union(registers::named(rest));
                    match flow_of(word, rest) {
                        Flow::Call => {
                            // Calls change lr, and nothing is preserved of r12.
                            changed = changed.union(Registers::LR);
                            chain |= is_numbered(rest);
                        }
                        Flow::Jump(_) | Flow::Branch(_) => chain |= is_numbered(rest),
                        _ => {}
                    }
                }
                // The landing pads of exceptions find r4 to r11 as they were at the call.
                What::Directive(name, _) if name == ".personality" || name == ".handlerdata" => {
                    pads = true;
                }
                What::Directive(name, _) => {
                    pads |= name == ".cfi_lsda" || name == ".cfi_personality";
                    if name.starts_with(".inst") || name == ".include" {
                        named = Registers::ALL;
                    }
                }
                What::Other => named = Registers::ALL,
                What::Label(_) => {}
            }
        }
        let chain = chain || named.contains(Registers::IP);
        let mut usable = changed.and(Registers::ARGUMENTS.union(Registers::LR));
        if !pads {
            usable = usable.union(changed.and(Registers::PRESERVED));
        }
        let usable = usable
            .union(Registers::IP)
            .without(Registers::SPECIAL)
            .union(Registers::FLAGS);
        let (arguments, unknown) = if chain {
            (Registers::ARGUMENTS.union(Registers::IP), Registers::ALL)
        } else {
            (Registers::ARGUMENTS, Registers::ALL.without(Registers::IP))
        };
        Facts {
            kept: Registers::ALL.without(usable),
            arguments,
            unknown,
        }
    }
}

fn flow_of<'a>(word: &'a str, rest: &'a str) -> Flow<'a> {
    flow::of(&Instruction {
        mnemonic: word.as_bytes(),
        operands: rest.as_bytes(),
    })
}

/// Whether a symbol ends with a dot and a number, as those of nested functions do.
fn is_numbered(symbol: &str) -> bool {
    let plain = symbol.split('(').next().unwrap_or_default().trim();
    plain.rsplit_once('.').is_some_and(|(name, digits)| {
        !name.is_empty() && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The functions of LLVM's machine outliner are pieces of their callers.
fn is_outlined(symbol: &str) -> bool {
    symbol
        .trim_start_matches('_')
        .starts_with("OUTLINED_FUNCTION_")
}

/// For each line of a body the registers that are dead before it.
pub(super) fn dead(body: &Body, facts: Facts) -> Vec<Registers> {
    let count = body.lines.len();
    let mut live = vec![Registers::NONE; count];
    // Backward, until nothing changes. Each round adds a register somewhere, so there are few rounds.
    loop {
        let mut changed = false;
        for at in (0..count).rev() {
            let before = live_before(body, facts, &live, at);
            if let Some(slot) = live.get_mut(at)
                && *slot != before
            {
                *slot = before;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    live.into_iter()
        .map(|live| Registers::ALL.without(live).without(facts.kept))
        .collect()
}

fn live_before(body: &Body, facts: Facts, live: &[Registers], at: usize) -> Registers {
    let at_line = |at: usize| live.get(at).copied().unwrap_or(facts.unknown);
    let next = at_line(at + 1);
    let (word, rest) = match body.lines.get(at).map(|line| &line.what) {
        Some(What::Instruction(word, rest)) => (word.as_str(), rest.as_str()),
        Some(What::Directive(name, _)) if is_data(name) => return facts.unknown,
        Some(What::Label(_) | What::Directive(..)) => return next,
        Some(What::Other) | None => return facts.unknown,
    };
    let returns = Registers::ARGUMENTS
        .union(Registers::PRESERVED)
        .union(Registers::SP);
    let leaves = facts.arguments.union(returns).union(Registers::LR);
    let target = |label: &[u8]| {
        if label.is_empty() {
            return leaves;
        }
        let label = String::from_utf8_lossy(label);
        if is_outlined(&label) {
            return Registers::ALL;
        }
        match body.target(&label, at) {
            Some(place) => at_line(place),
            // A jump to a local label that is not here leads into another part of the function.
            None if label.starts_with(".L")
                || label.starts_with('L')
                || label.contains(".cold") =>
            {
                facts.unknown
            }
            None => leaves,
        }
    };
    let effect = registers::effect(word, rest);
    let through = |out: Registers| out.without(effect.overwrites).union(effect.reads);
    match flow_of(word, rest) {
        Flow::Next => through(next),
        Flow::Call if is_outlined(rest) => Registers::ALL,
        Flow::Call => {
            let clobbered = Registers::LR.union(Registers::IP).union(Registers::FLAGS);
            // A conditional call may not be executed.
            let out = if word == "bl" || word == "blx" {
                next.without(clobbered)
            } else {
                next.union(Registers::FLAGS)
            };
            out.union(facts.arguments)
                .union(registers::named(rest))
                .union(Registers::SP)
        }
        Flow::Jump(label) => target(label),
        Flow::Branch(label) => {
            let flags = if word.starts_with("cb") {
                Registers::NONE
            } else {
                Registers::FLAGS
            };
            // A conditional load into pc overwrites its registers only if it leaves.
            target(label).union(next).union(effect.reads).union(flags)
        }
        Flow::Indirect => facts.unknown,
        Flow::Leave if matches!(word, "udf" | "bkpt" | "hlt") => facts.unknown,
        Flow::Leave => returns.without(effect.overwrites).union(effect.reads),
    }
}

fn is_data(name: &str) -> bool {
    may_be_code(name)
        || matches!(
            name,
            ".byte"
                | ".short"
                | ".hword"
                | ".2byte"
                | ".quad"
                | ".ascii"
                | ".asciz"
                | ".space"
                | ".zero"
                | ".fill"
        )
}
