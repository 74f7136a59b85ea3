//! Whether recorded branches fit the code: whether the instruction at the start of each can lead to its end.
use crate::code::Flow;
use crate::program::Program;
use rustc_hash::FxHashSet;
use std::sync::OnceLock;

/// The reason why a recorded branch does not fit the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchFault {
    /// The instruction at its start is no jump, branch, call or return.
    NoBranch,
    /// The instruction at its start leads elsewhere.
    OtherTarget,
}

impl Program<'_> {
    /// The reason why a branch from one instruction to another does not fit the code. `None` if it fits, and for branches
    /// whose targets the code does not state.
    pub fn branch_fault(&self, from: u64, to: u64) -> Option<BranchFault> {
        let code = self.code();
        let instruction = code.at(from)?;
        if instruction.flow == Flow::Next {
            return Some(BranchFault::NoBranch);
        }
        let target = code.target(instruction)?;
        (target != to).then_some(BranchFault::OtherTarget)
    }
}

/// Branches checked as llvm-profgen of LLVM 23 checks them: a direct branch may lead wherever any direct branch of the
/// program leads.
#[derive(Debug)]
pub struct KnownTargets<'p, 'files> {
    program: &'p Program<'files>,
    /// The targets of all direct branches and calls of the program.
    direct: OnceLock<FxHashSet<u64>>,
}

impl<'p, 'files> KnownTargets<'p, 'files> {
    /// Prepares the checks for a program.
    pub fn new(program: &'p Program<'files>) -> Self {
        KnownTargets {
            program,
            direct: OnceLock::new(),
        }
    }

    /// Whether the instruction at the start of a branch is a jump, a branch, a call or a return.
    pub fn is_branch(&self, from: u64) -> bool {
        let instruction = self.program.code().at(from);
        instruction.is_some_and(|one| one.flow != Flow::Next)
    }

    /// Whether a branch from `from` may lead to the instruction at `to`. An indirect jump may lead to any instruction. Others
    /// lead to the start of a function, behind a call, or where a direct branch or call of the program leads.
    pub fn is_target(&self, from: u64, to: u64) -> bool {
        let code = self.program.code();
        let source = code.at(from);
        if source.is_some_and(|one| one.flow == Flow::IndirectJump)
            || source.and_then(|one| code.target(one)) == Some(to)
            || self.program.ranges.contains_key(&to)
        {
            return true;
        }
        let before = code.before(to);
        let returns_here = before.is_some_and(|before| {
            before.flow == Flow::Call && before.address + u64::from(before.size) == to
        });
        returns_here || self.direct().contains(&to)
    }

    fn direct(&self) -> &FxHashSet<u64> {
        self.direct.get_or_init(|| {
            let code = self.program.code();
            let all = code.between(0, u64::MAX);
            all.filter_map(|instruction| code.target(instruction))
                .collect()
        })
    }
}
