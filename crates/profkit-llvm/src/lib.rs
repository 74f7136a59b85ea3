//! LLVM's profile tools, to the letter: the same options, texts, exit codes and bytes.
#![forbid(unsafe_code)]
