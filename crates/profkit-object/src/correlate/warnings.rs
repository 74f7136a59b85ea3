//! Warnings about a program's function records, with the texts that LLVM prints.
use std::fmt;

/// A warning of correlation. `Display` gives the text that LLVM prints (`InstrProfCorrelator.cpp`); as in LLVM, numbers
/// in it are cut to 32 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorrelationWarning {
    /// The debug info of a counter variable is incomplete.
    Incomplete {
        /// The value of the annotation `Function Name`, if present.
        function: Option<Vec<u8>>,
        /// The value of the annotation `CFG Hash`, if present.
        hash: Option<u64>,
        /// The address of the counters, if present.
        counters: Option<u64>,
        /// The value of the annotation `Num Counters`, if present.
        count: Option<u64>,
    },
    /// The counters of a function are outside the counter section.
    OutOfRange {
        /// The name of the function, if it is known.
        function: Option<Vec<u8>>,
        /// The address of the counters.
        counters: u64,
        /// The first address of the counter section, and the address after the section.
        section: (u64, u64),
        /// The offset of the function's record in the data section.
        record: u64,
    },
    /// The debug info is damaged. The part before the damage was read.
    Damaged {
        /// The number of functions that were found before the damage.
        functions: usize,
        /// A description of the damage.
        reason: String,
    },
    /// A function has no address.
    NoAddress {
        /// The name of the function.
        function: Vec<u8>,
    },
}

impl fmt::Display for CorrelationWarning {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "LLVM cuts these numbers too"
    )]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            CorrelationWarning::Incomplete {
                function,
                hash,
                counters,
                count,
            } => {
                let number = |number: &Option<u64>| match number {
                    Some(number) => number.to_string(),
                    None => "None".to_owned(),
                };
                write!(
                    f,
                    "Incomplete DIE for function {}: CFGHash={}  CounterPtr={}  NumCounters={}",
                    function.as_deref().map_or("None".to_owned(), text),
                    number(hash),
                    number(counters),
                    number(count)
                )
            }
            CorrelationWarning::Damaged { functions, reason } => write!(
                f,
                "the debug info is damaged or cut after {functions} functions: {reason}"
            ),
            CorrelationWarning::OutOfRange {
                function: Some(function),
                counters,
                section: (start, end),
                ..
            } => write!(
                f,
                "CounterPtr out of range for function {}: Actual={:#x} Expected=[{:#x}, {:#x})",
                text(function),
                *counters as u32,
                *start as u32,
                *end as u32
            ),
            CorrelationWarning::OutOfRange {
                function: None,
                counters,
                section: (start, end),
                record,
            } => write!(
                f,
                "CounterPtr out of range for function: Actual={:#x} Expected=[{:#x}, {:#x}) at data offset={:#x}",
                *counters as u32, *start as u32, *end as u32, *record as u32
            ),
            CorrelationWarning::NoAddress { function } => {
                write!(f, "Could not find address of function {}", text(function))
            }
        }
    }
}

/// A list of correlation warnings with a limited length, and the number of all warnings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorrelationWarnings {
    limit: usize,
    /// The first warnings, up to the limit of the list.
    pub list: Vec<CorrelationWarning>,
    /// The number of warnings that exceeded the limit of the list.
    pub suppressed: u64,
}

/// The number of warnings that are listed by default. LLVM's option `--max-debug-info-correlation-warnings` has the
/// same default.
pub const DEFAULT_LIMIT: usize = 5;

impl Default for CorrelationWarnings {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

impl CorrelationWarnings {
    /// Makes an empty list that keeps at most `limit` warnings. A limit of 0 keeps all.
    pub fn new(limit: usize) -> Self {
        CorrelationWarnings {
            limit,
            list: Vec::new(),
            suppressed: 0,
        }
    }

    /// The number of all warnings, including those that are not in the list.
    pub fn count(&self) -> u64 {
        self.list.len() as u64 + self.suppressed
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn append(&mut self, other: Self) {
        other
            .list
            .into_iter()
            .for_each(|warning| self.push(warning));
        self.suppressed += other.suppressed;
    }

    pub(crate) fn push(&mut self, warning: CorrelationWarning) {
        if self.limit == 0 || self.list.len() < self.limit {
            self.list.push(warning);
        } else {
            self.suppressed += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_llvms_and_the_limit_holds() {
        let mut warnings = CorrelationWarnings::new(3);
        for _ in 0..2 {
            warnings.push(CorrelationWarning::Incomplete {
                function: None,
                hash: Some(u64::MAX),
                counters: None,
                count: Some(3),
            });
            warnings.push(CorrelationWarning::OutOfRange {
                function: Some(b"f".to_vec()),
                counters: 0x1_0000_0010,
                section: (0, 8),
                record: 0,
            });
        }
        assert_eq!((warnings.list.len(), warnings.suppressed), (3, 1));
        let texts: Vec<_> = warnings.list.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(texts[0], @"Incomplete DIE for function None: CFGHash=18446744073709551615  CounterPtr=None  NumCounters=3");
        insta::assert_snapshot!(texts[1], @"CounterPtr out of range for function f: Actual=0x10 Expected=[0x0, 0x8)");
    }
}
